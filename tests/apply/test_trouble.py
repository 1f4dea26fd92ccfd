"""Proved, or said not to be: what a step comes to when the call or the look at its effect goes wrong."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from lab.simulator import Answer, BrokenJson, Delay, Drop, Fault
from pulsar_steward.apply import perform
from pulsar_steward.apply.execute import MAX_ATTEMPTS
from pulsar_steward.ledger.halts import Halt, say
from pulsar_steward.model.step import UnloadBundle
from tests.apply.worksite import quick_policy, said
from tests.builders import CLUSTER

if TYPE_CHECKING:
    from lab.simulator.faults import Effect
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.pulsar.calls import Call
    from tests.apply.worksite import Worksite

UNLOAD = "/unload"


@dataclass(frozen=True)
class Case:
    """Trouble of the call, and what the step comes to."""

    effect: Effect
    outcome: str
    reason: str
    moved: bool = False


CASES = {
    "500 without an effect": Case(Answer(500, "broken"), "unknown", "may still take effect.*500 broken"),
    "409": Case(Answer(409, "inactive"), "drifted", "the cluster moved on: .*409 inactive"),
    "412": Case(Answer(412, "Invalid upper boundary"), "drifted", "412 Invalid upper boundary"),
    "404": Case(Answer(404, "gone"), "drifted", "404 gone"),
    "401": Case(Answer(401, "who are you"), "failed", "401 who are you"),
    "403": Case(Answer(403, "not yours"), "failed", "403 not yours"),
    "429": Case(Answer(429, "slow down"), "failed", "429 slow down"),
    "reset before the effect": Case(Drop(work_done=False), "unknown", "may still take effect.*connection broke"),
    "reset after the effect": Case(Drop(work_done=True), "done", "owns 0x00000000_0x40000000.*connection broke", True),
    "no answer, with an effect": Case(Delay(1.5), "done", "owns 0x00000000_0x40000000.*time limit", True),
    "cut short": Case(BrokenJson(), "done", "owns 0x00000000_0x40000000", True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_a_troubled_call_comes_to(site: Worksite, case: Case) -> None:
    """A call that goes wrong is made once, and a step that is not done stops the batch."""
    site.policy = quick_policy(admin={"read_timeout_seconds": 1 if isinstance(case.effect, Delay) else 5})
    site.simulator.faults.add(Fault(case.effect, path=UNLOAD))
    first, second = site.carry_out(site.approved(site.move(0), site.move(1)))
    assert first.outcome == case.outcome, first.reason
    assert_says(first.reason, case.reason)
    assert site.changes().count(f"unload {site.tc_bundles[0]}") == 1
    assert site.owner(site.tc_bundles[0]) == site.brokers[1 if case.moved else 0]
    if case.outcome == "done":
        assert second.outcome == "done"
    else:
        assert (second.outcome, second.reason) == ("refused", "not tried: b1.s01 stopped the batch")
        assert len(site.changes()) == 1


def test_a_bundle_that_lands_on_another_broker_is_a_failure(site: Worksite) -> None:
    plan = site.approved(site.move(0), site.move(1))

    def lands_elsewhere(call: Call) -> None:
        if call.method == "PUT":
            site.simulator.pile_up_tcs(site.brokers[2])

    outcomes = site.carry_out(plan, after=lands_elsewhere)
    assert said(outcomes) == ["failed", "refused"]
    assert_says(outcomes[0].reason, f"yet {site.brokers[2]} owns {site.tc_bundles[0]}; given up after 3 calls")
    assert sources(site, plan) == [site.brokers[0], site.brokers[2], site.brokers[2]]


def test_a_bundle_that_lands_elsewhere_once_is_moved_on(site: Worksite) -> None:
    plan = site.approved(site.move(0))
    calls: list[Call] = []

    def lands_elsewhere_once(call: Call) -> None:
        if call.method == "PUT" and not calls:
            calls.append(call)
            site.simulator.pile_up_tcs(site.brokers[2])

    (outcome,) = site.carry_out(plan, after=lands_elsewhere_once)
    assert outcome.outcome == "done"
    assert sources(site, plan) == [site.brokers[0], site.brokers[2]]
    assert [intent.attempt for intent in site.ledger.intents(plan.plan_id, "b1")] == [1, 2]


def test_a_bundle_that_is_taken_back_is_not_waited_for_in_vain(site: Worksite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A move that was accepted without effect is called again long before the time limit of its proof."""
    monkeypatch.setattr(perform, "_STEADY_SECONDS", 0.5)
    site.rest = time.sleep
    site.policy = quick_policy(apply={"proof_timeout_seconds": 120})
    site.simulator.faults.add(Fault(Answer(204), path=UNLOAD, times=1))
    plan = site.approved(site.move(0))
    (outcome,) = site.carry_out(plan)
    assert outcome.outcome == "done"
    assert sources(site, plan) == [site.brokers[0], site.brokers[0]]
    first, again = (intent.at for intent in site.ledger.intents(plan.plan_id, "b1"))
    assert again - first < timedelta(seconds=60)


@pytest.mark.parametrize("times", [1, 2])
def test_a_bundle_that_its_former_broker_takes_back_is_moved_again(site: Worksite, times: int) -> None:
    site.simulator.faults.add(Fault(Answer(204), path=UNLOAD, times=times))
    plan = site.approved(site.move(0), site.move(1))
    looked: list[int] = []

    def look_into_the_ledger(call: Call) -> None:
        if call.method == "PUT":
            looked.append(len(site.ledger.intents(plan.plan_id, "b1")))

    first, second = site.carry_out(plan, before=look_into_the_ledger)
    assert said((first, second)) == ["done", "done"]
    intents = site.ledger.intents(plan.plan_id, "b1")
    assert [(each.step_id, each.attempt) for each in intents[:-1]] == [("b1.s01", n) for n in range(1, times + 2)]
    assert {each.change for each in intents[:-1]} == {site.move(0)}
    assert looked == list(range(1, times + 3))
    assert first.intent_id == intents[times].intent_id
    assert site.changes() == [f"unload {site.tc_bundles[0]}"] * (times + 1) + [f"unload {site.tc_bundles[1]}"]


def test_a_bundle_that_is_taken_back_each_time_is_given_up(site: Worksite) -> None:
    site.simulator.faults.add(Fault(Answer(204), path=UNLOAD, times=None))
    outcomes = site.carry_out(site.approved(site.move(0), site.move(1)))
    assert said(outcomes) == ["failed", "refused"]
    assert outcomes[0].reason == (
        f"the broker accepted the call, yet {site.brokers[0]} owns {site.tc_bundles[0]}; given up after 3 calls"
    )
    assert outcomes[1].reason == "not tried: b1.s01 stopped the batch"
    assert site.changes() == [f"unload {site.tc_bundles[0]}"] * MAX_ATTEMPTS


def test_a_stop_is_heard_before_each_further_call(site: Worksite) -> None:
    site.simulator.faults.add(Fault(Answer(204), path=UNLOAD))

    def stop(call: Call) -> None:
        if call.method == "PUT":
            say(site.engine, Halt(cluster=CLUSTER, at=site.clock(), halted=True, said_by="bob", reason="made up"))

    (outcome,) = site.carry_out(site.approved(site.move(0)), after=stop)
    assert outcome.outcome == "failed"
    assert_says(outcome.reason, f"yet {site.brokers[0]} owns .*; not tried again: .*halted by bob")
    assert len(site.changes()) == 1


def test_an_owner_that_cannot_be_read_is_not_taken_for_the_former_one(site: Worksite) -> None:
    """A step is unknown and not tried again if the owned bundles of the source cannot be read."""
    site.simulator.faults.add(Fault(Answer(204), path=UNLOAD))

    def goes_dark(call: Call) -> None:
        if call.method == "PUT":
            unread = Fault(Answer(503, "starting"), path=f"{site.brokers[0]}/ownedNamespaces", times=None)
            site.simulator.faults.add(unread)

    plan = site.approved(site.move(0))
    (outcome,) = site.carry_out(plan, after=goes_dark)
    assert outcome.outcome == "unknown"
    assert_says(outcome.reason, "could not be read to see what happened: .*503 starting")
    assert len(site.changes()) == len(site.ledger.intents(plan.plan_id, "b1")) == 1


def test_a_target_that_dies_after_the_call_gets_nothing(site: Worksite) -> None:
    def dies(call: Call) -> None:
        if call.method == "PUT":
            site.simulator.kill_broker(site.brokers[1])

    (outcome,) = site.carry_out(site.approved(site.move(0)), after=dies)
    assert outcome.outcome == "failed"
    owner = site.owner(site.tc_bundles[0])
    assert owner in {site.brokers[0], site.brokers[2]}
    assert_says(outcome.reason, f"yet {owner} owns {site.tc_bundles[0]}")


def test_a_lookup_that_fails_once_is_made_again(site: Worksite) -> None:
    site.simulator.faults.add(Fault(Answer(503, "not yet"), path="^/lookup/"))
    (outcome,) = site.carry_out(site.approved(site.move(0)))
    assert outcome.outcome == "done"
    assert len(site.lookups()) == 3  # the one that failed, and the next by the leader and the target
    assert site.changes() == [f"unload {site.tc_bundles[0]}"]


def test_a_split_that_did_nothing_stops_the_moves(site: Worksite) -> None:
    site.simulator.faults.add(Fault(Answer(200), path="/split"))
    outcomes = site.carry_out(site.approve(site.split_and_moves()))
    assert said(outcomes) == ["failed", "refused", "refused"]
    assert_says(outcomes[0].reason, "has neither half of")
    assert site.changes() == [f"split {site.tc_bundles[0]}"]


def sources(site: Worksite, plan: Plan) -> list[str]:
    """From where the plan's bundles were to be moved, an intent each."""
    intents = site.ledger.intents(plan.plan_id, "b1")
    return [intent.change.source for intent in intents if isinstance(intent.change, UnloadBundle)]


def assert_says(words: str, pattern: str) -> None:
    """Looks for a pattern, and shows the words where it is not in them."""
    assert re.search(pattern, words), words
