"""A worker that dies at any point: the same run goes on from what the cluster shows, and nothing happens twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lab.simulator import Answer, Delay, Fault
from pulsar_steward.apply.execute import MAX_ATTEMPTS
from pulsar_steward.apply.verify import verify
from pulsar_steward.errors import Refused
from pulsar_steward.ledger.rows import Decision
from tests.apply.refusals import assert_refused
from tests.apply.worksite import RUN, quick_policy, said
from tests.builders import a_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.pulsar.calls import Call
    from tests.apply.worksite import Worksite

ROOT = Path(__file__).parents[2]
POINTS = ("intent", "call", "lookup", "proof")


class Crash(BaseException):
    """The worker's end: nothing catches it."""


def apply_in_a_process(site: Worksite, plan: Plan, point: str) -> subprocess.Popen[str]:
    """Starts the batch in a process of its own, which kills itself at that point."""
    url = site.engine.url.render_as_string()
    command = [sys.executable, "-m", "tests.apply.crashing", url, plan.plan_id, point, *site.simulator.admin_urls]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def crash(site: Worksite, plan: Plan, *, after: str | None = None, before: str | None = None) -> None:
    """Ends a worker right before or after the first call of a method; the lease it leaves behind runs out."""

    def at(method: str | None) -> Callable[[Call], None]:
        def end(call: Call) -> None:
            if call.method == method:
                raise Crash

        return end

    with pytest.raises(Crash):
        site.carry_out(plan, before=at(before), after=at(after))
    site.clock.outlive_a_crash()


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_process_leaves_what_the_next_one_finishes(site: Worksite, point: str) -> None:
    plan = site.approved(site.move(0), site.move(1))
    process = apply_in_a_process(site, plan, point)
    _, stderr = process.communicate(timeout=180)
    assert process.returncode == 9, stderr
    assert len(site.ledger.intents(plan.plan_id, "b1")) == 1
    assert site.recorded(plan) == []
    site.clock.outlive_a_crash()
    assert said(site.carry_out(plan)) == ["done", "done"]
    assert site.changes() == [f"unload {site.tc_bundles[0]}", f"unload {site.tc_bundles[1]}"]
    assert [site.owner(bundle) for bundle in site.tc_bundles[:2]] == [site.brokers[1]] * 2
    with site.context() as context:
        assert verify(context, plan.plan_id, "b1").proved


def test_a_split_that_happened_before_the_crash_is_not_made_again(site: Worksite) -> None:
    plan = site.approve(site.split_and_moves())
    crash(site, plan, after="PUT")
    assert said(site.carry_out(plan)) == ["done", "done", "done"]
    assert [call.partition(" ")[0] for call in site.changes()] == ["split", "unload", "unload"]


def test_a_call_that_may_still_take_effect_is_not_made_again(site: Worksite) -> None:
    site.policy = quick_policy(admin={"read_timeout_seconds": 3})
    plan = site.approved(site.move(0))
    with pytest.raises(Crash):
        site.carry_out(plan, before=_crash)
    looks: list[str] = []

    def takes_effect_late(call: Call) -> None:
        looks.append(call.method)
        if len(looks) == 6:  # later than the patience of a proof, sooner than that of the call
            site.simulator.pile_up_tcs(site.brokers[1])

    assert said(site.carry_out(plan, before=takes_effect_late)) == ["done"]
    assert site.changes() == []


def test_an_unreadable_cluster_after_a_crash_is_unknown(site: Worksite) -> None:
    plan = site.approved(site.move(0), site.move(1))
    crash(site, plan, after="PUT")
    site.simulator.faults.add(Fault(Answer(503, "starting"), path="ownedNamespaces", times=None))
    outcomes = site.carry_out(plan)
    assert said(outcomes) == ["unknown", "refused"]
    assert "interrupted, and the cluster" in outcomes[0].reason
    assert len(site.changes()) == 1


def test_a_bundle_that_went_elsewhere_during_the_crash_is_left_there(site: Worksite) -> None:
    plan = site.approved(site.move(0), site.move(1))
    crash(site, plan, after="PUT")
    site.simulator.pile_up_tcs(site.brokers[2])
    outcomes = site.carry_out(plan)
    assert said(outcomes) == ["unknown", "refused"]
    assert outcomes[0].reason.startswith(f"interrupted; {site.brokers[2]} owns {site.tc_bundles[0]}; no further call")
    assert len(site.changes()) == 1


def test_calls_that_crashes_cut_short_are_counted(site: Worksite) -> None:
    plan = site.approved(site.move(0), site.move(1))
    for _ in range(MAX_ATTEMPTS):
        crash(site, plan, before="PUT")
    outcomes = site.carry_out(plan)
    assert said(outcomes) == ["failed", "refused"]
    assert "given up after 3 calls" in outcomes[0].reason
    intents = site.ledger.intents(plan.plan_id, "b1")
    assert [intent.attempt for intent in intents] == [1, 2, 3]
    assert outcomes[0].intent_id == intents[-1].intent_id
    assert site.changes() == []


def test_a_crash_between_two_steps_needs_no_look_back(site: Worksite) -> None:
    plan = site.approved(site.move(0), site.move(1))
    with pytest.raises(Crash):
        site.carry_out(plan, listener=_crash)
    site.clock.outlive_a_crash()
    assert site.recorded(plan) == [("b1.s01", "done")]
    assert said(site.carry_out(plan)) == ["done", "done"]
    assert len(site.changes()) == 2


@pytest.mark.parametrize(
    ("crashed", "seen"),
    [({"before": "PUT"}, "unknown"), ({"after": "PUT"}, "unknown"), ({"after": "GET"}, "done")],
    ids=["before the call", "before the lookup", "after the lookup"],
)
def test_an_approval_that_expired_after_a_crash_permits_a_look_only(
    site: Worksite, crashed: dict[str, str], seen: str
) -> None:
    plan = site.approved(site.move(0), site.move(1))
    crash(site, plan, **crashed)
    site.simulator.requests.clear()
    site.clock.advance(minutes=61)
    assert_refused(site, plan, "expired")
    assert site.recorded(plan) == [("b1.s01", seen), ("b1.s02", "refused")]
    first, _ = site.ledger.outcomes(plan.plan_id, "b1")
    assert first.intent_id == site.ledger.intents(plan.plan_id, "b1")[0].intent_id


@pytest.mark.parametrize(
    ("answer", "words"),
    [({"decision": Decision.REJECTED, "step_ids": (), "digest": None}, "rejected"), ({}, "tried before")],
    ids=["rejected", "approved once more"],
)
def test_another_answer_repeats_no_interrupted_call_and_hides_none(
    site: Worksite, answer: dict[str, Any], words: str
) -> None:
    """If the last answer after a crash is another one, nothing is called, and the interrupted step is unknown."""
    plan = site.approved(site.move(0))
    crash(site, plan, after="PUT")
    site.simulator.requests.clear()
    site.approve(plan, **answer)
    assert_refused(site, plan, words)
    assert site.recorded(plan) == [("b1.s01", "unknown")]


def test_an_unreadable_cluster_under_a_superseded_plan_is_unknown(site: Worksite) -> None:
    plan = site.approved(site.move(0))
    crash(site, plan, after="PUT")
    site.writes.record_plan(a_plan(notes=("newer",)), site.clock(), supersede=[plan.plan_id])
    site.simulator.faults.add(Fault(Answer(503), path="ownedNamespaces", times=None))
    with pytest.raises(Refused, match="superseded"):
        site.carry_out(plan)
    (outcome,) = site.ledger.outcomes(plan.plan_id, "b1")
    assert outcome.outcome == "unknown"
    assert "could not be read" in outcome.reason
    assert "superseded" in outcome.reason


def test_two_processes_for_one_run_act_once(site: Worksite) -> None:
    site.simulator.faults.add(Fault(Delay(0.5), path="/unload", times=None))  # both are there before the first is done
    plan = site.approved(site.move(0), site.move(1), site.move(2))
    processes = [apply_in_a_process(site, plan, "never") for _ in range(2)]
    ends = [process.communicate(timeout=180) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], ends
    assert [stdout for stdout, _ in ends] == ["b1.s01 done\nb1.s02 done\nb1.s03 done\n"] * 2
    assert site.changes() == [f"unload {bundle}" for bundle in site.tc_bundles[:3]]
    assert len(site.ledger.intents(plan.plan_id, "b1")) == 3
    assert site.user_of(1) == RUN


def _crash(_: object) -> None:
    raise Crash
