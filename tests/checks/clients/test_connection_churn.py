"""Clients that connect anew again and again, in one snapshot and over several."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.check import MAX_FINDINGS
from pulsar_steward.checks.clients import connection_churn as check
from pulsar_steward.checks.clients.churn_brokers import LOOKUPS_FAILED, THROTTLED
from pulsar_steward.checks.clients.connection_churn import ACTIVE, FAILED, SUCCEEDED
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import DELAYED_SERIES, STARTED
from tests.checks.clients.conftest import Scene, by_name
from tests.checks.conftest import told

if TYPE_CHECKING:
    from tests.golden import Golden

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC).timestamp()
CALM = {STARTED: NOW - 86_400, ACTIVE: 1000, SUCCEEDED: 1300, FAILED: 0}

# Producers, of them new ones, consumers, of them new ones.
TOPICS: dict[str, tuple[tuple[int, int, int, int], Severity | None]] = {
    "settled": ((500, 5, 500, 5), None),
    "just-below-half": ((50, 0, 50, 49), None),
    "half": ((50, 25, 50, 25), Severity.WARNING),
    "only-producers": ((100, 99, 0, 0), Severity.WARNING),
    "few-clients": ((50, 49, 49, 48), None),
    "all-new": ((3000, 3000, 6000, 6000), Severity.INFO),
    "many": ((0, 0, 8000, 4999), Severity.WARNING),
    "too-many": ((0, 0, 8000, 5000), Severity.CRITICAL),
    "persistent://t/n/__change_events": ((0, 0, 200, 199), None),
}


def add(scene: Any, name: str, clients: tuple[int, int, int, int], broker: str = "b:8080") -> None:
    """A topic with so many producers, new producers, consumers and new consumers."""
    producers, new_producers, consumers, new_consumers = clients
    scene.topic(
        name, broker=broker, producers=producers, producers_connected_recently=new_producers, consumers=consumers
    )
    topic = scene.rows["topics"][-1]["topic"]
    for subscription, new in (("a", new_consumers // 3), ("s", new_consumers - new_consumers // 3)):
        scene.add("subscriptions", topic=topic, subscription=subscription, consumers_connected_recently=new)


def test_severity_follows_from_the_share_of_new_clients(scene: Any) -> None:
    """Mostly new clients are a warning, or critical if very many, and information when all clients are new."""
    scene.measured(CALM)
    for name, (clients, _) in TOPICS.items():
        add(scene, name, clients)
    judgement = scene.judged(check.CHECK)
    assert by_name(judgement) == {name: severity for name, (_, severity) in TOPICS.items() if severity}
    assert next(iter(by_name(judgement))) == "too-many"


def test_clients_of_a_broker_that_just_started_are_naturally_new(scene: Any) -> None:
    """Clients are not judged on a broker that started within twice `collect.recent_minutes`."""
    for broker, started in (("young:1", NOW - 1199), ("old:1", NOW - 1200), ("unknown:1", None)):
        scene.add("brokers", broker=broker, read=True)
        add(scene, broker.partition(":")[0], (100, 99, 0, 0), broker)
        if started is not None:
            scene.measured(CALM | {STARTED: started, SUCCEEDED: 1000}, broker)
        else:
            scene.measured({key: value for key, value in CALM.items() if key != STARTED}, broker)
    assert by_name(scene.judged(check.CHECK)) == {"old": Severity.WARNING, "unknown": Severity.WARNING}


# Uptime in seconds, connections now, handshakes since the start.
BROKERS: dict[str, tuple[tuple[int, int, int], Severity | None]] = {
    "calm:1": ((86_400, 1000, 1300), None),
    "hourly:1": ((7200, 4000, 12_000), Severity.WARNING),
    "nearly-hourly:1": ((7200, 4000, 11_999), None),
    "few-a-minute:1": ((7200, 10, 7209), None),
    "enough-a-minute:1": ((7200, 10, 7210), Severity.WARNING),
    "nobody-left:1": ((7200, 0, 7200), Severity.WARNING),
    "just-started:1": ((1199, 10, 100_000), None),
    "fewer-than-active:1": ((7200, 10, 9), None),
}


def test_severity_follows_from_how_long_connections_last(scene: Any) -> None:
    """A broker whose many connections are all replaced every hour gives a warning."""
    for broker, ((uptime, active, succeeded), _) in BROKERS.items():
        scene.add("brokers", broker=broker, read=True)
        scene.measured({STARTED: NOW - uptime, ACTIVE: active, SUCCEEDED: succeeded}, broker)
    judgement = scene.judged(check.CHECK)
    assert by_name(judgement) == {broker: severity for broker, (_, severity) in BROKERS.items() if severity}
    assert next(iter(by_name(judgement))) == "nobody-left:1"


def test_what_it_says(golden: Golden) -> None:
    """What else may explain new clients, and what else brokers refused, where they tell it: a negative number is 0."""
    settled, loaded, many = Scene().measured(CALM), Scene().measured(CALM), Scene()
    add(settled, "t", (100, 50, 60, 40))
    add(loaded, "t", (120, 120, 0, 0))
    many.measured(CALM | {SUCCEEDED: 2_000_000 * 24})
    for number in range(MAX_FINDINGS):
        add(many, f"t{number}", (100, 100, 0, 0))
    add(many, "bad", (9000, 8000, 0, 0))
    short = {STARTED: NOW - 3600, ACTIVE: 10, SUCCEEDED: 7210}
    cases = {
        "a topic that rests": settled,
        "a topic that was just loaded": loaded,
        "a broker's connections": Scene().measured({STARTED: NOW - 36_000, ACTIVE: 500, SUCCEEDED: 60_500, FAILED: 70}),
        "nothing else is told": Scene().measured(short),
        "nothing else was refused": Scene().measured(short | {LOOKUPS_FAILED: 0, THROTTLED: 0}),
        "lookups failed": Scene().measured(short | {LOOKUPS_FAILED: 1200, THROTTLED: 1}),
        "a negative number": Scene().measured(short | {THROTTLED: -2}),
        "topics and brokers, more than a hundred": many,
    }
    golden(told({rule: scene.judged(check.CHECK) for rule, scene in cases.items()}))


UNKNOWN: dict[str, tuple[dict[str, float], bool, bool]] = {
    "everything is there": (CALM, True, True),
    "no failure was counted": ({key: value for key, value in CALM.items() if key != FAILED}, True, True),
    "no start": ({key: value for key, value in CALM.items() if key != STARTED}, True, False),
    "no connections": ({key: value for key, value in CALM.items() if key != ACTIVE}, True, False),
    "not a number": (CALM | {SUCCEEDED: float("nan")}, True, False),
    "no metrics at all": ({}, True, False),
    "no broker": (CALM, False, False),
}


@pytest.mark.parametrize(("series", "read", "known"), UNKNOWN.values(), ids=UNKNOWN)
def test_silence_means_health_only_where_connections_are_counted(
    scene: Any, series: dict[str, float], read: bool, known: bool
) -> None:
    """The check cannot tell without a finding when a broker or its connection counters were not read."""
    scene.measured(series)
    scene.rows["brokers"] = [{"broker": "b:8080", "read": read}]
    judgement = scene.judged(check.CHECK)
    assert (judgement.findings, judgement.cannot_tell is None) == ((), known)


MINUTES = 15
START = 1_767_355_200.0 - 86_400
"""When the broker started: a day before the snapshot."""

Clients = tuple[int, int] | None
"""Producers, and of them new ones; None: the topic is not there."""

NEW, LATER_CALM, SOME_NEW = (1000, 1000), (1000, 10), (1000, 600)
LATER_TOPICS: dict[str, tuple[list[Clients], Severity | None]] = {
    "a new topic": ([None, None, NEW], None),
    "moved or restarted once": ([LATER_CALM, LATER_CALM, NEW], Severity.INFO),
    "moved or restarted twice": ([LATER_CALM, NEW, NEW], Severity.INFO),
    "all new again and again": ([LATER_CALM, NEW, NEW, NEW], Severity.WARNING),
    "a deployment": ([LATER_CALM, SOME_NEW], Severity.INFO),
    "mostly new again": ([LATER_CALM, SOME_NEW, SOME_NEW], Severity.WARNING),
    "a new topic that fills": ([None, SOME_NEW], Severity.INFO),
    "very many at once": ([(9000, 10), (9000, 6000)], Severity.CRITICAL),
}


def test_a_topics_clients_are_compared_with_earlier_snapshots() -> None:
    """Severity follows from how a topic's new clients compare with those of earlier snapshots."""
    scenes = [calm(Scene(number * MINUTES)) for number in range(4)]
    for name, (history, _) in LATER_TOPICS.items():
        for scene, clients in zip(scenes, reversed(history), strict=False):
            a_topic(scene, clients, name=name)
    newest, *earlier = scenes
    found = by_name(newest.judged(check.CHECK, earlier=earlier))
    assert found == {name: severity for name, (_, severity) in LATER_TOPICS.items() if severity}


@pytest.mark.parametrize(
    ("clients", "partial", "severity"),
    [(NEW, False, Severity.INFO), (NEW, True, Severity.INFO), (SOME_NEW, False, Severity.WARNING)],
)
def test_where_nothing_can_be_compared_it_is_told(clients: Clients, partial: bool, severity: Severity) -> None:
    """Without an earlier whole snapshot the newest one alone gives a finding and its severity."""
    earlier = [calm(Scene(MINUTES)).partial()] if partial else []
    (finding,) = a_topic(calm(Scene(0)), clients).judged(check.CHECK, earlier=earlier).findings
    assert finding.severity is severity


def calm(scene: Any) -> Any:
    """A broker whose connections last."""
    return scene.measured({STARTED: START, ACTIVE: 1000, SUCCEEDED: 1300})


def a_topic(scene: Any, clients: Clients, broker: str = "b:8080", name: str = "t") -> Any:
    """A topic like that."""
    if clients is not None:
        producers, new = clients
        scene.topic(name, producers=producers, consumers=0, producers_connected_recently=new, broker=broker)
    return scene


def test_what_is_no_second_time() -> None:
    """New clients of a topic that moves each time, or of a snapshot five minutes before, are information only."""
    owners = ("b:8080", "c:8080", "b:8080", "c:8080")
    moving = [a_topic(calm(Scene(number * MINUTES)), NEW, owner) for number, owner in enumerate(owners)]
    seen_twice = ((0, NEW), (5, NEW), (11, LATER_CALM), (16, LATER_CALM), (21, LATER_CALM))
    again = [a_topic(calm(Scene(minutes)), clients) for minutes, clients in seen_twice]
    for (scene, *earlier), words in ((moving, "just loaded or moved"), (again, "")):
        (finding,) = scene.judged(check.CHECK, earlier=earlier).findings
        assert finding.severity is Severity.INFO
        assert words in finding.evidence


# Connections now and handshakes since the start: a quarter of an hour ago, and now.
LATER_BROKERS: dict[str, tuple[tuple[int, int], tuple[int, int], Severity | None]] = {
    "calm": ((1000, 1300), (1000, 1310), None),
    "a deployment": ((1000, 1300), (1000, 2300), None),
    "a burst after weeks of calm": ((1000, 1300), (1000, 4300), Severity.WARNING),
    "just no burst": ((1000, 1300), (1000, 4299), None),
    "clients that only came": ((1000, 1300), (9000, 9300), None),
    "clients that only left": ((9000, 9300), (1000, 9400), None),
    "few connections": ((10, 1300), (10, 1300 + 60 * MINUTES - 1), None),
    "a storm that is over": ((5000, 150_000), (5000, 150_010), Severity.INFO),
    "a storm that goes on": ((5000, 150_000), (5000, 152_000), Severity.WARNING),
}


def test_a_burst_shows_between_snapshots() -> None:
    """A burst of replaced connections is found between snapshots, and a storm that is over is information."""
    scene, earlier = Scene(0), Scene(MINUTES)
    for broker, (*counts, _) in LATER_BROKERS.items():
        for each, (active, succeeded) in zip((earlier, scene), counts, strict=True):
            each.add("brokers", broker=broker, read=True)
            each.measured({STARTED: START, ACTIVE: active, SUCCEEDED: succeeded}, broker)
    found = by_name(scene.judged(check.CHECK, earlier=[earlier]))
    assert found == {broker: severity for broker, (*_, severity) in LATER_BROKERS.items() if severity}


def test_what_it_says_over_time(golden: Golden) -> None:
    """Counters of another process are not compared, and readers come and go by nature."""
    counted = {STARTED: START, ACTIVE: 500}
    restarted = Scene(0).measured({STARTED: START, ACTIVE: 1000, SUCCEEDED: 9000})
    before = Scene(MINUTES).measured({STARTED: START - 3600, ACTIVE: 1000, SUCCEEDED: 3000})
    burst = Scene(0).measured(counted | {SUCCEEDED: 8000})
    cases = {
        "a burst between two snapshots": burst.judged(
            check.CHECK, earlier=[Scene(MINUTES).measured(counted | {SUCCEEDED: 2000})]
        ),
        "restarted between two snapshots": restarted.judged(check.CHECK, earlier=[before]),
        "new readers": a_namespace(calm(Scene()), CHURN, subscription="reader-1a2b3c4d5e").judged(check.CHECK),
        "a namespace in a single snapshot": a_namespace(calm(Scene()), CHURN).judged(check.CHECK),
    }
    golden(told(cases))


Namespace = tuple[int, int, int] | None
"""Small topics, clients on each and new ones among them; None: not there."""

QUIET, CHURN = (300, 4, 0), (300, 4, 3)
NAMESPACES: dict[str, tuple[list[Namespace], Severity | None]] = {
    "t/quiet": ([QUIET], None),
    "t/deployment": ([QUIET, QUIET, CHURN], None),
    "t/new": ([None, None, CHURN], None),
    "t/again": ([QUIET, CHURN, CHURN], Severity.INFO),
    "t/again-and-again": ([CHURN, CHURN, CHURN], Severity.WARNING),
    "t/few-clients": ([(200, 4, 4)] * 3, None),
    "t/fewer-than-half": ([(300, 4, 1)] * 3, None),
}


def test_small_topics_count_together() -> None:
    """Topics with few clients each are judged together, by namespace."""
    scenes = [calm(Scene(number * MINUTES)) for number in range(3)]
    for name, (history, _) in NAMESPACES.items():
        for scene, like in zip(scenes, reversed(history), strict=False):
            a_namespace(scene, like, name)
    newest, *earlier = scenes
    found = by_name(newest.judged(check.CHECK, earlier=earlier))
    assert found == {name: severity for name, (_, severity) in NAMESPACES.items() if severity}


def a_namespace(scene: Any, like: Namespace, name: str = "t/n", subscription: str = "s") -> Any:
    """Topics on two brokers with a producer and consumers, some of which are new."""
    topics, clients, new = like or (0, 0, 0)
    for number in range(topics):
        topic = f"persistent://{name}/t{number}"
        consumers = {"producers": 1, "producers_connected_recently": min(new, 1), "consumers": clients - 1}
        scene.topic(topic, namespace=name, broker=("b:8080", "c:8080")[number % 2], **consumers)
        scene.add("subscriptions", topic=topic, subscription=subscription, consumers_connected_recently=max(0, new - 1))
    return scene


TRACKER = "delayedDeliveryTrackerFactoryClassName"
BUCKETS = "org.apache.pulsar.broker.delayed.BucketDelayedDeliveryTrackerFactory"
GONE, ANEW, STAYED = {"consumers": 0}, {"consumers_connected_recently": 1}, {"consumers_connected_recently": 0}
READ_AGAIN: dict[str, tuple[list[dict[str, int]], dict[str, Any], bool]] = {
    "gone between": ([ANEW, GONE, ANEW], {}, True),
    "other ones each time": ([ANEW, ANEW, ANEW], {}, True),
    "a deployment": ([ANEW, GONE, STAYED], {}, False),
    "one that is new twice": ([ANEW, ANEW], {}, False),
    "one that is there": ([STAYED, GONE, ANEW], {}, False),
    "little to read": ([ANEW, GONE, ANEW], {"backlog_entries": 99_999}, False),
    "in buckets": ([ANEW, GONE, ANEW], {"tracker": BUCKETS}, False),
    "nothing is delayed": ([ANEW, GONE, ANEW], {"delayed": 0}, False),
    "an older connection": ([ANEW, GONE, ANEW], {"since": "2026-01-02T11:29:00Z"}, False),
}


@pytest.mark.parametrize(("looks", "more", "found"), READ_AGAIN.values(), ids=READ_AGAIN)
def test_an_index_that_is_lost_with_each_consumer_is_found(
    golden: Golden, looks: list[dict[str, int]], more: dict[str, Any], found: bool
) -> None:
    """Its backlog is read again each time (apache/pulsar#23912); looks are 15 minutes apart, the newest first."""
    scenes = []
    for number, look in enumerate(looks):
        each = Scene(15 * number).configured(**{TRACKER: more.get("tracker", "")})
        each.subscription("t", **{"consumers": 1, "backlog_entries": more.get("backlog_entries", 100_000)} | look)
        each.consumer("t", "c", connected_since=more.get("since", "2026-01-02T11:59:00Z"))
        delayed = {DELAYED_SERIES: more.get("delayed", 7)}
        scenes.append(each.measured(delayed, topic="persistent://t/n/t", subscription="s"))
    findings = scenes[0].judged(check.CHECK, earlier=scenes[1:]).findings
    assert [each.subject for each in findings] == ["persistent://t/n/t subscription s"] * found
    if findings:
        golden(findings[0].evidence)
