"""Topics that store what nobody needs any more, and topics whose compaction fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Query, RowCheck, Scope
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.subscription import COMPACTION, DEDUPLICATION
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import GIB, MIB, MINUTE, bytes_in_words, counted, epoch_in_words, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row


class StoredThoughConsumedPolicy(Section):
    """Thresholds for topics that store what is consumed and not retained."""

    warning_bytes: int = number(10 * GIB, "stored by a topic though nothing is known to need it")
    overdue_minutes: int = number(
        1440, "since a consumed ledger had to be deleted: brokers delete when a ledger is closed, or cursors move"
    )


# A topic whose oldest closed ledger is older than retention allows, although all of it is consumed; or whose backlog no
# subscription and no replicator holds, though it is not deduplicated. Only drilled topics tell their ledgers.
STORED = f"""
with ledgers as (
    select topic, max(oldest_ledger_milliseconds) // 1000 as closed_at, max(ledgers) as ledgers,
        max(deduplication_entries) as deduplication_entries
    from drilled group by topic),
known as (
    select t.topic, t.namespace, t.storage_bytes, t.backlog_bytes, retention_minutes, retention_megabytes,
        closed_at, l.ledgers, deduplication_entries, warning_bytes, overdue_minutes,
        greatest(t.storage_bytes - coalesce(t.backlog_bytes, 0), 0) as consumed_bytes,
        case when retention_minutes < 0 then null else retention_minutes * 60 end as kept_seconds
    from topics_under_policies t join limits using (namespace) left join ledgers l using (topic)),
judged as (
    select *, floor($now)::bigint - closed_at as closed_seconds,
        -- Whichever limit of retention is reached first deletes.
        coalesce(consumed_bytes >= warning_bytes and closed_seconds > 60 * overdue_minutes + kept_seconds, false)
            as past_time,
        coalesce(retention_megabytes >= 0 and closed_seconds > 60 * overdue_minutes
            and consumed_bytes >= retention_megabytes * {MIB}::hugeint + warning_bytes, false) as past_size,
        coalesce(backlog_bytes >= warning_bytes, false)
            and topic not in (
                select topic from backlogs where holder <> '{DEDUPLICATION}' and not is_reader(holder)) as unheld
    from known)
select judged.*
from judged left join deduplication using (namespace) where past_time or past_size or (unheld and deduplicated is false)
"""


def _stored(row: Row) -> str:
    if row["unheld"]:
        read = "holds it" if row["deduplication_entries"] else "may hold it, which no statistics show"
        return (
            f"The topic keeps {bytes_in_words(row['backlog_bytes'], rounded=True)} as backlog, and no subscription and"
            f" no replicator has anything left: a cursor of deduplication (pulsar.dedup) {read}, though deduplication"
            " is off. Switching it on for the topic and off again removes the cursor."
        )
    since = seconds_in_words(row["closed_seconds"], rounded=True)
    kept = "nothing is retained"
    if row["past_size"] and row["retention_megabytes"]:
        kept = f"{bytes_in_words(row['retention_megabytes'] * MIB)} are retained"
    elif row["past_time"] and row["retention_minutes"]:
        kept = f"{seconds_in_words(row['retention_minutes'] * MINUTE, rounded=True)} are retained"
    held = " The cursor of deduplication (pulsar.dedup) is behind." if row["deduplication_entries"] else ""
    return (
        f"The topic stores {bytes_in_words(row['consumed_bytes'], rounded=True)} that are consumed, in"
        f" {counted(row['ledgers'], 'ledger')}; the oldest was closed {since} ago, and {kept}: deletion does not"
        f" happen, or a cursor that is no subscription holds it back.{held}"
    )


STORED_THOUGH_CONSUMED = RowCheck(
    check_id="stored-though-consumed",
    harm=Harm.SOON,
    explained_by=("compaction-failing",),
    order=92,
    title="A topic stores far more than backlog and retention explain",
    advice=(
        "Look at every cursor: `pulsar-admin topics stats-internal TOPIC`; the oldest one holds all after it.",
        "Held by pulsar.dedup though deduplication is off: switch it on for the topic and off again.",
        "Held by nothing: have the topic trimmed (`pulsar-admin topics trim-topic TOPIC`), and read the owner's log.",
        "Shorten no retention for it: nothing that is retained is the reason.",
    ),
    source="docs/checks/stored-though-consumed.md; apache/pulsar#6935, apache/pulsar#9057, apache/pulsar#15363",
    scope=Scope.NAMESPACE,
    policy=StoredThoughConsumedPolicy,
    shards={"found": Query(STORED, worst_first="greatest(consumed_bytes, backlog_bytes) desc, topic")},
    severity=Severity.WARNING,
    subject="topic",
    evidence=_stored,
    figures=("backlog_bytes", "consumed_bytes", "storage_bytes"),
    quiet="No topic that was looked into stores what neither backlog nor retention needs.",
)


class CompactionFailingPolicy(Section):
    """Thresholds for topics whose compaction fails."""

    within_minutes: int = number(1440, "since the failure; an older one is history")


FAILED = f"""
with told as (
    select topic, max(namespace) as namespace, max(compacted_milliseconds) as succeeded,
        max(compaction_failed_milliseconds) as failed
    from drilled group by topic)
select told.*, entries
from told join limits using (namespace)
    left join (select topic, max(entries) as entries from backlogs where holder = '{COMPACTION}' group by topic)
        using (topic)
where failed > coalesce(succeeded, 0) and failed // 1000 >= floor($now)::bigint - 60 * within_minutes
"""


def _failed(row: Row) -> str:
    ever = f"the last success was at {epoch_in_words(row['succeeded'])}" if row["succeeded"] else "none ever succeeded"
    left = f"; {counted(row['entries'], 'entry waits', 'entries wait')} for it" if row["entries"] else ""
    at = epoch_in_words(row["failed"])
    return f"Compaction of the topic failed at {at}, and {ever}{left}: what is behind its cursor stays."


COMPACTION_FAILING = RowCheck(
    check_id="compaction-failing",
    harm=Harm.SOON,
    order=93,
    title="Compaction of a topic fails",
    advice=(
        "Run it by hand: `pulsar-admin topics compact TOPIC`; read compaction-status and the owner's log.",
        "Usual reasons: messages without keys, a read that times out, a bookie that is gone.",
        "Never delete or reset the subscription __compaction: the compacted view hangs on it.",
    ),
    source="docs/checks/compaction-failing.md; apache/pulsar#6432, apache/pulsar#25279",
    scope=Scope.NAMESPACE,
    policy=CompactionFailingPolicy,
    shards={"found": Query(FAILED, worst_first="coalesce(entries, 0) desc, topic")},
    severity=Severity.WARNING,
    subject="topic",
    evidence=_failed,
    figures=lambda row: {"entries": row["entries"] or 0},
    quiet="Compaction fails on no topic that was looked into.",
)
