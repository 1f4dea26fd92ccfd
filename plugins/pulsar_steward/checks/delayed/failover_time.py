"""Time for which the topics of a lost broker would be unavailable: an estimate, with the rates that it assumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Question
from pulsar_steward.checks.delayed.failover import FailoverTimePolicy, LostLoad, RemainingBrokers, estimated, sentence
from pulsar_steward.checks.delayed.hosts import NOTHING_LOADED, all_on_one_host, brokers_by_host, host_of
from pulsar_steward.checks.delayed.waiting import BUCKET_TRACKER, BY_BROKER, GAP_CLUSTER, GAP_SHARDS, TRACKER, gap
from pulsar_steward.model.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.checks.check import Answers, CheckContext, Row
    from pulsar_steward.checks.delayed.failover import Estimate


# The bucket tracker does not read the delayed backlog again.
LOADS = f"""
with again as (select broker, sum(messages)::bigint as messages, max(most) as most from delayed group by broker),
sessions as (
    select broker, max(try_cast(trim(value) as bigint)) as session_milliseconds
    from setting('metadataStoreSessionTimeoutMillis') group by broker),
at_once as (
    select broker, max(try_cast(trim(value) as bigint)) as loads_at_once
    from setting('maxConcurrentTopicLoadRequest') group by broker),
patience as (
    select broker, max(try_cast(trim(value) as bigint)) as load_timeout_seconds
    from setting('topicLoadTimeoutSeconds') group by broker),
trackers as (
    select broker, bool_or(value = '{BUCKET_TRACKER}') as in_buckets from setting('{TRACKER}') group by broker)
select broker, coalesce(bundles, 0) as bundles, topics, coalesce(in_buckets, false) as in_buckets,
    case when coalesce(in_buckets, false) then 0 else coalesce(messages, 0) end as delayed,
    case when coalesce(in_buckets, false) then 0 else coalesce(most, 0) end as most_delayed,
    coalesce(session_milliseconds, 0) as session_milliseconds, coalesce(loads_at_once, 0) as loads_at_once,
    coalesce(load_timeout_seconds, 0) as load_timeout_seconds
from brokers left join again using (broker) left join sessions using (broker) left join at_once using (broker)
    left join patience using (broker) left join trackers using (broker)
where read and topics is not null
"""


def judge(answers: Answers, context: CheckContext[FailoverTimePolicy]) -> Judgement:
    """Judges by the total time, not by its parts."""
    limits, rows = context.limits, answers["loads"].rows
    if not rows:
        return Judgement(cannot_tell="No broker told what it has loaded.")
    estimates = estimates_by_broker(answers, limits)
    over = [*(each for each in estimates if _severity(each, limits)), *_of_hosts(rows, estimates, limits)]
    if over:
        over.sort(key=lambda estimate: (-estimate.seconds, estimate.load.lost))
        return Judgement(findings=tuple(_finding(estimate, limits) for estimate in over))
    longest = sentence(min(estimates, key=lambda estimate: (-estimate.seconds, estimate.load.lost)), limits)
    # If all delayed messages are in buckets, nothing is read again, and the figures are not needed.
    unknown = None if all(row["in_buckets"] for row in rows) else gap(answers)
    if unknown:
        return Judgement(cannot_tell=f"Without delayed messages, {longest} But: {unknown}")
    if not any(row["topics"] for row in rows):
        return Judgement(cannot_tell=NOTHING_LOADED)
    return Judgement(quiet=longest + all_on_one_host([row["broker"] for row in rows]))


def estimates_by_broker(answers: Answers, policy: FailoverTimePolicy) -> list[Estimate]:
    """Estimates for the loss of each single broker that reported its load."""
    rows = answers["loads"].rows
    return [_estimate([row], rows, policy) for row in rows]


def _estimate(lost: Sequence[Row], rows: Sequence[Row], policy: FailoverTimePolicy) -> Estimate:
    """Estimate for the loss of some brokers; the others take over their load."""
    names = {row["broker"] for row in lost}
    left = [row for row in rows if row["broker"] not in names] or lost
    load = LostLoad(
        lost=lost[0]["broker"] if len(lost) == 1 else host_of(lost[0]["broker"]),
        bundles=sum(row["bundles"] for row in lost),
        topics=sum(row["topics"] for row in lost),
        delayed=sum(row["delayed"] for row in lost),
        most_delayed=max(row["most_delayed"] for row in lost),
        brokers=len(lost),
    )
    takers = RemainingBrokers(
        others=len(rows) - len(lost),
        loads_at_once=min((row["loads_at_once"] for row in left if row["loads_at_once"] > 0), default=None),
        load_timeout_seconds=min(
            (row["load_timeout_seconds"] for row in left if row["load_timeout_seconds"] > 0),
            default=policy.topic_load_timeout_seconds,
        ),
    )
    return estimated(load, takers, max(_session(row, policy) for row in lost), policy)


def _of_hosts(rows: Sequence[Row], estimates: Sequence[Estimate], policy: FailoverTimePolicy) -> Iterator[Estimate]:
    """Hosts with several brokers, but not all, whose loss is worse than the loss of any one of their brokers."""
    worst = {estimate.load.lost: _severity(estimate, policy) for estimate in estimates}
    for names in brokers_by_host([row["broker"] for row in rows]).values():
        if 1 < len(names) < len(rows):
            estimate = _estimate([row for row in rows if row["broker"] in names], rows, policy)
            severity = _severity(estimate, policy)
            if severity and severity.rank > max(each.rank if (each := worst[name]) else -1 for name in names):
                yield estimate


def _session(row: Row, policy: FailoverTimePolicy) -> float:
    configured: int = row["session_milliseconds"]
    return configured / 1000 if configured > 0 else policy.session_timeout_seconds


def _severity(estimate: Estimate, policy: FailoverTimePolicy) -> Severity | None:
    if estimate.seconds >= policy.critical_seconds:
        return Severity.CRITICAL
    return Severity.WARNING if estimate.seconds >= policy.warning_seconds else None


def _finding(estimate: Estimate, policy: FailoverTimePolicy) -> Finding:
    load = estimate.load
    return Finding(
        check_id=CHECK.check_id,
        severity=_severity(estimate, policy) or Severity.WARNING,
        subject=load.lost,
        evidence=sentence(estimate, policy),
        figures={
            "brokers": load.brokers,
            "bundles": load.bundles,
            "delayed_messages": load.delayed,
            "estimate_seconds": estimate.seconds,
            "most_delayed_messages": load.most_delayed,
            "other_brokers": estimate.takers.others,
            "topics": load.topics,
        },
    )


CHECK = Check(
    check_id="failover-time",
    order=70,
    title="Losing a broker would stop its topics for long",
    advice=(
        "Look at the largest part of the estimate: topics, bundles, or the delayed backlog.",
        "Topics: spread them over more brokers, so that each holds fewer and more take over.",
        "Loading slower than brokers could: raise maxConcurrentTopicLoadRequest, as far as the metadata store follows.",
        "A host with several brokers: spread them over hosts, or size the others for its loss.",
        "Delayed backlog: use the bucket tracker, which does not read it again.",
        "Restart one broker at a quiet time, measure how long its topics are gone, and set the rates in the policy.",
    ),
    source="docs/checks/failover-time.md; docs/knowledge.md D and E",
    policy=FailoverTimePolicy,
    shards={"delayed": BY_BROKER, **GAP_SHARDS},
    cluster={"loads": Question(LOADS), **GAP_CLUSTER},
    judge=judge,
)
