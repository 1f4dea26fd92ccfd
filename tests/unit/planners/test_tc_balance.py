"""The balance of coordinators, what each step tells them, and where more of them are proposed."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.guards.evaluate import guards_of
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.plan import BROKER_DRAIN, TC_COUNT, Batch, Placement, numbered
from pulsar_steward.model.step import Change, RaiseCoordinators, SplitBundle, UnloadBundle
from pulsar_steward.planners.planning_facts import BrokerFact, PlanningFacts
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.planners.tc.balance import TC_BALANCE
from pulsar_steward.planners.tc.balance import TC_BALANCE as PLANNER
from pulsar_steward.planners.tc.balance import TC_COUNT_RAISE as COUNT_PLANNER
from tests.beside import yardstick
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
from tests.cases import cases
from tests.unit.planners.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pulsar_steward.planners.base import Proposal
    from tests.golden import Golden

OwnersAndCounts = list[tuple[str | None, int]]
ALL_ON_ONE = hashed_tc_bundles([broker(0)] * 16, 16)
HEAVY = counted_tc_bundles([(broker(0), 8)])


def only_batch(planning: PlanningFacts) -> Batch:
    (batch,) = numbered(PLANNER.proposal(planning).batches)
    return batch


def counts(placements: tuple[Placement, ...]) -> list[int]:
    return [placement.count for placement in placements]


def splits(batch: Batch) -> int:
    """Returns the number of steps that split a bundle."""
    return sum(isinstance(step.change, SplitBundle) for step in batch.steps)


def on(number: int, *of_each: int) -> OwnersAndCounts:
    return [(broker(number), count) for count in of_each]


def test_lab_with_a_new_broker() -> None:
    """A fourth, empty broker beside brokers with 6, 5 and 5 coordinators gets as many as each of the others."""
    first = planning_facts_with(3, ALL_ON_ONE)
    replay = Replay(first)
    replay.finish(only_batch(first))
    batch = only_batch(planning_facts_with(4, replay.bundles.values()))
    assert (counts(batch.before), counts(batch.after)) == ([6, 5, 5, 0], [4, 4, 4, 4])


@cases(
    "brokers, bundles, after, splits_needed",
    ("one bundle, halved", 2, on(0, 8), [4, 4], 1),
    ("one bundle, quartered", 4, on(0, 8), [2, 2, 2, 2], 3),
    ("a new broker, heavy bundles", 4, [*on(0, 3, 3), *on(1, 5), *on(2, 5)], [4, 4, 4, 4], None),
    ("wholes do if chosen well", 3, on(0, 1, 1, 2, 2, 3, 3), [4, 4, 4], 0),
    ("wholes do by an exchange", 2, [*on(0, 2, 2, 3, 3), *on(1, 1, 1)], [6, 6], 0),
    ("two brokers exchange", 2, [*on(0, 4, 4), *on(1, 3, 3)], [7, 7], 0),
    ("fewer coordinators than brokers", 4, on(0, 1, 1), [1, 1, 0, 0], 0),
    ("a remainder", 3, [*on(0, 1, 1, 1), *on(1, 1)], [2, 1, 1], 0),
)
def test_ends_even(brokers: int, bundles: OwnersAndCounts, after: list[int], splits_needed: int | None) -> None:
    """A placement ends with a spread of at most 1, and bundles are split only if whole bundles cannot achieve that."""
    batch = only_batch(planning_facts_with(brokers, counted_tc_bundles(bundles)))
    assert sorted(counts(batch.after), reverse=True) == after
    assert splits_needed in (None, splits(batch))


def test_batch(golden: Golden) -> None:
    """A batch carries the findings that it answers, its kind, its unit, and a title with its numbers."""
    findings = (a_finding(Severity.CRITICAL), a_finding(Severity.INFO), a_finding(check_id="bundle-topic-skew"))
    batch = only_batch(planning_facts_with(3, ALL_ON_ONE, findings=findings))
    assert (batch.kind, batch.unit) == ("tc_balance", "transaction coordinators")
    assert batch.findings == findings[:1]
    golden(batch.title)


def test_move(golden: Golden) -> None:
    """A move says why, what it changes in numbers, whom it disturbs, what the guards said, and how to go back."""
    step = only_batch(planning_facts_with(3, ALL_ON_ONE)).steps[0]
    assert isinstance(step.change, UnloadBundle)
    golden(step.effect)
    golden(step.why)
    assert (step.touched.coordinators, step.touched.topics, step.touched.clients) == (3, 3, 0)
    assert [result.guard for result in step.guards] == [guard.name for guard in guards_of(step)]
    assert isinstance(step.undo, UnloadBundle)
    assert (step.undo.bundle, step.undo.source, step.undo.target) == (step.change.bundle, broker(1), broker(0))
    assert f"back to {broker(0)}" in step.undo_note


def test_split() -> None:
    """Splits come first, name both halves, cannot be undone, and the moves of their halves wait for them."""
    split, move = only_batch(planning_facts_with(2, HEAVY)).steps
    assert isinstance(split.change, SplitBundle)
    assert split.change.algorithm == "topic_count_equally_divide"
    assert bundle_of(move) in split.change.halves
    assert move.after == (split.step_id,)
    assert split.undo is None
    assert "cannot be undone" in split.undo_note
    assert f"{split.change.halves[0]} with 4 coordinators" in split.effect
    assert (split.touched.coordinators, move.touched.coordinators) == (8, 4)


def test_a_hundred_brokers_with_a_thousand_coordinators() -> None:
    """The plan for 1,000 coordinators on 100 brokers is even, and takes less processor time than five yardsticks."""
    began = time.process_time()
    batch = only_batch(planning_facts_with(100, hashed_tc_bundles([broker(0)] * 1024, 1000)))
    assert time.process_time() - began < 5 * yardstick()
    assert counts(batch.after) == [10] * 100


LAB = (3, 3, 2, 2, 2, 2, 1, 1)
"""Coordinators by bundle, as the hashes of 16 of them fall into a real cluster's bundles."""


def as_published(bundles: Sequence[Sequence[int]], chosen: Callable[[list[int]], int]) -> list[int] | None:
    """Counts, the most first, where the published rule ends; None: it goes round for ever.

    With M the difference of the two fullest brokers, a bundle of the fullest with at most M coordinators goes to the
    emptiest. Which of them, it does not say.
    """
    brokers, seen = [list(each) for each in bundles], set()
    while True:
        brokers.sort(key=sum, reverse=True)
        state = tuple(tuple(sorted(each)) for each in brokers)
        fitting = [count for count in brokers[0] if count <= sum(brokers[0]) - sum(brokers[1])]
        if not fitting:
            return [sum(each) for each in brokers]
        if state in seen:
            return None
        seen.add(state)
        brokers[0].remove(chosen(fitting))
        brokers[-1].append(chosen(fitting))


@cases(
    "bundles, largest_first, smallest_first, ours",
    ("16/0/0", [LAB, (), ()], None, [6, 5, 5], [6, 5, 5]),
    ("8/8/0", [LAB[:2] + LAB[6:], LAB[2:6], ()], [8, 8, 0], [8, 8, 0], [6, 5, 5]),
    ("8/8/0/0/0", [LAB[:2] + LAB[6:], LAB[2:6], (), (), ()], [8, 8, 0, 0, 0], [8, 8, 0, 0, 0], [4, 3, 3, 3, 3]),
    ("4/0 in one bundle", [(4,), ()], None, None, [2, 2]),
)
def test_where_the_published_rule_fails_the_plan_ends_even(
    bundles: list[tuple[int, ...]], largest_first: list[int] | None, smallest_first: list[int] | None, ours: list[int]
) -> None:
    assert as_published(bundles, max) == largest_first
    assert as_published(bundles, min) == smallest_first
    held = [(broker(number), count) for number, each in enumerate(bundles) for count in each]
    (batch,) = TC_BALANCE.proposal(planning_facts_with(len(bundles), counted_tc_bundles(held))).batches
    assert sorted((placement.count for placement in batch.after), reverse=True) == ours


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


@cases(
    "planning, note",
    ("young", planning_facts_with(3, ALL_ON_ONE, policy=a_policy(plan={"standing_snapshots": 3})), "for 1 of the 3"),
    ("unread broker", planning_facts_with(3, ALL_ON_ONE, unread=(broker(2),)), f"without {broker(2)}"),
    ("broker that did not answer", planning_facts_with(ONE_UNREAD, ALL_ON_ONE), f"without {broker(1)}"),
    ("unread namespace", planning_facts_with(3, unread=(TC_NAMESPACE,)), f"without {TC_NAMESPACE}"),
    (
        "no target",
        planning_facts_with(2, ALL_ON_ONE, policy=a_policy(brokers={"draining": (broker(0), broker(1))})),
        "every broker is draining",
    ),
    ("isolated from all", planning_facts_with(2, ALL_ON_ONE, tc_allowed=()), "kept from pulsar/system"),
    ("no broker", planning_facts_with(0), "every broker is draining"),
    ("one broker", planning_facts_with(1, ALL_ON_ONE), "no placement is more even"),
    ("one coordinator", planning_facts_with(3, counted_tc_bundles([(broker(0), 1)])), "no placement is more even"),
    (
        "protected",
        planning_facts_with(3, ALL_ON_ONE, policy=a_policy(apply={"protected_namespaces": (TC_NAMESPACE,)})),
        "no step evens that out",
    ),
)
def test_no_batch_but_a_note(planning: PlanningFacts, note: str) -> None:
    """A note gives the reason if no batch can be proposed."""
    proposal = PLANNER.proposal(planning)
    assert proposal.batches == ()
    assert note in proposal.notes[0]


def test_other_unread_namespaces_do_not_matter() -> None:
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
    assert batch.title.endswith(": 0 to 16 each now, 3 to 10 after")
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
    assert raised(COUNT_PLANNER.proposal(planning)) == RaiseCoordinators(before=2, after=after)


def test_what_a_person_reads(golden: Golden) -> None:
    """The texts of a raise tell the count before and after, which clients use the new ones, and that it is final."""
    (batch,) = COUNT_PLANNER.proposal(facts()).batches
    (step,) = batch.steps
    assert (batch.kind, step.undo, step.touched.clients) == (TC_COUNT, None, 0)
    assert step.guards
    assert all(result.passed for result in step.guards)
    golden(f"{batch.title}\n{step.why}\n{step.effect}\n{step.undo_note}")


def test_what_the_policy_does_not_permit_is_left_out_and_said() -> None:
    """A note says how many coordinators would suit the brokers if the policy permits fewer."""
    (note,) = COUNT_PLANNER.proposal(facts(most=4)).notes
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
    proposal = COUNT_PLANNER.proposal(planning)
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
