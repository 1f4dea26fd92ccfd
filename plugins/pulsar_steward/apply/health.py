"""Health of the topics and coordinators that a change touches, right before and after it, and its effect on the batch.

Each topic's statistics are read from its owner one by one, and are current. The owner's summary of all topics is up to
1 min old.
"""

from __future__ import annotations

import logging
import time
from enum import StrEnum
from math import isfinite
from threading import Event
from typing import TYPE_CHECKING, Any

import msgspec
from tenacity import Retrying, retry_if_result, stop_after_delay, stop_when_event_set, wait_fixed

from pulsar_steward.decoding import convert
from pulsar_steward.errors import AdminError, Halted, NotFound
from pulsar_steward.model.bundles import TC_NAMESPACE, BundleRange, position_of, tc_topic
from pulsar_steward.model.topics import is_own_topic
from pulsar_steward.model.units import counted
from pulsar_steward.pulsar import paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.changes.kind import DisturbedBundle
    from pulsar_steward.ledger.rows import StepOutcome
    from pulsar_steward.policy.schema import HealthPolicy

log = logging.getLogger(__name__)

LATENCY = "pulsar_broker_publish_latency"
QUANTILE = "0.99"
READY = "Ready"

_POLL_SECONDS = 1.0


class Level(StrEnum):
    """Level of health after a change: the batch goes on, slows down or stops."""

    FINE = "fine"
    STRAINED = "strained"
    WORSE = "worse"


class TopicVitals(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one topic, at one instant."""

    producers: int = 0
    consumers: int = 0
    backlog: int = 0


class Vitals(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a changed bundle, at one instant.

    Attributes:
        topics: The watched topics by name.
        coordinators: States of the bundle's transaction coordinators in use, by number.
        publish_milliseconds: 99th percentile of publish latency at the owner; None: nothing published, or not known.
    """

    topics: dict[str, TopicVitals] = {}
    coordinators: dict[int, str] = {}
    publish_milliseconds: int | None = None

    @property
    def clients(self) -> int:
        """Producers and consumers of the watched topics."""
        return sum(topic.producers + topic.consumers for topic in self.topics.values())

    @property
    def backlog(self) -> int:
        """Messages of the watched topics' backlogs."""
        return sum(topic.backlog for topic in self.topics.values())


class _RecordedHealth(msgspec.Struct, frozen=True):
    """Decoded fields of the health in a recorded proof."""

    level: Level


class _RecordedProof(msgspec.Struct, frozen=True):
    """Decoded fields of a proof in the ledger: the health, if the bundle was watched."""

    health: _RecordedHealth | None = None


def recorded_level(outcome: StepOutcome) -> Level | None:
    """Level of health after a step, from the ledger; None: nothing was watched, or it cannot be read."""
    try:
        health = convert(outcome.proof, _RecordedProof).health
    except msgspec.ValidationError:
        return None
    return health.level if health else None


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Health of a changed bundle, with the figures as the ledger stores them."""

    level: Level
    words: str
    values: dict[str, Any] = {}


def vitals_of(
    reader: LiveReader, bundle: DisturbedBundle, owner: str, topics: Iterable[str] | None, watched: int
) -> Vitals:
    """Present figures of a bundle's topics, coordinators and owner.

    Args:
        reader: Reads the cluster.
        bundle: The bundle.
        owner: Its owner, read a moment before.
        topics: Names of the topics; None: the topics with most clients.
        watched: Number of topics if `topics` is None.

    Raises:
        AdminError: If the owner cannot be read.
    """
    if bundle.namespace == TC_NAMESPACE:
        inside = BundleRange.parse(bundle.bundle)
        numbers = [number for number in range(reader.coordinators()) if position_of(tc_topic(number)) in inside]
        return Vitals(coordinators=reader.coordinator_states(owner, numbers))
    names = _busiest(reader, bundle, owner, watched) if topics is None else topics
    found = {name: _topic(reader, owner, name) for name in names}
    return Vitals(topics=found, publish_milliseconds=_publish_milliseconds(reader, owner) if found else None)


def _busiest(reader: LiveReader, bundle: DisturbedBundle, owner: str, watched: int) -> list[str]:
    topics = reader.topics(owner, bundle.namespace, bundle.bundle)
    clients = {name: topic.clients for name, topic in topics.items()}
    # Brokers connect to Pulsar's own topics as they like: their readers of `__change_events` prove nothing.
    with_clients = (name for name, count in clients.items() if count and not is_own_topic(name))
    return sorted(filter(paths.can_hold, with_clients), key=lambda name: (-clients[name], name))[:watched]


def _topic(reader: LiveReader, owner: str, name: str) -> TopicVitals:
    try:
        detail = reader.details(owner, name)
    except NotFound:  # not loaded: no client came back
        return TopicVitals()
    subscriptions = detail.subscriptions.values()
    return TopicVitals(
        producers=len(detail.publishers),
        consumers=sum(len(each.consumers) for each in subscriptions),
        backlog=sum(each.msg_backlog for each in subscriptions),
    )


def _publish_milliseconds(reader: LiveReader, owner: str) -> int | None:
    latencies = [
        sample.value
        for sample in reader.samples(owner, {LATENCY: float("nan")})
        if sample.labels.get("quantile") == QUANTILE and isfinite(sample.value)
    ]
    return round(max(latencies)) if latencies else None


def judged(before: Vitals, now: Vitals, policy: HealthPolicy) -> Health:
    """Health of a changed bundle, by its figures before and after; pure.

    Args:
        before: Figures right before the change.
        now: Figures after it, once clients had time to reconnect.
        policy: Limits on how much worse they may be.
    """
    signs = [*_missing_clients(before, now, policy), *_backlog(before, now, policy)]
    signs += [*_latency(before, now, policy), *_coordinators(before, now)]
    level = max((each for each, _ in signs), key=list(Level).index, default=Level.FINE)
    watched = counted(before.clients, "watched client is", "watched clients are")
    back = f"{now.clients} of {watched} connected" if before.clients else ""
    words = "; ".join(said for each, said in signs if each is level and each is not Level.FINE) or back
    values = {"level": level.value, "before": msgspec.to_builtins(before), "after": msgspec.to_builtins(now)}
    return Health(level=level, words=words, values=values if before != Vitals() else {})


def _missing_clients(before: Vitals, now: Vitals, policy: HealthPolicy) -> Iterable[tuple[Level, str]]:
    for kind in ("producers", "consumers"):
        had = {name: getattr(topic, kind) for name, topic in before.topics.items()}
        has = {name: getattr(now.topics.get(name, TopicVitals()), kind) for name in had}
        missing = sum(max(had[name] - has[name], 0) for name in had)
        if missing:
            most = sum(had.values()) * policy.most_missing_clients_percent / 100
            worst = max(had, key=lambda name: (had[name] - has[name], name))
            seconds = policy.return_seconds
            said = f"{missing} of {sum(had.values())} {kind} are not back after {seconds} s, most of {worst}"
            yield _level(missing, most), said


def _backlog(before: Vitals, now: Vitals, policy: HealthPolicy) -> Iterable[tuple[Level, str]]:
    if now.backlog > max(before.backlog, policy.backlog_floor_messages):
        growth = now.backlog - before.backlog
        most = before.backlog * policy.most_backlog_growth_percent / 100
        grown = f"from {before.backlog:,} to {counted(now.backlog, 'message')}"
        yield _level(growth, most), f"the watched topics' backlog grew {grown}"


def _latency(before: Vitals, now: Vitals, policy: HealthPolicy) -> Iterable[tuple[Level, str]]:
    was, is_now, most = (
        before.publish_milliseconds or 0,
        now.publish_milliseconds or 0,
        policy.most_publish_milliseconds,
    )
    if was <= most and is_now > max(was, most / 2):
        yield _level(is_now, most), f"publishing takes {is_now} ms at the 99th percentile, {was} ms before"


def _coordinators(before: Vitals, now: Vitals) -> Iterable[tuple[Level, str]]:
    bad = {number: state for number, state in now.coordinators.items() if state != READY}
    if bad:
        named = ", ".join(f"{number} is {state}" for number, state in sorted(bad.items()))
        were_ready = any(before.coordinators.get(number) == READY for number in bad)
        yield Level.WORSE if were_ready else Level.STRAINED, f"transaction coordinators have not recovered: {named}"


def _level(value: float, most: float) -> Level:
    if value > most:
        return Level.WORSE
    return Level.STRAINED if value * 2 > most else Level.FINE


def _cut_short(health: Health) -> Health:
    """Health if a halt ended the watch early."""
    level = Level.STRAINED
    words = "whether clients and coordinators come back is not known: a halt ended the watching"
    return Health(level=level, words=words, values={**health.values, "level": level.value})


class Watch:
    """Watch over a bundle before its change: reads the figures now, to compare them with those after the change.

    Args:
        reader: Reads the cluster.
        bundle: The bundle.
        policy: Number of watched topics, time limit, and limits on how much worse they may be.
        rest: Waits for a number of seconds; raises `Halted` if somebody said stop.
    """

    def __init__(
        self, reader: LiveReader, bundle: DisturbedBundle, policy: HealthPolicy, rest: Callable[[float], None]
    ) -> None:
        self._reader = reader
        self._bundle = bundle
        self._policy = policy
        self._rest = rest
        self._before: Vitals | None = None
        if policy.watched_topics:
            try:
                self._before = vitals_of(reader, bundle, bundle.owner_before, None, policy.watched_topics)
            except AdminError as error:
                log.warning("%s: how it does before the change cannot be read: %s", bundle.bundle, error)

    def ends(self) -> Health:
        """Health after the change, once it is fine, the policy's time is up, or somebody said stop.

        The change itself is proved already; a halt refuses later ones. Clients that are not back at a halt may still
        reconnect: the health is then reported as not known, not as harm.
        """
        before, halted = self._before, Event()
        if before is None:
            return Health(level=Level.FINE, words="")

        def rest(seconds: float) -> None:
            try:
                self._rest(seconds)
            except Halted:
                halted.set()
            except Exception as error:  # noqa: BLE001 - a change was made, and what came of it has to be recorded
                log.warning("whether somebody said stop cannot be seen: %s", error)
                time.sleep(seconds)

        looking = Retrying(
            retry=retry_if_result(lambda health: health.level is not Level.FINE),
            stop=stop_after_delay(self._policy.return_seconds) | stop_when_event_set(halted),
            wait=wait_fixed(_POLL_SECONDS),
            sleep=rest,
            retry_error_callback=lambda state: state.outcome and state.outcome.result(),
        )
        health: Health = looking(self._once, before)
        return _cut_short(health) if halted.is_set() and health.level is not Level.FINE else health

    def _once(self, before: Vitals) -> Health:
        bundle = self._bundle
        try:
            now = vitals_of(self._reader, bundle, bundle.owner_after, before.topics, 0)
            return judged(before, now, self._policy)
        except Exception as error:  # noqa: BLE001 - a change was made, and what came of it has to be recorded
            words = f"how it does after the change cannot be read: {error}"
            return Health(level=Level.STRAINED, words=words, values={"level": Level.STRAINED.value})
