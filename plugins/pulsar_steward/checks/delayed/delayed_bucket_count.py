"""Subscriptions whose bucket tracker is near its maximum number of buckets, or has far too many without a maximum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Query, RowCheck, Scope, critical_or_warning
from pulsar_steward.checks.delayed.waiting import (
    GAP_CLUSTER,
    GAP_SHARDS,
    SETTINGS,
    WITHOUT_BUCKETS,
    gap,
    without_buckets,
)
from pulsar_steward.model.measures import DELAYED_BUCKETS
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row


class DelayedBucketCountPolicy(Section):
    """Thresholds for the number of buckets of delayed messages of a subscription."""

    warning_percent_of_limit: int = Field(
        90, ge=1, le=1000, description="of `delayedDeliveryMaxNumBuckets`: beyond it buckets are merged"
    )
    critical_percent_of_limit: int = Field(
        150, ge=1, le=1000, description="the same: merging does not keep up with sealing"
    )
    warning_buckets_unlimited: int = Field(
        1_000, ge=1, description="where nothing limits them (the default): 50 million messages at 50,000 a bucket"
    )
    critical_buckets_unlimited: int = Field(
        5_000, ge=1, description="the same: at some 70 bytes a property, a third of a metadata node's 1 MiB"
    )


MAX_BUCKETS = "delayedDeliveryMaxNumBuckets"

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
select topic, broker, allowed, count(*) as subscriptions, max(buckets) as buckets,
    max(buckets) >= any_value(too_many) as critical,
    max({{'buckets': buckets, 'subscription': subscription}}).subscription as subscription
from counted where buckets >= warning group by topic, broker, allowed
"""

COUNTED = """
select (select max(buckets) from delayed_buckets) as most,
    (select count(*) from delayed_waiting anti join delayed_buckets using (topic, subscription, broker)) as uncounted
"""


def _missing(queried: Queried, _context: CheckContext[DelayedBucketCountPolicy]) -> str | None:
    if without_buckets(queried):
        return None
    return gap(queried) or _uncounted(sum(row["uncounted"] for row in queried["counted"].rows))


def _quiet(queried: Queried, _context: CheckContext[DelayedBucketCountPolicy]) -> str:
    if without_buckets(queried):
        return WITHOUT_BUCKETS
    most, allowed = max(row["most"] or 0 for row in queried["counted"].rows), queried["allowed"].one["allowed"]
    return f"No subscription has more than {counted(most, 'bucket')}; {_limit(allowed)}."


def _uncounted(blind: int) -> str | None:
    if not blind:
        return None
    return (
        f"The buckets of {counted(blind, 'subscription')} with delayed messages are told neither by {DELAYED_BUCKETS}"
        " nor by the properties of their cursors: they may be kept by the in-memory tracker."
    )


def _limit(allowed: int | None) -> str:
    return f"{MAX_BUCKETS} sets no limit" if allowed is None else f"{MAX_BUCKETS} is {allowed:,}"


def _evidence(row: Row) -> str:
    allowed = row["allowed"]
    more = row["subscriptions"] - 1
    others = counted(more, "more subscription of the topic is", "more subscriptions of the topic are")
    others = f" ({others} near it)" if more else ""
    if allowed is None:
        effect = "no bucket is ever merged, and each takes a ledger and a property of the cursor in the metadata store"
    elif row["buckets"] > allowed:
        effect = "merging does not keep up"
    else:
        effect = "beyond it buckets are merged, which reads and writes them again"
    return (
        f"Subscription {row['subscription']} has {counted(row['buckets'], 'sealed bucket')} of delayed"
        f" messages{others}; {_limit(allowed)}: {effect}."
    )


# A warning near the brokers' limit; far beyond it, or without a limit, the number itself counts.
CHECK = RowCheck(
    check_id="delayed-bucket-count",
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
    evidence=_evidence,
    figures=lambda row: {
        "buckets": row["buckets"],
        "subscriptions": row["subscriptions"],
        "limit_buckets": row["allowed"],
    },
    missing=_missing,
    quiet=_quiet,
)
