"""Where coordinators are left alone, in whole or in part, and which note says so."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.finding import Severity
from pulsar_steward.planners.base import Proposal
from pulsar_steward.planners.planning_facts import BrokerFact
from pulsar_steward.planners.tc.balance import TC_BALANCE as PLANNER
from tests.builders import (
    NOW,
    a_finding,
    a_policy,
    broker,
    bundle_of,
    coordinators_in,
    counted_tc_bundles,
    equal_ranges,
    hashed_tc_bundles,
    planning_facts_with,
    tc_bundle,
)

if TYPE_CHECKING:
    from pulsar_steward.model.step import Change
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from tests.golden import Golden

ALL_ON_ONE = hashed_tc_bundles([broker(0)] * 16, 16)
ONE_UNREAD = (BrokerFact(broker=broker(0), read=True), BrokerFact(broker=broker(1), read=False))


def after(planning: PlanningFacts) -> list[int]:
    """The counts after the one batch that is proposed, in order of broker."""
    (batch,) = PLANNER.proposal(planning).batches
    return [placement.count for placement in batch.after]


def changes(proposal: Proposal) -> list[Change]:
    """Calls, step by step."""
    return [step.change for batch in proposal.batches for step in batch.steps]


def moved(minutes_ago: int, *indices: int) -> dict[str, Any]:
    """When some of the bundles were moved, as a planning's field."""
    when = NOW - timedelta(minutes=minutes_ago)
    return {"moved_at": {f"{TC_NAMESPACE}/{ALL_ON_ONE[index].bundle}": when for index in indices}}


@pytest.mark.parametrize(
    "findings", [(), (a_finding(Severity.INFO),), (a_finding(Severity.CRITICAL, check_id="bundle-topic-skew"),)]
)
def test_silent_without_a_warning(findings: tuple[Any, ...]) -> None:
    """The planner proposes nothing and adds no note if there is no warning of a skew of coordinators."""
    assert PLANNER.proposal(planning_facts_with(3, ALL_ON_ONE, findings=findings)) == Proposal()


@pytest.mark.parametrize(
    ("planning", "note"),
    [
        pytest.param(planning_facts_with(3, ALL_ON_ONE, tcs_by_bundle=False), "PIP-473", id="Pulsar 5"),
        pytest.param(
            planning_facts_with(3, ALL_ON_ONE, unread=(broker(2),)), f"without {broker(2)}", id="unread broker"
        ),
        pytest.param(
            planning_facts_with(ONE_UNREAD, ALL_ON_ONE), f"without {broker(1)}", id="broker that did not answer"
        ),
        pytest.param(planning_facts_with(3, unread=(TC_NAMESPACE,)), f"without {TC_NAMESPACE}", id="unread namespace"),
        pytest.param(
            planning_facts_with(2, ALL_ON_ONE, policy=a_policy(brokers={"draining": (broker(0), broker(1))})),
            "every broker is draining",
            id="no target",
        ),
        pytest.param(
            planning_facts_with(2, ALL_ON_ONE, tc_allowed=()), "kept from pulsar/system", id="isolated from all"
        ),
        pytest.param(planning_facts_with(0), "every broker is draining", id="no broker"),
        pytest.param(planning_facts_with(1, ALL_ON_ONE), "no placement is more even", id="one broker"),
        pytest.param(
            planning_facts_with(3, counted_tc_bundles([(broker(0), 1)])),
            "no placement is more even",
            id="one coordinator",
        ),
        pytest.param(
            planning_facts_with(3, ALL_ON_ONE, policy=a_policy(apply={"protected_namespaces": (TC_NAMESPACE,)})),
            "no step evens that out",
            id="protected",
        ),
    ],
)
def test_no_batch_but_a_note(planning: PlanningFacts, note: str) -> None:
    """A note gives the reason if no batch can be proposed."""
    proposal = PLANNER.proposal(planning)
    assert proposal.batches == ()
    assert note in proposal.notes[0]


def test_other_unread_namespaces_do_not_matter() -> None:
    """An unread namespace without coordinators does not prevent the balance."""
    assert after(planning_facts_with(3, ALL_ON_ONE, unread=("public/default",))) == [6, 5, 5]


def test_draining_broker_only_gives() -> None:
    """A draining broker keeps its fair share or less, and is never a target."""
    draining_2 = a_policy(brokers={"draining": (broker(2),)})
    assert after(planning_facts_with(3, ALL_ON_ONE, policy=draining_2)) == [8, 8, 0]
    draining_0 = a_policy(brokers={"draining": (broker(0),)})
    assert max(after(planning_facts_with(3, ALL_ON_ONE, policy=draining_0))) == 6
    less_than_its_share = hashed_tc_bundles([broker(0)] * 2 + [broker(1)] * 14, 16)
    assert after(planning_facts_with(3, less_than_its_share)) == [5, 6, 5]
    assert after(planning_facts_with(3, less_than_its_share, policy=draining_0)) == [2, 7, 7]


def test_isolation_excludes_targets() -> None:
    """A broker that isolation excludes from the namespace gets no coordinators."""
    assert after(planning_facts_with(3, ALL_ON_ONE, tc_allowed=(broker(0), broker(2)))) == [8, 0, 8]


def test_no_more_steps_than_one_run_permits() -> None:
    """The most helpful steps are proposed up to the limit of changes a run, with the placement that these reach."""
    few = planning_facts_with(3, ALL_ON_ONE, policy=a_policy(guards={"most_changes_per_run": 2}))
    every = len(changes(PLANNER.proposal(planning_facts_with(3, ALL_ON_ONE))))
    proposal = PLANNER.proposal(few)
    (batch,) = proposal.batches
    assert after(few) == [10, 3, 3]
    assert batch.title.endswith("the spread falls from 16 to 7")
    assert all(result.passed for step in batch.steps for result in step.guards)
    assert proposal.notes[0] == (
        f"Transaction coordinators: {every - 2} further steps come with later plans (policy key"
        " guards.most_changes_per_run)."
    )


def test_a_split_alone_is_not_proposed() -> None:
    """Nothing is proposed, with a note, if the limit of changes a run permits no more than a split."""
    one = planning_facts_with(
        2, counted_tc_bundles([(broker(0), 8)]), policy=a_policy(guards={"most_changes_per_run": 1})
    )
    proposal = PLANNER.proposal(one)
    assert proposal.batches == ()
    assert "as the first 1 step alone would not help (policy key guards.most_changes_per_run)" in proposal.notes[0]


def test_resting_bundles_stay_and_count() -> None:
    """A bundle within its cooldown stays, its coordinators count, and a note names it and the time of its last move."""
    planning = planning_facts_with(3, ALL_ON_ONE, **moved(29, 4, 7))
    proposal = PLANNER.proposal(planning)
    resting = {ALL_ON_ONE[index].bundle for index in (4, 7)}
    assert not resting & {bundle_of(step) for step in proposal.batches[0].steps}
    assert after(planning) == [6, 5, 5]
    (note,) = proposal.notes
    assert note.startswith("Guard cooldown keeps")
    assert all(f"{bundle} (moved at 2026-03-01 11:31:00" in note for bundle in resting)


def test_rested_bundles_move() -> None:
    """A bundle may move again from the minute on in which its cooldown ends."""
    proposal = PLANNER.proposal(planning_facts_with(3, ALL_ON_ONE, **moved(30, *range(8))))
    assert proposal.notes == ()
    assert changes(proposal) == changes(PLANNER.proposal(planning_facts_with(3, ALL_ON_ONE)))


def test_all_resting() -> None:
    """No batch is proposed if every bundle was moved a moment ago; the note names some bundles and counts the rest."""
    proposal = PLANNER.proposal(planning_facts_with(3, ALL_ON_ONE, **moved(0, *range(8))))
    assert proposal.batches == ()
    assert proposal.notes[1].endswith(" and 3 more.")


def test_too_many_clients() -> None:
    """A bundle with more clients than a step may disturb stays, and the others are evened out around it."""
    crowded, calm = (
        tc_bundle(bundle, broker(0), coordinators_in(bundle, 2), clients=clients)
        for bundle, clients in zip(equal_ranges(2), (11, 10), strict=True)
    )
    proposal = PLANNER.proposal(
        planning_facts_with(2, [crowded, calm], policy=a_policy(apply={"most_clients_per_step": 10}))
    )
    assert [bundle_of(step) for step in proposal.batches[0].steps] == [calm.bundle]
    (note,) = proposal.notes
    assert note.startswith("Guard clients keeps")
    assert f"{crowded.bundle} (11 clients would reconnect" in note


@pytest.mark.parametrize("owner", [None, "gone:8080"])
def test_bundles_that_no_broker_owns(owner: str | None) -> None:
    """Coordinators of a bundle without a listed owner are not counted and not moved, and a note names the bundle."""
    bundles = counted_tc_bundles([(owner, 5), (broker(0), 2), (broker(0), 2)])
    planning = planning_facts_with(2, bundles)
    assert after(planning) == [2, 2]
    (note,) = PLANNER.proposal(planning).notes
    assert note.startswith("5 transaction coordinators are left out")
    assert bundles[0].bundle in note


def test_what_stays_uneven_is_noted(golden: Golden) -> None:
    """If no even placement is possible, the plan evens out what it can and a note tells the rest."""
    planning = planning_facts_with(3, ALL_ON_ONE, **moved(0, *range(7)))
    proposal = PLANNER.proposal(planning)
    assert after(planning) == [13, 2, 1]
    golden(proposal.notes[0])
