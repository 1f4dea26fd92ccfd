"""What brokers write of cursors: too seldom, too often, or more than the one BookKeeper entry that is persisted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import (
    BROKERS_READ,
    Query,
    RowCheck,
    Scope,
    if_any,
    if_counted,
    nothing_read,
    ranked,
    silent_in,
)
from pulsar_steward.checks.clients.consumers import LONG_ARRAY, MAX_RANGES, subject_of
from pulsar_steward.checks.resources.slowness import OVERFLOW, WRITES
from pulsar_steward.model.broker_defaults import CURSOR_WRITES, default_number
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.setting import writes_in_words
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import KIB, bytes_in_words, counted, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row


class AckStateSeldomPolicy(Section):
    """Thresholds for the time between two writes of a cursor."""

    information_seconds: int = number(
        10, "between two writes of what a subscription has acknowledged, or more; brokers wait for 1"
    )
    warning_messages: int = number(
        10_000, "that consumers get again where brokers die, at the rate of now; fewer: information"
    )


# Decimals make the sum independent of order; many subscriptions with less than one message per second add up.
DELIVERED = """
select namespace, coalesce(sum(rate), 0) as messages_per_second, count_if(rate is null) as silent
from (select namespace, try_cast(message_rate_out as decimal(18, 6)) as rate from user_subscriptions)
group by namespace
"""

# A namespace's setting goes before the brokers' default. 0 or below is no limit: each acknowledgement is written.
SELDOM = f"""
with own as (
    select namespace, mark_deletes_per_second as writes_per_second from persistence
    where mark_deletes_per_second is not null),
rates as (
    select namespace, sum(messages_per_second) as messages_per_second, sum(silent)::bigint as silent
    from delivered group by namespace),
judged as (
    select own.namespace, writes_per_second, coalesce(messages_per_second, 0) as messages_per_second,
        coalesce(silent, 0) as silent
    from own left join rates using (namespace)
    union all
    select null, min(try_cast(value as double)) filter (where try_cast(value as double) > 0),
        (select coalesce(sum(messages_per_second), 0) from rates anti join own using (namespace)),
        (select coalesce(sum(silent), 0)::bigint from rates anti join own using (namespace))
    from setting('{CURSOR_WRITES}'))
select namespace, writes_per_second, round(messages_per_second)::bigint as messages_per_second,
    silent, 1 / writes_per_second as seconds, messages_per_second::double / writes_per_second as messages,
    round_even(messages, 0) >= $warning_messages as warning
from judged where writes_per_second > 0 and 1 / writes_per_second >= $information_seconds
"""


def _seldom(row: Row) -> str:
    own = "by the namespace's own policy"
    who = own if row["namespace"] is not None else f"where a namespace sets nothing else ({CURSOR_WRITES})"
    silent = f", and what {counted(row['silent'], 'subscription')} get is not told" if row["silent"] else ""
    return (
        f"What a subscription has acknowledged is written once in {seconds_in_words(row['seconds'], rounded=True)}"
        f" {who}. Consumers get {counted(row['messages_per_second'], 'message')} a second there{silent}: where their"
        f" brokers die, up to {counted(round(row['messages']), 'message')} come again."
    )


# A finding for each namespace with such a rate, and one for the brokers' default.
ACK_STATE_SELDOM = RowCheck(
    check_id="ack-state-seldom",
    harm=Harm.AT_RESTART,
    order=45,
    title="What is acknowledged is written seldom",
    advice=(
        "Of a namespace: `pulsar-admin namespaces set-persistence NS -r 1` (its -e -w -a as they are): once a second.",
        f"Of all others: `{CURSOR_WRITES}=1` in broker.conf, its default; brokers restart for it.",
        "0 writes each acknowledgement by itself: bookies have to bear that for every subscription.",
        "Until then, have consumers bear messages that come again, and end brokers orderly: then nothing does.",
    ),
    source="docs/knowledge.md C: ack state written too often or too seldom; apache/pulsar#393, #180",
    policy=AckStateSeldomPolicy,
    remedied_by="persistence",
    shards={"delivered": Query(DELIVERED)},
    cluster={
        "found": Query(SELDOM, worst_first="messages desc, seconds desc, namespace"),
        "read": Query(
            f"select count(*) as brokers from setting('{CURSOR_WRITES}') where try_cast(value as double) is not null"
        ),
    },
    severity=lambda row: Severity.WARNING if row["warning"] else Severity.INFO,
    subject="namespace",
    evidence=_seldom,
    figures=lambda row: {"messages": round(row["messages"]), "seconds": round(row["seconds"])},
    missing=lambda queried, _context: (
        None if queried["read"].one["brokers"] else f"{CURSOR_WRITES} was not read of any broker."
    ),
    quiet=lambda _answers, context: (
        f"What is acknowledged is written before {counted(context.limits.information_seconds, 'second')} are over,"
        " whatever a broker then does."
    ),
)


class AckStateOftenPolicy(Section):
    """Thresholds for writes of cursors, by namespace; the article that warns of them names no figures."""

    least_percent: int = percent(50, "of what brokers write to bookies for a namespace, written by its cursors")
    information_writes_per_second: int = number(1_000, "of a namespace's cursors, if they are such a share")
    warning_writes_per_second: int = number(5_000, "the same")
    warning_megabytes_per_second: int = number(
        10, "of ack state, which each write of a cursor writes whole: of the cursors that were looked into"
    )


MARK_DELETES = "pulsar_ml_MarkDeleteRate"
"""Series of cursors' writes per second in the last statistics period, by namespace.

Brokers count a write after they applied the limit, and none that it put off (apache/pulsar, `ManagedCursorImpl`).
"""

# Writes of messages are counted where they go to ledgers; those of cursors are not among them.
WRITTEN = f"""
select regexp_replace(labels_json->>'namespace', '/persistent$', '') as namespace,
    sum(try_cast(value as decimal(18, 6))) filter (series = '{MARK_DELETES}') as cursor_writes,
    sum(try_cast(value as decimal(18, 6))) filter (series <> '{MARK_DELETES}') as entries
from metrics where series in ('{MARK_DELETES}', '{WRITES}', '{WRITES}{OVERFLOW}') and isfinite(value)
group by 1
"""

# A cursor from which nothing is consumed is not written.
STATE_BYTES = """
select namespace, sum(bytes)::bigint as state_bytes, max(bytes) as largest_bytes, count(*) as cursors
from (select topic, subscription, max(ack_state_bytes) as bytes from drilled
    where subscription is not null and ack_state_bytes > 0 group by topic, subscription)
join user_subscriptions using (topic, subscription) where message_rate_out > 0 group by namespace
"""

# Where nothing limits the writes, a cursor is taken to be written once a second. A limit is no rate: where all brokers
# tell the writes, no more is written than so many times the largest state. A series that rests at 0 is left out.
OFTEN = f"""
with own as (
    select namespace, mark_deletes_per_second as of_namespace from persistence
    where mark_deletes_per_second is not null),
hearing as (select count(*) = 0 as all_tell from silent),
usual as (
    select if(bool_or(try_cast(value as double) <= 0), 0, max(try_cast(value as double))) as of_brokers
    from setting('{CURSOR_WRITES}')),
rates as (
    select namespace, sum(cursor_writes)::double as told_writes, coalesce(sum(entries), 0)::double as entries
    from written where not starts_with(namespace, 'pulsar/') and not is_heartbeat(namespace) group by namespace),
states as (
    select namespace, sum(state_bytes)::bigint as state_bytes, max(largest_bytes) as largest_bytes,
        sum(cursors)::bigint as cursors
    from state_bytes group by namespace),
judged as (
    select namespace, of_namespace is not null as own,
        coalesce(of_namespace, of_brokers) as writes_per_second,
        coalesce(told_writes, if(all_tell, 0, null)) as cursor_writes,
        coalesce(entries, 0) as entries,
        if(cursor_writes > 0, cursor_writes * 100 / (cursor_writes + entries), cursor_writes) as percent,
        state_bytes, cursors,
        least(state_bytes * if(writes_per_second > 0, least(writes_per_second, 1000000), 1),
            if(all_tell, cursor_writes * largest_bytes, null)) as bytes_per_second
    from rates full join states using (namespace) left join own using (namespace) cross join usual cross join hearing)
select *, case
    when cursor_writes >= $warning_writes_per_second and percent >= $least_percent then 1
    when bytes_per_second >= $warning_megabytes_per_second * 1000000 then 1
    when cursor_writes >= $information_writes_per_second and percent >= $least_percent then 0 end as rank
from judged where rank is not null
"""


def _often(row: Row) -> str:
    own = "by the namespace's own policy"
    who = own if row["own"] else f"as it sets nothing else ({CURSOR_WRITES})"
    limit, limited = "", (row["writes_per_second"] or 0) > 0
    if row["writes_per_second"] is not None:
        written = writes_in_words(row["writes_per_second"])
        limit = f", each {written} at most {who}" if limited else f", {written} {who}"
    if row["cursor_writes"] is None:
        words = f"How often cursors of {row['namespace']} are written, not all brokers tell{limit}."
    else:
        writes = counted(round(row["cursor_writes"]), "time")
        words = (
            f"Of {row['namespace']}, cursors are written {writes} a second{limit}:"
            f" {row['percent']:.0f} % of what its brokers write to bookies, beside"
            f" {counted(round(row['entries']), 'entry', 'entries')} of messages a second."
        )
    if row["state_bytes"] is None:
        return words
    size = bytes_in_words(row["state_bytes"], rounded=True)
    each = "up to" if limited else "where each is written once a second at most,"
    return (
        f"{words} The ack state of {counted(row['cursors'], 'cursor that was', 'cursors that were')} looked into has"
        f" {size}, and each write writes it whole: {each} {bytes_in_words(row['bytes_per_second'], rounded=True)} a"
        " second, before copies."
    )


ACK_STATE_OFTEN = RowCheck(
    check_id="ack-state-often",
    harm=Harm.SLOW,
    order=46,
    title="What is acknowledged is written often, and bookies bear it",
    advice=(
        "Once in 5 s: `pulsar-admin namespaces set-persistence NS -r 0.2` (its -e -w -a as they are).",
        "What is acknowledged in between comes again where a broker dies: have consumers bear that first.",
        "Find ack holes (check ack-holes): fewer consumers of a subscription, or quicker ones, write less each time.",
        "Delete subscriptions that nobody needs (check subscription-abandoned): each has a cursor of its own.",
    ),
    source="docs/knowledge.md C: ack state written too often or too seldom; the figures are ours",
    policy=AckStateOftenPolicy,
    remedied_by="persistence",
    shards={
        "written": Query(WRITTEN),
        "state_bytes": Query(STATE_BYTES),
        "telling": Query(f"select distinct source from metrics where series = '{MARK_DELETES}'"),
    },
    cluster={
        "silent": silent_in("telling"),
        "found": Query(
            OFTEN, worst_first="rank desc, cursor_writes desc nulls last, bytes_per_second desc nulls last, namespace"
        ),
    },
    severity=ranked,
    subject="namespace",
    evidence=_often,
    figures=lambda row: {
        "cursor_writes_per_second": row["cursor_writes"],
        "percent": row["percent"],
        "state_bytes_per_second": row["bytes_per_second"],
    },
    missing=if_any("silent", f"How often cursors are written was not read ({MARK_DELETES}) of {{names}}."),
    quiet=lambda _answers, context: (
        f"No namespace's cursors are {context.limits.least_percent} % of what is written to bookies and written"
        f" {counted(context.limits.information_writes_per_second, 'time')} a second."
    ),
)


class CursorNotPersistablePolicy(Section):
    """Thresholds for the size of a cursor's ack state, as a share of one BookKeeper entry; a larger one is critical."""

    warning_percent: int = percent(50, "ack state of the largest entry: it doubles with the entries that it spans")


MAX_MESSAGE = "maxMessageSize"
BATCH_ACKS, MAX_BATCHES = "acknowledgmentAtBatchIndexLevelEnabled", "managedLedgerMaxBatchDeletedIndexToPersist"
USUAL_BATCHES = 10_000
USUAL_MESSAGE_BYTES = int(default_number(MAX_MESSAGE))
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
LARGE = f"""
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


def _large(row: Row) -> str:
    if row["by_measure"]:
        state = f"its ack state has {bytes_in_words(row['measured_bytes'], rounded=True)}"
    else:
        state = f"its ack state may take up to {bytes_in_words(row['estimated_bytes'], rounded=True)} (an estimate"
        if row["measured_bytes"] is None:
            state += ": its topic was not asked)"
        else:
            state += f"; what was persisted last has {bytes_in_words(row['measured_bytes'], rounded=True)})"
    batches = ""
    if row["batch_bytes"]:
        batches = (
            f", and up to {bytes_in_words(row['batch_bytes'], rounded=True)} more for"
            f" {counted(row['batches'], 'batch', 'batches')} that may be acknowledged in part ({BATCH_ACKS})"
        )
    return (
        f"The cursor of subscription {row['subscription']} of {row['topic']} spans"
        f" {counted(row['entries'] or 0, 'entry', 'entries')} with {counted(row['ack_holes'] or 0, 'ack hole')}:"
        f" {state} of the {bytes_in_words(row['frame_bytes'], rounded=True)} that one entry of a cursor ledger"
        f" holds{batches}; what does not fit is delivered again after a restart or move."
    )


# A measured size decides; an estimate, which is a maximum, counts one severity less.
CURSOR_NOT_PERSISTABLE = RowCheck(
    check_id="cursor-not-persistable",
    explained_by=("ack-holes",),
    beware={Harm.AT_RESTART: "Restart no broker and unload no bundle of theirs: messages would come again."},
    harm=Harm.AT_RESTART,
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
        "found": Query(LARGE, worst_first="rank desc, largest_bytes desc, topic, subscription"),
        "unknown": Query(UNKNOWN),
    },
    cluster={"read": BROKERS_READ},
    severity=ranked,
    subject=subject_of,
    evidence=_large,
    figures=lambda row: {
        "ack_holes": row["ack_holes"],
        "frame_bytes": row["frame_bytes"],
        "entries_since_first_gap": row["entries"],
        "ack_state_bytes": row["measured_bytes"],
    },
    missing=(
        nothing_read,
        if_counted(  # cursors that may be too large, with neither size nor persisted form known
            "unknown",
            lambda count: (
                f"{counted(count, 'subscription with ack holes was', 'subscriptions with ack holes were')} not asked"
                f" for the size of their ack state, and what their brokers persist of it ({LONG_ARRAY}, {MAX_RANGES})"
                " or how many entries it spans is not in the snapshot."
            ),
        ),
    ),
    quiet=lambda _answers, context: context.in_each_part(
        lambda limits: (
            f"No cursor's ack state has {limits.warning_percent} % of the largest entry that BookKeeper takes."
        )
    ),
)
