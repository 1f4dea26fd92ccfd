"""Clients that connect anew again and again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.check import MAX_FINDINGS
from pulsar_steward.checks.clients import connection_churn as check
from pulsar_steward.checks.clients.churn_brokers import LOOKUPS_FAILED, THROTTLED
from pulsar_steward.checks.clients.connection_churn import ACTIVE, FAILED, SUCCEEDED
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED
from tests.checks.clients.conftest import by_name
from tests.checks.conftest import as_text

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


@pytest.mark.parametrize("clients", [(100, 50, 60, 40), (120, 120, 0, 0)], ids=["settled", "just loaded"])
def test_the_evidence_says_what_else_it_may_be(scene: Any, clients: tuple[int, int, int, int], golden: Golden) -> None:
    """The evidence says what else may explain that the clients are new."""
    scene.measured(CALM)
    add(scene, "t", clients)
    (finding,) = scene.judged(check.CHECK).findings
    golden(finding.evidence)
    golden(as_text(finding.figures))


def test_the_evidence_of_a_broker_has_the_counts(scene: Any, golden: Golden) -> None:
    """The evidence gives a broker's active and replaced connections and its failed handshakes."""
    scene.measured({STARTED: NOW - 36_000, ACTIVE: 500, SUCCEEDED: 60_500, FAILED: 70})
    (finding,) = scene.judged(check.CHECK).findings
    assert finding.subject == "b:8080"
    golden(finding.evidence)
    golden(as_text(finding.figures))


@pytest.mark.parametrize(
    ("told", "words", "figures"),
    [
        ({}, " 720.0 times an hour.", {}),
        ({LOOKUPS_FAILED: 0, THROTTLED: 0}, " an hour.", {"connections_throttled": 0, "lookups_failed": 0}),
        (
            {LOOKUPS_FAILED: 1200, THROTTLED: 1},
            " an hour; 1,200 lookups failed; 1 connection is throttled now.",
            {"connections_throttled": 1, "lookups_failed": 1200},
        ),
        ({THROTTLED: -2}, " an hour.", {"connections_throttled": 0}),
    ],
)
def test_what_else_brokers_refused_is_evidence(
    scene: Any, told: dict[str, float], words: str, figures: dict[str, int]
) -> None:
    """Failed lookups and throttled connections are evidence where they are reported, and a negative one is 0."""
    scene.measured({STARTED: NOW - 3600, ACTIVE: 10, SUCCEEDED: 7210, **told})
    (finding,) = scene.judged(check.CHECK).findings
    assert finding.evidence.endswith(words)
    more = {key: value for key, value in finding.figures.items() if key in {"connections_throttled", "lookups_failed"}}
    assert more == figures
    assert {type(each) for each in finding.figures.values()} == {int}


def test_the_worst_are_listed_and_the_others_counted(scene: Any) -> None:
    """Topics and brokers share the list of findings, the worst severity first, and the rest is counted."""
    scene.measured(CALM | {SUCCEEDED: 2_000_000 * 24})
    for number in range(MAX_FINDINGS):
        add(scene, f"t{number}", (100, 100, 0, 0))
    add(scene, "bad", (9000, 8000, 0, 0))
    judgement = scene.judged(check.CHECK)
    assert len(judgement.findings) == MAX_FINDINGS
    assert judgement.more == 2
    assert [each.severity for each in judgement.findings[:3]] == [Severity.CRITICAL, Severity.WARNING, Severity.INFO]


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
