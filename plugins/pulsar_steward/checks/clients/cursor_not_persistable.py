"""Cursors whose ack state is near the maximum size of a BookKeeper entry; beyond it, no more is persisted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import BROKERS_READ, Query, RowCheck, Scope, nothing_read, ranked
from pulsar_steward.checks.clients.ack_holes import LONG_ARRAY, MAX_RANGES
from pulsar_steward.checks.clients.consumers import subject_of
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import KIB, MIB, bytes_in_words, counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import QueryRows, Row


class CursorNotPersistablePolicy(Section):
    """Thresholds for the size of a cursor's ack state, as a share of one BookKeeper entry; a larger one is critical."""

    warning_percent: int = Field(
        50, ge=1, le=100, description="ack state of the largest entry: it doubles with the entries that it spans"
    )


MAX_MESSAGE = "maxMessageSize"
BATCH_ACKS, MAX_BATCHES = "acknowledgmentAtBatchIndexLevelEnabled", "managedLedgerMaxBatchDeletedIndexToPersist"
USUAL_BATCHES = 10_000
USUAL_MESSAGE_BYTES = 5 * MIB
FRAME_PADDING_BYTES = 10 * KIB
"""Bytes that a broker allows an entry beyond `maxMessageSize` (`Commands.MESSAGE_SIZE_FRAME_PADDING`)."""

LONG_BYTES, LONG_ENTRIES = 11, 64
"""Bytes and entries of a long of the array: up to 11 bytes for 64 entries, so 30.6 million entries fill 5 MiB."""

RANGE_BYTES = 30
"""Largest size of two positions in the persisted ranges; 14 were measured on a broker with small numbers."""

BATCHES_BOUND, MESSAGES_BOUND = 10**6, 10**6
"""Upper bounds of figures, so that their product fits its type."""

# The state is estimated as its possible maximum: as an array of longs if the persisted form is not known. A partly
# acknowledged batch adds one bit per message to the same entry, which the measured size leaves out. The estimate
# assumes as many of these batches as are delivered and not acknowledged.
STATES = f"""
with settings as (
    select broker, max(try_cast(trim(value) as boolean)) filter (key = '{LONG_ARRAY}') as long_array,
        max(try_cast(trim(value) as bigint)) filter (key = '{MAX_RANGES}') as max_ranges,
        max(try_cast(trim(value) as bigint)) filter (key = '{MAX_MESSAGE}') as message_bytes,
        max(try_cast(trim(value) as boolean)) filter (key = '{BATCH_ACKS}') as batch_acks,
        max(try_cast(trim(value) as bigint)) filter (key = '{MAX_BATCHES}') as max_batches
    from configuration where key in ('{LONG_ARRAY}', '{MAX_RANGES}', '{MAX_MESSAGE}', '{BATCH_ACKS}', '{MAX_BATCHES}')
    group by broker),
measured as (
    select topic, subscription, max(ack_state_bytes) as measured_bytes
    from drilled where subscription is not null group by topic, subscription),
states as (
    select topic, subscription, ack_holes, entries_since_first_gap as entries, measured_bytes, long_array,
        warning_percent, coalesce(message_bytes, {USUAL_MESSAGE_BYTES}) + {FRAME_PADDING_BYTES} as frame_bytes,
        case when not long_array then least(ack_holes, max_ranges) * {RANGE_BYTES}
            else (entries + {LONG_ENTRIES - 1}) // {LONG_ENTRIES} * {LONG_BYTES} end as estimated_bytes,
        messages_per_entry, case when batch_acks and messages_per_entry > 1 then greatest(
            least(coalesce(max_batches, {USUAL_BATCHES}), backlog_entries, unacked_messages, {BATCHES_BOUND}), 0)
            end as batches,
        batches * ({RANGE_BYTES} + (least(messages_per_entry, {MESSAGES_BOUND}) + {LONG_ENTRIES - 1}) // {LONG_ENTRIES}
            * {LONG_BYTES}) as batch_bytes
    from user_subscriptions join limits using (namespace) left join measured using (topic, subscription)
        left join settings using (broker)
    where ack_holes > 0 or measured_bytes > 0)
"""

# A measured size takes precedence. A small one makes an estimate doubtful, but does not refute it: if the state is too
# large, a shorter one is persisted elsewhere, and that one is measured.
FOUND = f"""
{STATES}
select topic, subscription, ack_holes, entries, measured_bytes, estimated_bytes, frame_bytes, batches, batch_bytes,
    coalesce(measured_bytes, estimated_bytes) as largest_bytes,
    coalesce(measured_bytes * 100 >= frame_bytes * warning_percent, false) as by_measure,
    case when measured_bytes >= frame_bytes then 2
        when by_measure then 1
        when long_array is null then null
        when estimated_bytes >= frame_bytes then if(measured_bytes is null, 1, 0)
        when measured_bytes is null and estimated_bytes * 100 >= frame_bytes * warning_percent then 0
        when coalesce(measured_bytes, estimated_bytes) + batch_bytes >= frame_bytes then 0 end as rank
from states where rank is not null
"""

UNKNOWN = f"""
{STATES}
select count(*) as cursors from states
where measured_bytes is null
    and (estimated_bytes is null or (long_array is null and estimated_bytes * 100 >= frame_bytes * warning_percent))
"""


def _unknown(selected: QueryRows) -> str | None:
    """Cursors that may be too large, with neither size nor persisted form known."""
    count = sum(row["cursors"] for row in selected.rows)
    if not count:
        return None
    return (
        f"{counted(count, 'subscription with ack holes was', 'subscriptions with ack holes were')} not asked for the"
        " size of their ack state, and what their brokers"
        f" persist of it ({LONG_ARRAY}, {MAX_RANGES}) or how many entries it spans is not in the snapshot."
    )


def _evidence(row: Row) -> str:
    return (
        f"The cursor of subscription {row['subscription']} of {row['topic']} spans"
        f" {counted(row['entries'] or 0, 'entry', 'entries')} with {counted(row['ack_holes'] or 0, 'ack hole')}:"
        f" {_state(row)} of the {bytes_in_words(row['frame_bytes'], rounded=True)} that one entry of a cursor"
        f" ledger holds{_batches(row)}; what does not fit is delivered again after a restart or move."
    )


def _batches(row: Row) -> str:
    if not row["batch_bytes"]:
        return ""
    return (
        f", and up to {bytes_in_words(row['batch_bytes'], rounded=True)} more for"
        f" {counted(row['batches'], 'batch', 'batches')} that may be acknowledged in part ({BATCH_ACKS})"
    )


def _state(row: Row) -> str:
    if row["by_measure"]:
        return f"its ack state has {bytes_in_words(row['measured_bytes'], rounded=True)}"
    estimate = f"its ack state may take up to {bytes_in_words(row['estimated_bytes'], rounded=True)} (an estimate"
    if row["measured_bytes"] is None:
        return f"{estimate}: its topic was not asked)"
    return f"{estimate}; what was persisted last has {bytes_in_words(row['measured_bytes'], rounded=True)})"


# A measured size decides; an estimate, which is a maximum, counts one severity less.
CHECK = RowCheck(
    check_id="cursor-not-persistable",
    order=40,
    title="The ack state of a cursor comes near what one BookKeeper entry can hold",
    advice=(
        "Find the message that holds the cursor back: `pulsar-admin topics stats-internal TOPIC`, markDeletePosition.",
        "Let it be acknowledged, or skip it: `pulsar-admin topics skip TOPIC --subscription SUB --count N`.",
        "Do not unload or restart before: what was not persisted is delivered again.",
        "Set `managedLedgerPersistIndividualAckAsLongArray=false` where few holes span many entries.",
        "Spread the topic over more partitions: each has a cursor of its own.",
    ),
    source="docs/checks/cursor-not-persistable.md; apache/pulsar#25985, apache/pulsar#19966",
    scope=Scope.NAMESPACE,
    policy=CursorNotPersistablePolicy,
    shards={
        "found": Query(FOUND, worst_first="rank desc, largest_bytes desc, topic, subscription"),
        "unknown": Query(UNKNOWN),
    },
    cluster={"read": BROKERS_READ},
    severity=ranked,
    subject=subject_of,
    evidence=_evidence,
    figures=lambda row: {
        "ack_holes": row["ack_holes"],
        "frame_bytes": row["frame_bytes"],
        "entries_since_first_gap": row["entries"],
        "ack_state_bytes": row["measured_bytes"],
    },
    missing=lambda queried, _context: nothing_read(queried["read"]) or _unknown(queried["unknown"]),
    quiet=lambda _answers, context: context.in_each_part(
        lambda limits: (
            f"No cursor's ack state has {limits.warning_percent} % of the largest entry that BookKeeper takes."
        )
    ),
)
