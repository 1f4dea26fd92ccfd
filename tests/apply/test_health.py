"""Effect of a change on what it touches: judged by two looks, and heeded by the batch."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from lab.simulator import Answer, Fault
from pulsar_steward.apply.halting import StopSwitch
from pulsar_steward.apply.health import LATENCY, QUANTILE, Level, TopicVitals, Vitals, _publish_milliseconds, judged
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.apply.pace import slowed
from pulsar_steward.apply.verify import verify
from pulsar_steward.policy.schema import HealthPolicy
from pulsar_steward.pulsar.metrics import Sample
from tests.apply.worksite import quick_policy, said

if TYPE_CHECKING:
    from pulsar_steward.pulsar.calls import Call
    from pulsar_steward.pulsar.owner import TopicDetail
    from tests.apply.worksite import Worksite
    from tests.golden import Golden

POLICY = HealthPolicy(backlog_floor_messages=100)
BUSY = Vitals(
    topics={"a": TopicVitals(producers=10, consumers=30, backlog=1000), "b": TopicVitals(producers=10, consumers=10)},
    coordinators={1: "Ready", 2: "Ready"},
    publish_milliseconds=20,
)


def changed(**topic: int) -> Vitals:
    """The same, but for these figures of the first topic."""
    usual = {"producers": 10, "consumers": 30, "backlog": 1000}
    topics = {"a": TopicVitals(**{**usual, **topic}), "b": BUSY.topics["b"]}
    return Vitals(topics=topics, coordinators=BUSY.coordinators, publish_milliseconds=20)


@pytest.mark.parametrize(
    ("now", "level", "words"),
    [
        (BUSY, Level.FINE, "60 of 60 watched clients"),
        (changed(producers=12, consumers=40), Level.FINE, "72 of 60 watched clients"),
        (changed(producers=9), Level.FINE, "59 of 60 watched clients"),
        (changed(producers=8), Level.STRAINED, "2 of 20 producers"),
        (changed(producers=7), Level.WORSE, "3 of 20 producers"),
        (changed(consumers=25), Level.WORSE, "5 of 40 consumers"),
        (changed(backlog=1400), Level.FINE, "60 of 60 watched clients"),
        (changed(backlog=1600), Level.STRAINED, "from 1,000 to 1,600 messages"),
        (changed(backlog=2100), Level.WORSE, "from 1,000 to 2,100 messages"),
    ],
)
def test_clients_and_backlog_are_compared_with_those_before(
    now: Vitals, level: Level, words: str, golden: Golden
) -> None:
    health = judged(BUSY, now, POLICY)
    assert health.level is level
    assert words in health.words
    golden(health.words)
    assert health.values["after"]["topics"]["a"]["producers"] == now.topics["a"].producers


def test_a_small_backlog_is_never_trouble() -> None:
    before = Vitals(topics={"a": TopicVitals(producers=1)})
    assert judged(before, Vitals(topics={"a": TopicVitals(producers=1, backlog=99)}), POLICY).level is Level.FINE
    assert judged(before, Vitals(topics={"a": TopicVitals(producers=1, backlog=101)}), POLICY).level is Level.WORSE


@pytest.mark.parametrize(
    ("before", "now", "level"),
    [
        (20, 499, Level.FINE),
        (20, 501, Level.STRAINED),
        (20, 1001, Level.WORSE),
        (1200, 1300, Level.FINE),
        (None, 1001, Level.WORSE),
        (20, None, Level.FINE),
    ],
)
def test_publishing_that_was_quick_has_to_stay_so(before: int | None, now: int | None, level: Level) -> None:
    """Slow publishing is blamed on the change, unless publishing was slow before it."""
    assert judged(Vitals(publish_milliseconds=before), Vitals(publish_milliseconds=now), POLICY).level is level


@pytest.mark.parametrize(
    ("now", "level"),
    [
        ({1: "Ready", 2: "Ready"}, Level.FINE),
        ({}, Level.FINE),
        ({1: "Ready", 2: "Initializing"}, Level.WORSE),
        ({3: "Initializing"}, Level.STRAINED),
    ],
)
def test_coordinators_that_were_ready_have_to_recover(now: dict[int, str], level: Level) -> None:
    assert judged(BUSY, Vitals(topics=BUSY.topics, coordinators=now), POLICY).level is level


BUNDLE = "0x00000000_0xffffffff"


def watching(site: Worksite, **health: Any) -> None:
    """Little patience."""
    site.policy = quick_policy(health={"return_seconds": 1, **health})


def test_clients_that_come_back_are_told(site: Worksite) -> None:
    watching(site)
    (outcome,) = site.carry_out(site.approved(site.move(BUNDLE, namespace="shop/orders")))
    assert outcome.outcome == "done"
    assert "10 of 10 watched clients" in outcome.reason
    health = outcome.proof["health"]
    topics = {
        f"persistent://shop/orders/t-partition-{number}": {"producers": 2, "consumers": 3, "backlog": 0}
        for number in range(2)
    }
    assert health["level"] == "fine"
    assert health["before"]["topics"] == health["after"]["topics"] == topics


def test_what_was_there_before_the_first_call_has_to_come_back_after_the_last(site: Worksite) -> None:
    """Clients are compared with those before the first call, even if the step took two calls."""
    watching(site)
    site.simulator.faults.add(Fault(Answer(204), path="/unload"))

    def they_leave(call: Call) -> None:
        if call.method == "PUT":
            site.simulator.faults.add(Fault(Answer(404), path="/stats", times=None))

    plan = site.approved(site.move(BUNDLE, namespace="shop/orders"))
    (outcome,) = site.carry_out(plan, after=they_leave)
    assert len(site.ledger.intents(plan.plan_id, "b1")) == 2
    assert outcome.outcome == "done"
    assert outcome.proof["health"]["level"] == "worse"
    assert "4 of 4 producers are not back" in outcome.reason


def test_a_batch_stops_itself_where_clients_do_not_come_back(site: Worksite) -> None:
    watching(site)
    site.simulator.faults.add(Fault(Answer(404), path="/stats", broker_id=site.brokers[1], times=None))
    plan = site.approved(site.move(BUNDLE, namespace="shop/orders"), site.move(1))
    first, second = site.carry_out(plan)
    assert said((first, second)) == ["done", "refused"]
    assert "4 of 4 producers are not back" in first.reason
    assert second.reason.startswith("the batch stopped itself: b1.s01: ")
    assert site.changes() == [f"unload {BUNDLE}"]
    with site.context() as context:
        proof = verify(context, plan.plan_id, "b1")
    assert not proof.proved
    assert "b1.s01 was done, and stopped the batch" in proof.reason


def test_a_harm_outlives_a_crash(site: Worksite) -> None:
    """After a crash, the retry finds in the ledger that the first step did harm, and refuses the second."""
    watching(site)
    site.simulator.faults.add(Fault(Answer(404), path="/stats", broker_id=site.brokers[1], times=None))
    plan = site.approved(site.move(BUNDLE, namespace="shop/orders"), site.move(1))

    def crash(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        site.carry_out(plan, listener=crash)
    assert site.recorded(plan) == [("b1.s01", "done")]
    assert said(site.carry_out(plan)) == ["done", "refused"]
    assert site.changes() == [f"unload {BUNDLE}"]


def test_no_figure_afterwards_leaves_a_change_without_its_outcome(
    site: Worksite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step is done and strained if the look at its clients afterwards fails in a way that nobody thought of."""
    watching(site)
    really_look, looks = LiveReader.details, list[str]()

    def look(reader: LiveReader, broker: str, topic: str) -> TopicDetail:
        looks.append(broker)
        if broker == site.brokers[1]:
            raise OverflowError("cannot convert float infinity to integer")
        return really_look(reader, broker, topic)

    monkeypatch.setattr(LiveReader, "details", look)
    (outcome,) = site.carry_out(site.approved(site.move(BUNDLE, namespace="shop/orders")))
    assert site.brokers[1] in looks
    assert (outcome.outcome, outcome.proof["health"]["level"]) == ("done", "strained")
    assert "cannot be read: cannot convert float infinity to integer" in outcome.reason


def test_an_endless_latency_is_none(site: Worksite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A latency that a broker reports as infinite or as no number is left out."""
    told = [Sample(series=LATENCY, labels={"quantile": QUANTILE}, value=value) for value in (math.inf, math.nan, 12.4)]
    monkeypatch.setattr(LiveReader, "samples", lambda *_: told)
    with LiveReader(site.settings) as reader:
        assert _publish_milliseconds(reader, site.brokers[0]) == 12
        told[:] = told[:2]
        assert _publish_milliseconds(reader, site.brokers[0]) is None


@pytest.mark.parametrize("strained", [True, False], ids=["strained", "fine"])
def test_what_cannot_be_read_afterwards_slows_the_batch(
    site: Worksite, monkeypatch: pytest.MonkeyPatch, *, strained: bool
) -> None:
    site.policy = quick_policy(health={"return_seconds": 1}, apply={"bundle_moves_per_minute": 2, "lease_seconds": 120})
    really_rest, paused = StopSwitch.rest, list[float]()

    def rest(switch: StopSwitch, seconds: float) -> None:
        if seconds <= 1:  # between two looks at the clients
            really_rest(switch, seconds)
        else:
            paused.append(seconds)
            site.clock.advance(seconds=seconds)

    monkeypatch.setattr(StopSwitch, "rest", rest)
    if strained:
        site.simulator.faults.add(Fault(Answer(500), path="/stats", broker_id=site.brokers[1], times=None))
    plan = site.approved(site.move(BUNDLE, namespace="shop/orders"), site.move(1))
    first, second = site.carry_out(plan)
    assert said((first, second)) == ["done", "done"]
    assert first.proof["health"]["level"] == ("strained" if strained else "fine")
    assert ("after the change cannot be read" in first.reason) is strained
    begun = [intent.at for intent in site.ledger.intents(plan.plan_id, "b1")]
    assert bool(paused) is strained
    assert not strained or begun[1] - begun[0] >= timedelta(minutes=1)


def test_each_strain_halves_the_pace_once_more() -> None:
    policy = quick_policy(apply={"bundle_moves_per_minute": 5, "reconnecting_clients_per_minute": 1000}).apply
    slow = [slowed(policy, 2**strains) for strains in (0, 1, 2, 3)]
    assert [each.bundle_moves_per_minute for each in slow] == [5, 2, 1, 1]
    assert [each.reconnecting_clients_per_minute for each in slow] == [1000, 500, 250, 125]
