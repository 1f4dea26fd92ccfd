"""The balance of transaction coordinators on clusters that operators know, and what each step tells them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.guards.evaluate import guards_of
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.plan import numbered
from pulsar_steward.model.step import SplitBundle, UnloadBundle
from pulsar_steward.planners.tc.balance import TC_BALANCE as PLANNER
from tests.beside import yardstick
from tests.builders import a_finding, broker, bundle_of, counted_tc_bundles, hashed_tc_bundles, planning_facts_with
from tests.unit.planners.replay import Replay

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Batch, Placement
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from tests.golden import Golden

OwnersAndCounts = list[tuple[str | None, int]]
ALL_ON_ONE = hashed_tc_bundles([broker(0)] * 16, 16)
HEAVY = counted_tc_bundles([(broker(0), 8)])


def only_batch(planning: PlanningFacts) -> Batch:
    """The one batch that is proposed."""
    (batch,) = numbered(PLANNER.proposal(planning).batches)
    return batch


def counts(placements: tuple[Placement, ...]) -> list[int]:
    """The counts of a placement, in order of broker."""
    return [placement.count for placement in placements]


def splits(batch: Batch) -> int:
    """Returns the number of steps that split a bundle."""
    return sum(isinstance(step.change, SplitBundle) for step in batch.steps)


def on(number: int, *of_each: int) -> OwnersAndCounts:
    """Bundles of one broker, by their counts."""
    return [(broker(number), count) for count in of_each]


def test_lab_with_all_on_one_broker() -> None:
    """A real cluster's 16 coordinators in 8 bundles go from one broker to 6/5/5, in whole bundles only."""
    assert sorted(len(bundle.coordinators) for bundle in ALL_ON_ONE) == [1, 1, 2, 2, 2, 2, 3, 3]
    batch = only_batch(planning_facts_with(3, ALL_ON_ONE))
    assert (counts(batch.before), counts(batch.after)) == ([16, 0, 0], [6, 5, 5])
    assert splits(batch) == 0


def test_lab_with_a_new_broker() -> None:
    """A fourth, empty broker beside brokers with 6, 5 and 5 coordinators gets as many as each of the others."""
    first = planning_facts_with(3, ALL_ON_ONE)
    replay = Replay(first)
    replay.finish(only_batch(first))
    batch = only_batch(planning_facts_with(4, replay.bundles.values()))
    assert (counts(batch.before), counts(batch.after)) == ([6, 5, 5, 0], [4, 4, 4, 4])


@pytest.mark.parametrize(
    ("brokers", "bundles", "after", "splits_needed"),
    [
        pytest.param(2, on(0, 8), [4, 4], 1, id="one bundle, halved"),
        pytest.param(4, on(0, 8), [2, 2, 2, 2], 3, id="one bundle, quartered"),
        pytest.param(4, [*on(0, 3, 3), *on(1, 5), *on(2, 5)], [4, 4, 4, 4], None, id="a new broker, heavy bundles"),
        pytest.param(3, on(0, 1, 1, 2, 2, 3, 3), [4, 4, 4], 0, id="wholes do if chosen well"),
        pytest.param(2, [*on(0, 2, 2, 3, 3), *on(1, 1, 1)], [6, 6], 0, id="wholes do by an exchange"),
        pytest.param(2, [*on(0, 4, 4), *on(1, 3, 3)], [7, 7], 0, id="two brokers exchange"),
        pytest.param(4, on(0, 1, 1), [1, 1, 0, 0], 0, id="fewer coordinators than brokers"),
        pytest.param(3, [*on(0, 1, 1, 1), *on(1, 1)], [2, 1, 1], 0, id="a remainder"),
    ],
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


def test_split_of_a_half() -> None:
    """Steps on the halves of a split come after the step that splits, also if a half is split again."""
    steps = only_batch(planning_facts_with(4, HEAVY)).steps
    cut_by = {
        half: step.step_id for step in steps if isinstance(step.change, SplitBundle) for half in step.change.halves
    }
    assert [step.after for step in steps] == [
        (cut_by[bundle_of(step)],) if bundle_of(step) in cut_by else () for step in steps
    ]
    assert sum(bool(step.after) for step in steps) == 5


def test_a_hundred_brokers_with_a_thousand_coordinators() -> None:
    """The plan for 1,000 coordinators on 100 brokers is even, and takes less processor time than five yardsticks."""
    began = time.process_time()
    batch = only_batch(planning_facts_with(100, hashed_tc_bundles([broker(0)] * 1024, 1000)))
    assert time.process_time() - began < 5 * yardstick()
    assert counts(batch.after) == [10] * 100
