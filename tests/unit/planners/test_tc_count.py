"""More coordinators are proposed where they are too few for the brokers, and the policy permits it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.plan import BROKER_DRAIN, TC_COUNT
from pulsar_steward.model.step import RaiseCoordinators
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.planners.tc.balance import TC_BALANCE
from pulsar_steward.planners.tc.balance import TC_COUNT_RAISE as PLANNER
from tests.builders import NOW, a_finding, a_policy, broker, hashed_tc_bundles, planning_facts_with
from tests.cases import cases

if TYPE_CHECKING:
    from pulsar_steward.planners.base import Proposal
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from tests.golden import Golden

OWNERS = [broker(number % 5) for number in range(16)]


def too_few(coordinators: int = 2, brokers: int = 5, severity: Severity = Severity.WARNING) -> Finding:
    """The finding of a cluster with so many coordinators."""
    return Finding(
        check_id="tc-count",
        severity=severity,
        subject="east",
        evidence="There are 2 transaction coordinators for 5 brokers that could hold them.",
        figures={"brokers": brokers, "coordinators": coordinators, "share_percent": 100 // coordinators},
    )


def facts(most: int = 64, per_broker: int = 1, **fields: Any) -> PlanningFacts:
    """Five brokers with two coordinators, under a policy that permits so many."""
    policy = a_policy(guards={"most_coordinators": most}, tc_count_remedy={"coordinators_per_broker": per_broker})
    usual = {"findings": (too_few(),), "policy": policy}
    bundles = fields.pop("tc_bundles", hashed_tc_bundles(OWNERS, 2))
    return planning_facts_with(5, bundles, **{**usual, **fields})


def raised(proposal: Proposal) -> RaiseCoordinators:
    (batch,) = proposal.batches
    (step,) = batch.steps
    assert isinstance(step.change, RaiseCoordinators)
    return step.change


@cases(
    "planning, after",
    ("one a broker", facts(), 5),
    ("three a broker", facts(per_broker=3), 15),
    ("as many as the policy permits", facts(most=4), 4),
    ("isolated", facts(tc_allowed=tuple(broker(number) for number in range(3))), 3),
)
def test_their_number_is_raised(planning: PlanningFacts, after: int) -> None:
    """The number of coordinators is raised to what suits the brokers that may hold one, up to the policy's limit."""
    assert raised(PLANNER.proposal(planning)) == RaiseCoordinators(before=2, after=after)


def test_what_a_person_reads(golden: Golden) -> None:
    """The texts of a raise tell the count before and after, which clients use the new ones, and that it is final."""
    (batch,) = PLANNER.proposal(facts()).batches
    (step,) = batch.steps
    assert (batch.kind, step.undo, step.touched.clients) == (TC_COUNT, None, 0)
    assert step.guards
    assert all(result.passed for result in step.guards)
    golden(f"{batch.title}\n{step.why}\n{step.effect}\n{step.undo_note}")


def test_what_the_policy_does_not_permit_is_left_out_and_said() -> None:
    """A note says how many coordinators would suit the brokers if the policy permits fewer."""
    (note,) = PLANNER.proposal(facts(most=4)).notes
    assert note.endswith("5 would suit 5 brokers, and the policy permits 4 (policy key guards.most_coordinators).")


@pytest.mark.parametrize(
    ("planning", "words"),
    [
        pytest.param(facts(most=0), "it cannot be undone and the policy does not permit it", id="off"),
        pytest.param(facts(most=2), "there are 2, and the policy permits 2", id="as many as permitted"),
        pytest.param(facts(proposed=frozenset({BROKER_DRAIN})), "this plan drains a broker", id="drains"),
        pytest.param(facts(findings=(too_few(600),)), "600 are enough for the brokers", id="too many"),
        pytest.param(facts(coordinators_raised_at=NOW), "coordinators_rest: raised at 2026-03-01 12:00:00", id="rests"),
        pytest.param(
            facts(tc_bundles=hashed_tc_bundles([None] * 16, 2)), "no broker serves transaction coordinator 0", id="away"
        ),
        pytest.param(facts(versions=("2.10.4",)), "that came with 2.11 (apache/pulsar#15296)", id="an old version"),
        pytest.param(
            facts(unread=("broker-03:8080",)), "the snapshot is partial: it lacks broker-03:8080", id="partial"
        ),
    ],
)
def test_why_nothing_is_proposed(planning: PlanningFacts, words: str) -> None:
    """A note gives the reason if the number of coordinators is not raised."""
    proposal = PLANNER.proposal(planning)
    assert proposal.batches == ()
    (note,) = proposal.notes
    assert words in note


def test_it_comes_first_and_nothing_is_balanced_beside_it() -> None:
    """A plan that raises the number of coordinators does not balance them, and a note gives the reason."""
    planning = facts(findings=(too_few(3), a_finding()), tc_bundles=hashed_tc_bundles([broker(0)] * 16, 3))
    assert TC_BALANCE.proposal(planning).batches
    plan = make_plan(planning)
    assert [batch.kind for batch in plan.batches] == [TC_COUNT]
    assert any("nothing is proposed in this plan, as it raises their number" in note for note in plan.notes)
    assert plan.encoded() == make_plan(planning).encoded()
