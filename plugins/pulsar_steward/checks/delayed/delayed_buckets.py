"""Buckets of delayed messages: subscriptions with too many of them, and buckets that cannot be sealed or loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import LookBack, Query, RowCheck, Scope, critical_or_warning
from pulsar_steward.checks.delayed.waiting import (
    GAP_CLUSTER,
    GAP_SHARDS,
    SETTINGS,
    WITHOUT_BUCKETS,
    gap,
    without_buckets,
)
from pulsar_steward.model.broker_defaults import default_number
from pulsar_steward.model.measures import DELAYED_BUCKET_OPERATIONS, DELAYED_BUCKETS
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row


LEAST_LIMIT = 4
"""Buckets that a merge takes: a lower limit makes all fail before apache/pulsar#26242."""


class DelayedBucketCountPolicy(Section):
    """Thresholds for the number of buckets of delayed messages of a subscription."""

    warning_percent_of_limit: int = number(
        90, "of `delayedDeliveryMaxNumBuckets`: beyond it buckets are merged", le=1000
    )
    critical_percent_of_limit: int = number(150, "the same: merging does not keep up with sealing", le=1000)
    warning_buckets_unlimited: int = number(
        1_000, "where nothing limits them (the default): 50 million messages at 50,000 a bucket"
    )
    critical_buckets_unlimited: int = number(
        5_000, "the same: at some 70 bytes a property, a third of a metadata node's 1 MiB"
    )


MAX_BUCKETS = "delayedDeliveryMaxNumBuckets"

SEALED_AT = "delayedDeliveryMinIndexCountPerBucket"
SEGMENT_SECONDS = "delayedDeliveryMaxTimeStepPerBucketSnapshotSegmentSeconds"
SEGMENT_MESSAGES = "delayedDeliveryMaxIndexesPerBucketSnapshotSegment"
SEALED_AT_BY_DEFAULT, SECONDS_BY_DEFAULT, MESSAGES_BY_DEFAULT = map(
    int, map(default_number, (SEALED_AT, SEGMENT_SECONDS, SEGMENT_MESSAGES))
)
"""Settings that make a bucket: messages at which it is sealed, time and messages of a segment; and their defaults."""


def _least(setting: str) -> str:
    """SQL: the lowest value of all brokers; null: not known."""
    return f"(select min(try_cast(trim(value) as bigint)) from setting('{setting}'))"


# The lowest limit of all brokers; 0 or below is no limit.
ALLOWED = f"""
select min(number) filter (number > 0) as allowed
from (select try_cast(trim(value) as integer)::bigint as number from setting('{MAX_BUCKETS}'))
"""

CROWDED = f"""
with counted as (
    select topic, broker, subscription, buckets, allowed,
        case when allowed is null then warning_buckets_unlimited
            else (allowed * warning_percent_of_limit + 99) // 100 end as warning,
        case when allowed is null then critical_buckets_unlimited
            else (allowed * critical_percent_of_limit + 99) // 100 end as too_many
    from delayed_buckets join limits using (namespace) cross join ({ALLOWED}))
select topic, broker, allowed, {_least(SEALED_AT)} as sealed_at, {_least(SEGMENT_SECONDS)} as segment_seconds,
    {_least(SEGMENT_MESSAGES)} as segment_messages, count(*) as subscriptions, max(buckets) as buckets,
    max(buckets) >= any_value(too_many) as critical,
    max({{'buckets': buckets, 'subscription': subscription}}).subscription as subscription
from counted where buckets >= warning group by topic, broker, allowed
"""

COUNTED = """
select (select max(buckets) from delayed_buckets) as most,
    (select count(*) from delayed_waiting anti join delayed_buckets using (topic, subscription, broker)) as uncounted
"""


def _uncounted(queried: Queried, _context: CheckContext[DelayedBucketCountPolicy]) -> str | None:
    if without_buckets(queried):
        return None
    blind = sum(row["uncounted"] for row in queried["counted"].rows)
    unknown = (
        f"The buckets of {counted(blind, 'subscription')} with delayed messages are told neither by {DELAYED_BUCKETS}"
        " nor by the properties of their cursors: they may be kept by the in-memory tracker."
    )
    return gap(queried) or (unknown if blind else None)


def _few(queried: Queried, _context: CheckContext[DelayedBucketCountPolicy]) -> str:
    if without_buckets(queried):
        return WITHOUT_BUCKETS
    most, allowed = max(row["most"] or 0 for row in queried["counted"].rows), queried["allowed"].one["allowed"]
    return f"No subscription has more than {counted(most, 'bucket')}; {_limit(allowed)}."


def _limit(allowed: int | None) -> str:
    return f"{MAX_BUCKETS} sets no limit" if allowed is None else f"{MAX_BUCKETS} is {allowed:,}"


def _crowded(row: Row) -> str:
    allowed = row["allowed"]
    more = row["subscriptions"] - 1
    others = counted(more, "more subscription of the topic is", "more subscriptions of the topic are")
    others = f" ({others} near it)" if more else ""
    if allowed is None:
        effect = "no bucket is ever merged, and each takes a ledger and a property of the cursor in the metadata store"
    elif allowed < LEAST_LIMIT:
        effect = f"with a limit below {LEAST_LIMIT} every merge fails, and their number only grows"
    elif row["buckets"] > allowed:
        effect = "merging does not keep up"
    else:
        effect = "beyond it buckets are merged, which reads and writes them again"
    # Brokers may seal buckets, or cut segments, sooner than by default.
    sealed_at = row["sealed_at"] or SEALED_AT_BY_DEFAULT
    seconds, messages = row["segment_seconds"] or SECONDS_BY_DEFAULT, row["segment_messages"] or MESSAGES_BY_DEFAULT
    small = []
    if sealed_at < SEALED_AT_BY_DEFAULT:
        small.append(f"{SEALED_AT} is {sealed_at:,}, {SEALED_AT_BY_DEFAULT:,} by default")
    if seconds < SECONDS_BY_DEFAULT or messages < MESSAGES_BY_DEFAULT:
        small.append(f"a segment ends after {counted(messages, 'message')} or {seconds_in_words(seconds)}")
    made_of = f" Buckets are smaller than by default: {' and '.join(small)}." if small else ""
    return (
        f"Subscription {row['subscription']} has {counted(row['buckets'], 'sealed bucket')} of delayed"
        f" messages{others}; {_limit(allowed)}: {effect}.{made_of}"
    )


# A warning near the brokers' limit; far beyond it, or without a limit, the number itself counts.
DELAYED_BUCKET_COUNT = RowCheck(
    check_id="delayed-bucket-count",
    harm=Harm.SOON,
    order=50,
    title="A subscription has nearly as many buckets of delayed messages as it may, or far too many",
    advice=(
        "Raise delayedDeliveryMinIndexCountPerBucket, so that fewer and larger buckets are sealed.",
        "Raise delayedDeliveryMaxNumBuckets where it is reached, or set it (50 is usual) where nothing limits them.",
        "Leave it at 4 or more: values of 1 to 3 make merging fail in releases before apache/pulsar#26242.",
        "Spread the messages over more partitions: each has buckets of its own.",
    ),
    source="docs/checks/delayed-bucket-count.md; docs/knowledge.md D; apache/pulsar#26242",
    scope=Scope.NAMESPACE,
    policy=DelayedBucketCountPolicy,
    shards={
        "found": Query(CROWDED, worst_first="critical desc, buckets desc, topic, broker"),
        "counted": Query(COUNTED),
        **GAP_SHARDS,
    },
    cluster={"settings": SETTINGS, "allowed": Query(ALLOWED), **GAP_CLUSTER},
    severity=critical_or_warning,
    subject="topic",
    evidence=_crowded,
    figures=lambda row: {
        "buckets": row["buckets"],
        "subscriptions": row["subscriptions"],
        "limit_buckets": row["allowed"],
    },
    missing=_uncounted,
    quiet=_few,
)


class DelayedBucketFailingPolicy(Section):
    """Thresholds for failing operations on buckets of delayed messages."""

    warning_failed_percent: int = percent(
        10, "of the operations of one kind that ended, of subscriptions where any failed"
    )
    critical_unsealed_percent: int = percent(
        90, "the same of sealing: the index is in memory alone, as without buckets"
    )
    minimum_failed_operations: int = number(2, "fewer are a hiccup: each was tried several times")
    window_minutes: int = number(
        60,
        "how old an earlier snapshot may be whose failures count as well: brokers tell only those since anybody"
        " last read them",
        ge=0,
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

FAILING = """
with every as (
    select namespace, kind, failed, ended, worst, to_timestamp($now) as taken_at from failed
    union all by name select * from failed_before),
summed as (
    select namespace, kind, sum(failed)::bigint as failed, sum(ended)::bigint as ended, max(worst) as worst,
        min(taken_at) as since, any_value(critical_unsealed_percent) as unsealed_percent,
        any_value(window_minutes) as window_minutes
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
    coalesce(any_value(messages), 0) as messages, coalesce(any_value(most), 0) as most,
    any_value(window_minutes) as window_minutes,
    $failover_time__delayed_messages_read_per_second as read_per_second
from summed left join waiting using (namespace) group by namespace
"""

EFFECTS = {
    "create": "buckets could not be sealed, and what they were to index stays in the broker's memory",
    "load": "segments of buckets could not be loaded, and what is due in them comes late",
    "merge": "merges of buckets failed, and their number grows",
    "delete": "drained buckets could not be deleted, and their ledgers stay in the bookies",
}


def _failing(row: Row) -> str:
    worst, kinds = row["worst"], {each["kind"]: each for each in row["kinds"]}
    words = [
        f"{each['failed']:,} of {each['ended']:,} {EFFECTS.get(kind, f'operations of the kind {kind} failed')}"
        for kind, each in kinds.items()
    ]
    again, rate = "", row["read_per_second"]
    if "create" in kinds and row["messages"]:
        again = (
            f" {counted(row['messages'], 'delayed message is', 'delayed messages are')} in no bucket: whoever gets"
            " their topics reads them again, the largest subscription's in about"
            f" {seconds_in_words(-(-row['most'] // rate), rounded=True)} at {rate:,} per s"
            " (failover_time.delayed_messages_read_per_second)."
        )
    return (
        f"In the last {counted(row['window_minutes'], 'minute')}, as far as snapshots tell: {'; '.join(words)}. Most"
        f" with subscription {worst['subscription']} of {worst['topic']} on {worst['broker']}.{again}"
    )


# A finding for each namespace; critical if hardly any bucket is sealed.
DELAYED_BUCKET_FAILING = RowCheck(
    check_id="delayed-bucket-failing",
    beware={Harm.SOON: "Unload no bundle of theirs."},
    harm=Harm.SOON,
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
    shards={"failed": Query(FAILED), "unsealed": Query(UNSEALED), **GAP_SHARDS},
    earlier={"failed_before": LookBack(minutes=lambda limits: limits.window_minutes, sql=FAILED)},
    cluster={
        "found": Query(FAILING, worst_first="critical desc, failed desc, namespace"),
        "settings": SETTINGS,
        **GAP_CLUSTER,
    },
    severity=critical_or_warning,
    subject="namespace",
    evidence=_failing,
    figures=lambda row: {
        **{f"failed_{each['kind']}": each["failed"] for each in row["kinds"]},
        "failed": row["failed"],
        "unsealed_messages": row["messages"],
    },
    missing=lambda queried, _context: None if without_buckets(queried) else gap(queried),
    quiet=lambda queried, _context: (
        WITHOUT_BUCKETS
        if without_buckets(queried)
        else "No operation on buckets of delayed messages is known to fail again and again."
    ),
)
