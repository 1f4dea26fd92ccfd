"""Buckets of delayed messages that cannot be sealed, loaded, merged or deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, LookBack, Question, Scope
from pulsar_steward.checks.delayed.waiting import BUCKET_TRACKER, GAP_CLUSTER, GAP_SHARDS, TRACKER, gap
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.series import DELAYED_BUCKET_OPERATIONS
from pulsar_steward.model.units import counted, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answers, CheckContext, Row


class DelayedBucketFailingPolicy(Section):
    """Thresholds for failing operations on buckets of delayed messages."""

    warning_failed_percent: int = Field(
        10, ge=1, le=100, description="of the operations of one kind that ended, of subscriptions where any failed"
    )
    critical_unsealed_percent: int = Field(
        90, ge=1, le=100, description="the same of sealing: the index is in memory alone, as without buckets"
    )
    minimum_failed_operations: int = Field(2, ge=1, description="fewer are a hiccup: each was tried several times")
    window_minutes: int = Field(
        60,
        ge=0,
        description="how old an earlier snapshot may be whose failures count as well: brokers tell only those since"
        " anybody last read them",
    )


# One row for each namespace and operation (create, load, merge, delete) with a failure in any subscription.
FAILED = f"""
with told as (
    select topic, subscription, source as broker, labels_json->>'type' as kind,
        coalesce(sum(value::bigint) filter (labels_json->>'state' = 'failed'), 0)::bigint as failed,
        sum(value::bigint)::bigint as ended
    from raw_metrics
    where series = '{DELAYED_BUCKET_OPERATIONS}' and subscription is not null and value > 0
        and labels_json->>'state' in ('failed', 'succeed') and of_users(topic)
    group by topic, subscription, broker, kind)
select namespace_of(topic) as namespace, kind, sum(failed)::bigint as failed, sum(ended)::bigint as ended,
    max({{'failed': failed, 'topic': topic, 'subscription': subscription, 'broker': broker}}) as worst
from told where failed > 0 and kind is not null group by all
"""

# Delayed messages of subscriptions without a sealed bucket: the next owner of the topic reads them again.
UNSEALED = """
select namespace, sum(delayed_messages)::bigint as messages, max(delayed_messages) as most
from delayed_waiting join delayed_buckets using (topic, namespace, subscription, broker)
where buckets = 0 group by namespace
"""

FOUND = """
with every as (
    select namespace, kind, failed, ended, worst, to_timestamp($now) as taken_at from failed
    union all by name select * from failed_before),
summed as (
    select namespace, kind, sum(failed)::bigint as failed, sum(ended)::bigint as ended, max(worst) as worst,
        min(taken_at) as since, any_value(critical_unsealed_percent) as unsealed_percent
    from every join limits using (namespace)
    where taken_at >= to_timestamp($now) - to_minutes(window_minutes::integer)
    group by namespace, kind
    having sum(failed) >= any_value(minimum_failed_operations)
        and sum(failed) * 100 >= any_value(warning_failed_percent) * sum(ended)),
waiting as (
    select namespace, sum(messages)::bigint as messages, max(most) as most from unsealed group by namespace)
select namespace, sum(failed)::bigint as failed, max(worst) as worst, min(since) as since,
    bool_or(kind = 'create' and failed * 100 >= unsealed_percent * ended) as critical,
    list({'kind': kind, 'failed': failed, 'ended': ended} order by kind) as kinds,
    coalesce(any_value(messages), 0) as messages, coalesce(any_value(most), 0) as most
from summed left join waiting using (namespace) group by namespace
"""

SETTINGS = f"""
select (select count(*) from setting('{TRACKER}')) as told,
    (select count(*) from setting('{TRACKER}') where value = '{BUCKET_TRACKER}') as in_buckets,
    (select count(*) from brokers anti join setting('{TRACKER}') using (broker) where read) as untold
"""

EFFECTS = {
    "create": "buckets could not be sealed, and what they were to index stays in the broker's memory",
    "load": "segments of buckets could not be loaded, and what is due in them comes late",
    "merge": "merges of buckets failed, and their number grows",
    "delete": "drained buckets could not be deleted, and their ledgers stay in the bookies",
}


def judge(answers: Answers, context: CheckContext[DelayedBucketFailingPolicy]) -> Judgement:
    """A finding for each namespace; critical if hardly any bucket is sealed."""
    found, settings = answers["found"], answers["settings"].one
    if found.rows:
        return Judgement(findings=tuple(_finding(row, context) for row in found.rows), more=found.more)
    if settings["told"] and not settings["untold"] and not settings["in_buckets"]:
        return Judgement(quiet="No broker uses the bucket tracker.")
    return Judgement(
        quiet="No operation on buckets of delayed messages is known to fail again and again.", cannot_tell=gap(answers)
    )


def _finding(row: Row, context: CheckContext[DelayedBucketFailingPolicy]) -> Finding:
    worst, kinds = row["worst"], {each["kind"]: each for each in row["kinds"]}
    words = [
        f"{each['failed']:,} of {each['ended']:,} {EFFECTS.get(kind, f'operations of the kind {kind} failed')}"
        for kind, each in kinds.items()
    ]
    again = _read_again(row, context) if "create" in kinds else ""
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if row["critical"] else Severity.WARNING,
        subject=row["namespace"],
        evidence=(
            f"In the last {counted(context.limits_of(row['namespace']).window_minutes, 'minute')}, as far as snapshots"
            f" tell: {'; '.join(words)}. Most with subscription {worst['subscription']} of {worst['topic']} on"
            f" {worst['broker']}.{again}"
        ),
        figures={f"failed_{kind}": each["failed"] for kind, each in kinds.items()}
        | {"failed": row["failed"], "unsealed_messages": row["messages"]},
    )


def _read_again(row: Row, context: CheckContext[DelayedBucketFailingPolicy]) -> str:
    """Sentence about the delayed messages in no bucket, and the time to read them again."""
    if not row["messages"]:
        return ""
    rate = context.policy.failover_time.delayed_messages_read_per_second
    return (
        f" {counted(row['messages'], 'delayed message is', 'delayed messages are')} in no bucket: whoever gets their"
        f" topics reads them again, the largest subscription's in about"
        f" {seconds_in_words(-(-row['most'] // rate), rounded=True)} at {rate:,} per s"
        " (failover_time.delayed_messages_read_per_second)."
    )


CHECK = Check(
    check_id="delayed-bucket-failing",
    order=55,
    title="Buckets of delayed messages cannot be sealed, loaded, merged or deleted",
    advice=(
        "Look for `bucket snapshot` in the broker's log: it names the operation, the bucket, and the error.",
        "Sealing: are there as many writable bookies as managedLedgerDefaultEnsembleSize? Look at bookie-disk.",
        "Loading: can the bookies that have the ledger be read? It is tried again by itself.",
        "Merging: delayedDeliveryMaxNumBuckets of 1 to 3 fails in releases before apache/pulsar#26242.",
        "Deleting: `bookkeeper shell listledgers`, less those that brokers name, has what is left behind.",
        "Until buckets are sealed, do not move or restart what holds many delayed messages: they are read again.",
    ),
    source="docs/checks/delayed-bucket-failing.md; docs/knowledge.md D",
    scope=Scope.NAMESPACE,
    policy=DelayedBucketFailingPolicy,
    shards={"failed": Question(FAILED), "unsealed": Question(UNSEALED), **GAP_SHARDS},
    earlier={"failed_before": LookBack(minutes=lambda limits: limits.window_minutes, sql=FAILED)},
    cluster={
        "found": Question(FOUND, worst_first="critical desc, failed desc, namespace"),
        "settings": Question(SETTINGS),
        **GAP_CLUSTER,
    },
    judge=judge,
)
