"""Time for which the topics of a lost broker would be unavailable: an estimate, with the rates that it assumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.checks.delayed.waiting import (
    BUCKET_TRACKER,
    BY_BROKER,
    GAP_CLUSTER,
    GAP_SHARDS,
    NOTHING_LOADED,
    TRACKER,
    all_on_one_host,
    brokers_by_host,
    gap,
    host_of,
)
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, rate_side_by_side, seconds_in_words, total_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.checks.check import CheckContext, Queried, Row


class FailoverTimePolicy(Section):
    """Thresholds for the time that clients feel the loss of a broker, and the rates assumed in the estimate."""

    warning_seconds: int = number(
        150, "beyond the session (30 s), a minute of loading topics, and clients' longest back-off (60 s)"
    )
    critical_seconds: int = number(600, "beyond what clients retry over and people sit out")
    session_timeout_seconds: int = number(
        30, "where `metadataStoreSessionTimeoutMillis` was not read; its default, measured"
    )
    bundles_assigned_per_second: int = number(25, "by the leader, one by one: 40 ms each, the slowest unload measured")
    topics_loaded_per_second_per_broker: int = number(
        100, "with clients that connect: 2,000 in 7 s on three brokers of two cores in all"
    )
    topics_loaded_per_second_in_all: int = number(
        1_000,
        "by any number of brokers: one metadata store serves them, about 8 operations a topic"
        " (apache/pulsar#300); assumed: measure it on yours",
    )
    milliseconds_per_topic_load: int = number(
        500, "of one topic while many are loaded: as many at a time as `maxConcurrentTopicLoadRequest` says; assumed"
    )
    topic_load_timeout_seconds: int = number(60, "where `topicLoadTimeoutSeconds` was not read; its default")
    client_backoff_seconds: int = number(
        60,
        "the longest wait of clients between two attempts, which they double at each; the default of Pulsar's own",
        ge=0,
    )
    delayed_messages_read_per_second: int = number(
        50_000, "of a delayed backlog, by one broker or reader; assumed: measure it on yours"
    )
    moves_count_for_days: int = number(
        90, "for which a question quotes how long Steward's own moves took; older ones are left out"
    )


@dataclass(frozen=True)
class LostLoad:
    """Load that the other brokers have to take over.

    Attributes:
        lost: A broker, ``host:webport``, or a host with all of its brokers.
        bundles: Number of bundles that it owns.
        topics: Number of topics that are loaded on it.
        delayed: Number of delayed messages that are read again, over all its subscriptions.
        most_delayed: The largest number for one subscription, which one reader reads.
        brokers: Number of brokers that are lost.
    """

    lost: str
    bundles: int
    topics: int
    delayed: int
    most_delayed: int
    brokers: int = 1

    @property
    def words(self) -> str:
        """Name of the lost broker or host, for a sentence."""
        return self.lost if self.brokers == 1 else f"host {self.lost} with its {counted(self.brokers, 'broker')}"


@dataclass(frozen=True)
class RemainingBrokers:
    """Brokers that take over.

    Attributes:
        others: Number of remaining brokers; if 0, the broker itself takes over after its restart.
        loads_at_once: Maximum number of topics that each broker loads at a time; None: not known.
        load_timeout_seconds: Time after which the load of a topic fails, including the wait for its turn.
    """

    others: int
    loads_at_once: int | None = None
    load_timeout_seconds: int = 60

    @property
    def brokers(self) -> int:
        """Number of brokers that take over, at least one."""
        return max(self.others, 1)


@dataclass(frozen=True)
class Estimate:
    """Estimated seconds until everything is served again, by part.

    Attributes:
        load: The load that is lost.
        takers: The brokers that take it over.
        session: Until the metadata session of the lost broker ends.
        assigning: Until all bundles have a new owner.
        loading: Until all topics are loaded.
        backing_off: Until clients try again after failed attempts.
        reading: Until the delayed backlog is read.
    """

    load: LostLoad
    takers: RemainingBrokers
    session: float
    assigning: float
    loading: float
    backing_off: float
    reading: float

    @property
    def seconds(self) -> int:
        """Sum of all parts, one after the other, rounded up."""
        return total_seconds(self.session, self.assigning, self.loading, self.backing_off, self.reading)

    @property
    def times_out(self) -> bool:
        """True if topics wait longer for their turn than `load_timeout_seconds`."""
        return self.loading > self.takers.load_timeout_seconds


def rate_of_one(takers: RemainingBrokers, policy: FailoverTimePolicy) -> int:
    """Topics that one broker loads per second."""
    rate = policy.topics_loaded_per_second_per_broker
    if takers.loads_at_once is None:
        return rate
    return min(rate, max(takers.loads_at_once * 1000 // policy.milliseconds_per_topic_load, 1))


def estimated(load: LostLoad, takers: RemainingBrokers, session_seconds: float, policy: FailoverTimePolicy) -> Estimate:
    """Estimates the duration of the failover, the sum of five parts.

    First, the metadata session ends. Second, the leader assigns the bundles one by one. Third, the other brokers load
    the topics, each its part, as fast as the metadata store allows. Fourth, clients back off. They double their wait at
    each attempt, so a wait may be as long as the first three parts together, up to the maximum backoff. Fifth, the
    other brokers read the delayed backlog; one subscription has one reader.

    Args:
        load: The load that is lost.
        takers: The brokers that take over.
        session_seconds: Time until the broker's metadata session ends; 0: the broker ends orderly.
        policy: The rates.
    """
    rate = policy.delayed_messages_read_per_second
    rate_of_all = policy.topics_loaded_per_second_in_all
    loading = load.topics / rate_side_by_side(rate_of_one(takers, policy), takers.brokers, rate_of_all)
    assigning = load.bundles / policy.bundles_assigned_per_second
    return Estimate(
        load=load,
        takers=takers,
        session=session_seconds,
        assigning=assigning,
        loading=loading,
        backing_off=min(session_seconds + assigning + loading, policy.client_backoff_seconds),
        reading=max(load.delayed / (rate * takers.brokers), load.most_delayed / rate),
    )


def sentence(estimate: Estimate, policy: FailoverTimePolicy) -> str:
    """The estimate with all its parts, as a sentence."""
    load, takers = estimate.load, estimate.takers
    rate = policy.delayed_messages_read_per_second
    if load.most_delayed * takers.brokers > load.delayed:
        reading = f"{counted(load.most_delayed, 'delayed message')} of one subscription / {rate:,} per s"
    else:
        reading = f"{counted(load.delayed, 'delayed message')} / ({rate:,} per s x {takers.brokers})"
    rate_of, in_all = rate_of_one(takers, policy), policy.topics_loaded_per_second_in_all
    brokers = counted(takers.brokers, "broker")
    loading = f"({rate_of:,} per s x {brokers})"
    if rate_of * takers.brokers > in_all:
        loading = f"{in_all:,} per s of all {brokers} together"
    elif rate_of < policy.topics_loaded_per_second_per_broker:
        held_back = f", as maxConcurrentTopicLoadRequest is {takers.loads_at_once:,}"
        loading = f"({rate_of:,} per s x {brokers}{held_back})"
    words = (
        f"Losing {load.words} would stop its last topic for about {seconds_in_words(estimate.seconds, rounded=True)},"
        f" an estimate: {estimate.session:,.0f} s session + {counted(load.bundles, 'bundle')} /"
        f" {policy.bundles_assigned_per_second:,} per s + {counted(load.topics, 'topic')} / {loading} +"
        f" {estimate.backing_off:,.0f} s until clients try again + {reading}."
    )
    if estimate.times_out:
        words += (
            f" Topics wait up to {estimate.loading:,.0f} s for their turn, though a load fails after"
            f" {takers.load_timeout_seconds:,} s (topicLoadTimeoutSeconds): clients then see errors and try again."
        )
    return words


# The bucket tracker does not read the delayed backlog again.
LOADS = f"""
with again as (select broker, sum(messages)::bigint as messages, max(most) as most from delayed group by broker),
settings as (
    select broker, max(number) filter (key = 'metadataStoreSessionTimeoutMillis') as session_milliseconds,
        max(number) filter (key = 'maxConcurrentTopicLoadRequest') as loads_at_once,
        max(number) filter (key = 'topicLoadTimeoutSeconds') as load_timeout_seconds
    from (select broker, key, try_cast(trim(value) as bigint) as number from configuration) group by broker),
trackers as (
    select broker, bool_or(value = '{BUCKET_TRACKER}') as in_buckets from setting('{TRACKER}') group by broker)
select broker, coalesce(bundles, 0) as bundles, topics, coalesce(in_buckets, false) as in_buckets,
    case when coalesce(in_buckets, false) then 0 else coalesce(messages, 0) end as delayed,
    case when coalesce(in_buckets, false) then 0 else coalesce(most, 0) end as most_delayed,
    greatest(coalesce(session_milliseconds, 0), 0) as session_milliseconds, coalesce(loads_at_once, 0) as loads_at_once,
    coalesce(load_timeout_seconds, 0) as load_timeout_seconds
from brokers left join again using (broker) left join settings using (broker) left join trackers using (broker)
where read and topics is not null
"""


def judge(queried: Queried, context: CheckContext[FailoverTimePolicy]) -> Judgement:
    """Judges by the total time, not by its parts."""
    limits, rows = context.limits, queried["loads"].rows
    if not rows:
        return Judgement(cannot_tell="No broker reported its loaded topics.")
    estimates = estimates_by_broker(queried, limits)
    over = [*(each for each in estimates if _severity(each, limits)), *_of_hosts(rows, estimates, limits)]
    over.sort(key=lambda estimate: (-estimate.seconds, estimate.load.lost))
    findings = tuple(
        CHECK.finding(
            severity=_severity(each, limits) or Severity.WARNING,
            subject=each.load.lost,
            evidence=sentence(each, limits),
            figures={
                "brokers": each.load.brokers,
                "bundles": each.load.bundles,
                "delayed_messages": each.load.delayed,
                "estimate_seconds": each.seconds,
                "most_delayed_messages": each.load.most_delayed,
                "other_brokers": each.takers.others,
                "topics": each.load.topics,
            },
        )
        for each in over
    )
    longest = sentence(min(estimates, key=lambda estimate: (-estimate.seconds, estimate.load.lost)), limits)
    # If all delayed messages are in buckets, nothing is read again, and the figures are not needed.
    unknown = None if all(row["in_buckets"] for row in rows) else gap(queried)
    nothing = None if any(row["topics"] for row in rows) else NOTHING_LOADED
    return Judgement(
        findings=findings,
        quiet=longest + all_on_one_host([row["broker"] for row in rows]),
        cannot_tell=f"Without delayed messages, {longest} But: {unknown}" if unknown else nothing,
    )


def estimates_by_broker(queried: Queried, policy: FailoverTimePolicy) -> list[Estimate]:
    """Estimates for the loss of each single broker that reported its load."""
    rows = queried["loads"].rows
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
    # 0: the setting was not read.
    sessions = [row["session_milliseconds"] / 1000 or policy.session_timeout_seconds for row in lost]
    return estimated(load, takers, max(sessions), policy)


def _of_hosts(rows: Sequence[Row], estimates: Sequence[Estimate], policy: FailoverTimePolicy) -> Iterator[Estimate]:
    """Hosts with several brokers, but not all, whose loss is worse than the loss of any one of their brokers."""
    worst = {estimate.load.lost: _severity(estimate, policy) for estimate in estimates}
    for names in brokers_by_host([row["broker"] for row in rows]).values():
        if 1 < len(names) < len(rows):
            estimate = _estimate([row for row in rows if row["broker"] in names], rows, policy)
            severity = _severity(estimate, policy)
            if severity and severity.rank > max(each.rank if (each := worst[name]) else -1 for name in names):
                yield estimate


def _severity(estimate: Estimate, policy: FailoverTimePolicy) -> Severity | None:
    return Severity.beyond(estimate.seconds, warning=policy.warning_seconds, critical=policy.critical_seconds)


CHECK = Check(
    check_id="failover-time",
    harm=Harm.AT_RESTART,
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
    cluster={"loads": Query(LOADS), **GAP_CLUSTER},
    judge=judge,
)
