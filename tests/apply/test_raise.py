"""The number of coordinators: raised as approved, proved, never twice, and never back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.simulator import Drop, Fault
from pulsar_steward.apply.precheck import rehearse
from pulsar_steward.apply.verify import verify
from pulsar_steward.ledger.past import raised_lately
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.step import RaiseCoordinators
from pulsar_steward.pulsar import calls
from pulsar_steward.pulsar.writer import Writer
from tests.apply.refusals import assert_stopped
from tests.apply.test_crash import crash
from tests.apply.worksite import COORDINATORS, permitted, quick_policy, said
from tests.builders import NAMED

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.step import Change
    from tests.apply.worksite import Worksite
    from tests.golden import Golden

RAISE = RaiseCoordinators(before=COORDINATORS, after=20)
CALL = "replicas transactionCoordinator"
PERMITS = {"most_coordinators": 64}


@pytest.fixture
def site(site: Worksite) -> Worksite:
    """Three brokers under a policy that permits up to 64 coordinators."""
    site.policy = quick_policy(guards=PERMITS)
    return site


def coordinators(site: Worksite) -> int:
    with site.context() as context:
        return context.reader.coordinators()


def somebody_raises(site: Worksite, number: int) -> None:
    """Raises it as another tool would, with nothing in the ledger."""
    with Writer(site.settings) as writer:
        writer.send(calls.raise_coordinators(number), permitted)


def test_it_is_raised_and_proved(site: Worksite) -> None:
    plan = site.approved(RAISE)
    (outcome,) = site.carry_out(plan)
    assert (outcome.outcome, outcome.reason) == ("done", "there are 20 transaction coordinators")
    assert (coordinators(site), site.changes()) == (20, [CALL])
    (intent,) = site.ledger.intents(plan.plan_id, "b1")
    assert intent.before == {"coordinators": COORDINATORS}
    assert site.lookups() == []
    with site.context() as context:
        proof = verify(context, plan.plan_id, "b1")
    assert proof.proved
    assert proof.shown["steps"]["b1.s01"] == "there are 20 transaction coordinators"


@pytest.mark.parametrize("number", [17, 20, 40])
def test_what_somebody_raised_meanwhile_is_left_as_it_is(site: Worksite, number: int) -> None:
    plan = site.approved(RAISE)
    somebody_raises(site, number)
    site.simulator.requests.clear()
    (outcome,) = site.carry_out(plan)
    assert outcome.outcome == "drifted"
    assert outcome.reason == f"there are {number} transaction coordinators, not 16 as when this was planned"
    assert site.untouched()


def test_what_somebody_raises_right_before_the_call_is_drifted(site: Worksite) -> None:
    """A raise drifts if the broker refuses it because there are more coordinators already."""
    (outcome,) = site.carry_out(site.approved(RAISE), before=lambda _: somebody_raises(site, 30))
    assert outcome.outcome == "drifted"
    assert "406 Number of transaction coordinators should be more than" in outcome.reason
    assert coordinators(site) == 30


def test_a_policy_that_became_stricter_after_the_approval_counts(site: Worksite) -> None:
    plan = site.approved(RAISE)
    site.policy = quick_policy(guards={"most_coordinators": 19})
    assert_stopped(site, plan, "refused", "coordinator_limit: 20 of at most 19")


def test_nothing_is_raised_while_a_coordinator_is_away(site: Worksite) -> None:
    plan = site.approved(RAISE)
    with Writer(site.settings) as writer:
        writer.send(calls.unload(TC_NAMESPACE, site.tc_bundles[0], site.brokers[1]), permitted)
    site.simulator.requests.clear()
    assert_stopped(site, plan, "refused", "coordinators_rest: no broker serves transaction coordinator")


def test_it_rests_after_a_raise(site: Worksite) -> None:
    site.proved(_carried_out(site, site.move(0)))
    assert raised_lately(site.ledger.past(NAMED), site.clock(), site.policy) == ()
    site.proved(_carried_out(site, RAISE))
    assert len(raised_lately(site.ledger.past(NAMED), site.clock(), site.policy)) == 1
    again = RaiseCoordinators(before=20, after=24)
    (outcome,) = site.carry_out(site.approved(again))
    assert outcome.outcome == "refused"
    assert "coordinators_rest: raised at " in outcome.reason
    site.policy = quick_policy(guards={**PERMITS, "coordinators_rest_minutes": 0})
    assert said(site.carry_out(site.approved(again))) == ["done"]
    assert coordinators(site) == 24


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_beside_the_call_leaves_it_made_once(site: Worksite, when: str) -> None:
    """The next try makes a call that was not made, and does not repeat one that was."""
    plan = site.approved(RAISE)
    crash(site, plan, **{when: "POST"})
    assert said(site.carry_out(plan)) == ["done"]
    assert site.changes() == [CALL]


def test_a_lost_answer_is_looked_at(site: Worksite) -> None:
    """A raise is done with one call if the connection breaks after the broker carried it out."""
    site.simulator.faults.add(Fault(Drop(work_done=True), path="replicas"))
    assert said(site.carry_out(site.approved(RAISE))) == ["done"]
    assert (coordinators(site), site.changes()) == (20, [CALL])


def test_a_dry_run_says_the_call_and_that_there_is_no_way_back(site: Worksite, golden: Golden) -> None:
    """A dry run prints the call that raises the number and that it cannot be undone, and sends nothing."""
    plan = site.plan(RAISE)
    with site.context() as context:
        text = rehearse(context, plan, plan.batch("b1"))
    golden(text.replace(plan.plan_id, "PLAN"))
    assert site.untouched()


def _carried_out(site: Worksite, change: Change) -> Plan:
    plan = site.approved(change)
    assert said(site.carry_out(plan)) == ["done"]
    return plan
