"""How long the topics of a broker would be gone if it were lost: an estimate, with the rates that it assumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulsar_steward.model.catalog.delayed import FAILOVER_TIME
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import MOST_FINDINGS, Check, Judgement
from steward_spark.checks.common.words import duration
from steward_spark.checks.delayed._settings import BUCKET_TRACKER, numbers, trackers
from steward_spark.checks.delayed._waiting import gap
from steward_spark.checks.delayed.delayed_index_memory import delayed_by_broker

if TYPE_CHECKING:
    from pulsar_steward.policy.checks.delayed import FailoverTimePolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames

SESSION_KEY = "metadataStoreSessionTimeoutMillis"


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


def _judge(frames: Frames, policy: Policy) -> Judgement:
    limits = policy.failover_time
    loads, others = _loads(frames)
    if not loads:
        return Judgement(cannot_tell="No broker told what it has loaded.")
    sessions = numbers(frames, SESSION_KEY)
    estimates = [estimated(load, others, _session(sessions.get(load.broker, 0), limits), limits) for load in loads]
    estimates.sort(key=lambda estimate: (-estimate.seconds, estimate.load.broker))
    over = [estimate for estimate in estimates if estimate.seconds >= limits.warning_seconds]
    if over:
        return Judgement(
            findings=tuple(_finding(estimate, limits) for estimate in over[:MOST_FINDINGS]),
            more=max(len(over) - MOST_FINDINGS, 0),
        )
    unknown = _blind_to_delayed(frames, loads)
    if unknown:
        return Judgement(cannot_tell=f"Without delayed messages, {_sentence(estimates[0], limits)} But: {unknown}")
    return Judgement(quiet=_sentence(estimates[0], limits))


def _session(configured_milliseconds: int, policy: FailoverTimePolicy) -> float:
    return configured_milliseconds / 1000 if configured_milliseconds > 0 else policy.session_timeout_seconds


def _loads(frames: Frames) -> tuple[list[Load], int]:
    """The brokers that told what they have loaded, and how many others each would leave."""
    rows = frames.brokers.where("read and topics is not null").select("broker", "bundles", "topics").collect()
    delayed = {row["broker"]: row for row in delayed_by_broker(frames).collect()}
    buckets = {broker for broker, tracker in trackers(frames).items() if tracker == BUCKET_TRACKER}
    loads = []
    for row in rows:
        again = None if row["broker"] in buckets else delayed.get(row["broker"])
        counts = (again["messages"], again["most"]) if again else (0, 0)
        loads.append(Load(row["broker"], row["bundles"] or 0, row["topics"], *counts))
    return loads, len(rows) - 1


def _blind_to_delayed(frames: Frames, loads: list[Load]) -> str | None:
    """Why the delayed backlog may be missing in the estimate; None where none is read again, or all is known."""
    tracker_of = trackers(frames)
    if all(tracker_of.get(load.broker) == BUCKET_TRACKER for load in loads):
        return None
    return gap(frames)


def _finding(estimate: Estimate, policy: FailoverTimePolicy) -> Finding:
    critical = estimate.seconds >= policy.critical_seconds
    return Finding(
        check_id=FAILOVER_TIME.check_id,
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


CHECK = Check(FAILOVER_TIME, _judge)
