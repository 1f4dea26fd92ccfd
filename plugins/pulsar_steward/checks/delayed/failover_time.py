"""How long the topics of a broker would be gone if it were lost: an estimate, with the rates that it assumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import MAX_FINDINGS, Check, Judgement, Question
from pulsar_steward.checks.delayed.trackers import BUCKET_TRACKER, TRACKER
from pulsar_steward.checks.delayed.waiting import BY_BROKER, GAP_CLUSTER, GAP_SHARDS, gap
from pulsar_steward.checks.words import duration
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answers, CheckContext, Row


class FailoverTimePolicy(Section):
    """How long the loss of a broker may be felt, and the rates that the estimate assumes."""

    warning_seconds: int = Field(120, ge=1, description="four times the 30 s that the metadata session takes by itself")
    critical_seconds: int = Field(600, ge=1, description="beyond what clients retry over and people sit out")
    session_timeout_seconds: int = Field(
        30, ge=1, description="where `metadataStoreSessionTimeoutMillis` was not read; its default, measured"
    )
    bundles_assigned_per_second: int = Field(
        25, ge=1, description="by the leader, one by one: 40 ms each, the slowest unload measured"
    )
    topics_loaded_per_second_per_broker: int = Field(
        100, ge=1, description="with clients that connect: 2,000 in 7 s on three brokers of two cores in all"
    )
    delayed_messages_read_per_second: int = Field(
        50_000, ge=1, description="of a delayed backlog, by one broker or reader; assumed: measure it on yours"
    )


# The bucket tracker does not read the delayed backlog again.
LOADS = f"""
with again as (select broker, sum(messages)::bigint as messages, max(most) as most from delayed group by broker),
sessions as (
    select broker, max(try_cast(trim(value) as bigint)) as session_milliseconds
    from setting('metadataStoreSessionTimeoutMillis') group by broker),
trackers as (
    select broker, bool_or(value = '{BUCKET_TRACKER}') as in_buckets from setting('{TRACKER}') group by broker)
select broker, coalesce(bundles, 0) as bundles, topics, coalesce(in_buckets, false) as in_buckets,
    case when coalesce(in_buckets, false) then 0 else coalesce(messages, 0) end as delayed,
    case when coalesce(in_buckets, false) then 0 else coalesce(most, 0) end as most_delayed,
    coalesce(session_milliseconds, 0) as session_milliseconds
from brokers left join again using (broker) left join sessions using (broker) left join trackers using (broker)
where read and topics is not null
"""


@dataclass(frozen=True)
class Load:
    """What the others have to take over from a broker.

    Attributes:
        broker: ``host:webport``.
        bundles: Bundles that it owns.
        topics: Topics that are loaded on it.
        delayed: Delayed messages that are read anew, of all its subscriptions.
        most_delayed: Of them, those of one subscription, which one reader reads.
    """

    broker: str
    bundles: int
    topics: int
    delayed: int
    most_delayed: int


@dataclass(frozen=True)
class Estimate:
    """Seconds until everything of a broker is served again, by part."""

    load: Load
    others: int
    session: float
    assigning: float
    loading: float
    reading: float

    @property
    def seconds(self) -> int:
        """All parts, one after the other, rounded up."""
        return -int(-(self.session + self.assigning + self.loading + self.reading) // 1)


def estimated(load: Load, others: int, session_seconds: float, policy: FailoverTimePolicy) -> Estimate:
    """What losing a broker takes.

    The session ends; the leader assigns its bundles one after the other; the other brokers load its topics, each its
    part; then the delayed backlog is read, by as many brokers, but that of one subscription by one reader.

    Args:
        load: The broker.
        others: Brokers that take over; where there is none, the broker itself after its restart.
        session_seconds: Until the metadata store lets go of it.
        policy: The rates.
    """
    takers = max(others, 1)
    rate = policy.delayed_messages_read_per_second
    return Estimate(
        load=load,
        others=others,
        session=session_seconds,
        assigning=load.bundles / policy.bundles_assigned_per_second,
        loading=load.topics / (policy.topics_loaded_per_second_per_broker * takers),
        reading=max(load.delayed / (rate * takers), load.most_delayed / rate),
    )


def judge(answers: Answers, context: CheckContext[FailoverTimePolicy]) -> Judgement:
    """The time counts, whatever it is made of."""
    limits, rows = context.limits, answers["loads"].rows
    if not rows:
        return Judgement(cannot_tell="No broker told what it has loaded.")
    estimates = [estimated(_load(row), len(rows) - 1, _session(row, limits), limits) for row in rows]
    estimates.sort(key=lambda estimate: (-estimate.seconds, estimate.load.broker))
    over = [estimate for estimate in estimates if estimate.seconds >= limits.warning_seconds]
    if over:
        return Judgement(
            findings=tuple(_finding(estimate, limits) for estimate in over[:MAX_FINDINGS]),
            more=max(len(over) - MAX_FINDINGS, 0),
        )
    longest = _sentence(estimates[0], limits)
    # Where all are in buckets, nothing is read again, and nobody has to tell of it.
    unknown = None if all(row["in_buckets"] for row in rows) else gap(answers)
    if unknown:
        return Judgement(cannot_tell=f"Without delayed messages, {longest} But: {unknown}")
    return Judgement(quiet=longest)


def _load(row: Row) -> Load:
    return Load(row["broker"], row["bundles"], row["topics"], row["delayed"], row["most_delayed"])


def _session(row: Row, policy: FailoverTimePolicy) -> float:
    configured: int = row["session_milliseconds"]
    return configured / 1000 if configured > 0 else policy.session_timeout_seconds


def _finding(estimate: Estimate, policy: FailoverTimePolicy) -> Finding:
    critical = estimate.seconds >= policy.critical_seconds
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if critical else Severity.WARNING,
        subject=estimate.load.broker,
        evidence=_sentence(estimate, policy),
        figures={
            "bundles": estimate.load.bundles,
            "delayed_messages": estimate.load.delayed,
            "estimate_seconds": estimate.seconds,
            "most_delayed_messages": estimate.load.most_delayed,
            "other_brokers": estimate.others,
            "topics": estimate.load.topics,
        },
    )


def _sentence(estimate: Estimate, policy: FailoverTimePolicy) -> str:
    load, takers = estimate.load, max(estimate.others, 1)
    rate = policy.delayed_messages_read_per_second
    if load.most_delayed * takers > load.delayed:
        reading = f"{load.most_delayed:,} delayed messages of one subscription / {rate:,} per s"
    else:
        reading = f"{load.delayed:,} delayed messages / ({rate:,} per s x {takers})"
    return (
        f"Losing {load.broker} would stop its last topic for about {duration(estimate.seconds)}, an estimate:"
        f" {estimate.session:,.0f} s session"
        f" + {load.bundles:,} bundles / {policy.bundles_assigned_per_second:,} per s"
        f" + {load.topics:,} topics / ({policy.topics_loaded_per_second_per_broker:,} per s x {takers} brokers)"
        f" + {reading}."
    )


CHECK = Check(
    check_id="failover-time",
    order=70,
    title="Losing a broker would stop its topics for long",
    advice=(
        "Look at the largest part of the estimate: topics, bundles, or the delayed backlog.",
        "Topics: spread them over more brokers, so that each holds fewer and more take over.",
        "Delayed backlog: use the bucket tracker, which does not read it again.",
        "Measure the rates on your cluster (restart one broker at a quiet time) and set them in the policy.",
    ),
    source="docs/checks/failover-time.md; docs/knowledge.md D and E",
    policy=FailoverTimePolicy,
    shards={"delayed": BY_BROKER, **GAP_SHARDS},
    cluster={"loads": Question(LOADS), **GAP_CLUSTER},
    judge=judge,
)
