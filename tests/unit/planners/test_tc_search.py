"""The search for an even placement of coordinators: its parts, and its properties whatever the cluster looks like."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pulsar_steward.model.bundles import FULL_RANGE, TC_NAMESPACE, BundleRange
from pulsar_steward.model.canonical import canonical_json
from pulsar_steward.model.step import SplitBundle, UnloadBundle
from pulsar_steward.model.units import counted
from pulsar_steward.planners.tc.assignment import CoordinatorAssignment, best_to_move, even_out, first_of_count
from pulsar_steward.planners.tc.balance import TC_BALANCE as PLANNER
from pulsar_steward.planners.tc.balance import moves_in_order
from pulsar_steward.planners.tc.parts import Rank, part_of, split_of, targets_of
from tests.builders import (
    NOW,
    a_policy,
    broker,
    coordinators_in,
    counted_tc_bundles,
    equal_ranges,
    hashed_tc_bundles,
    planning_facts_with,
    tc_bundle,
)
from tests.cases import cases, row_by_row
from tests.unit.planners.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsar_steward.model.plan import Batch, Placement
    from pulsar_steward.planners.planning_facts import PlanningFacts, TcBundle

WHOLE = BundleRange(0, FULL_RANGE)
OTHERS = tuple(f"persistent://pulsar/system/other-{number}" for number in range(4))


def ranks(*counts: int) -> list[Rank]:
    """Parts of these counts, each with one client less than the one before, in rising order."""
    return sorted((count, 100 - place, place, place + 1) for place, count in enumerate(counts))


@row_by_row(
    "counts, difference, over, best",
    ((1, 2, 3), 16, 0, 3),
    ((1, 2, 3, 8, 9), 16, 0, 8),
    ((2, 4), 5, 0, 2),
    ((4,), 5, 0, 4),
    ((5,), 5, 0, None),
    ((1,), 1, 0, None),
    ((), 5, 0, None),
    ((1, 2, 3), 2, 1, 2),
    ((1, 2, 3), 2, 2, 3),
    ((1, 2), 2, 2, None),
)
def test_best_to_move(counts: tuple[int, ...], difference: int, over: int, best: int | None) -> None:
    """A part nearest to half the difference is best, and one of the whole difference or more never is."""
    found = best_to_move(ranks(*counts), difference, over=over)
    assert (found and found[0]) == best


def test_fewest_clients_of_equals() -> None:
    """Of parts that even out equally well, the one that disturbs the fewest clients moves."""
    assert best_to_move(ranks(2, 2, 2), 4) == (2, 98, 2, 3)
    assert first_of_count(ranks(1, 2, 2, 3), 2) == (2, 98, 2, 3)


def test_clients_tell_pieces_on_either_side_of_half() -> None:
    """Of two parts equally far above and below half the difference, the one with fewer clients moves."""
    assert best_to_move([(1, 9, 0, 1), (2, 5, 1, 2)], 3) == (2, 5, 1, 2)
    assert best_to_move([(1, 5, 0, 1), (2, 9, 1, 2)], 3) == (1, 5, 0, 1)


@pytest.mark.parametrize("count", [0, 4, 6])
def test_no_piece_of_that_count(count: int) -> None:
    """The search for a part of a given count returns None if no part has that count."""
    assert first_of_count(ranks(1, 5), count) is None


@pytest.mark.parametrize("coordinators", [2, 3, 5, 8])
@pytest.mark.parametrize("others", [0, 4])
def test_split_parts_what_is_there(coordinators: int, others: int) -> None:
    """A split keeps all coordinators and topics and halves the topics; of an odd number, the upper half gets more."""
    bundle = tc_bundle(WHOLE, broker(0), coordinators_in(WHOLE, coordinators), others=OTHERS[:others])
    split = split_of(part_of(bundle, broker(0)))
    assert split is not None
    lower, upper = split.halves
    assert sorted(lower.coordinators + upper.coordinators) == list(bundle.coordinators)
    assert lower.positions + upper.positions == bundle.positions
    assert len(upper.positions) - len(lower.positions) == (coordinators + others) % 2


@pytest.mark.parametrize("coordinators", [0, 1])
def test_one_coordinator_is_not_split(coordinators: int) -> None:
    """A bundle with at most one coordinator is not split, as that would even out nothing."""
    bundle = tc_bundle(WHOLE, broker(0), coordinators_in(WHOLE, coordinators), others=OTHERS)
    assert split_of(part_of(bundle, broker(0))) is None


def test_neighbours_cannot_be_parted() -> None:
    """A bundle whose topics are at neighbouring positions is not split, as the broker would cut below both of them."""
    bundle = tc_bundle(WHOLE, broker(0), coordinators_in(WHOLE, 2))
    neighbours = msgspec.structs.replace(part_of(bundle, broker(0)), positions=(5, 6))
    assert split_of(neighbours) is None


def evened_out(brokers: int, owners_and_counts: list[tuple[int, int]]) -> CoordinatorAssignment:
    """The end of the search with every bundle free to move, and to every broker."""
    bundles = counted_tc_bundles([(broker(owner), count) for owner, count in owners_and_counts])
    parts = [part_of(bundle, broker(owner)) for bundle, (owner, _) in zip(bundles, owners_and_counts, strict=True)]
    loads = dict.fromkeys(map(broker, range(brokers)), 0)
    for part in parts:
        loads[part.home] += len(part.coordinators)
    placement = CoordinatorAssignment(loads, tuple(loads), parts)
    even_out(placement)
    return placement


def wholes_do(counts: list[int], brokers: int) -> bool:
    """Whether some placement of whole bundles has a spread of at most 1: all of them are tried."""
    placements = {(0,) * brokers}
    for count in counts:
        placements = {
            tuple(sorted((*loads[:place], loads[place] + count, *loads[place + 1 :])))
            for loads in placements
            for place in range(brokers)
        }
    return any(loads[-1] - loads[0] <= 1 for loads in placements)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(2, 4), st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=2, max_size=7))
def test_splits_only_where_wholes_do_not_do(brokers: int, owners_and_counts: list[tuple[int, int]]) -> None:
    """Bundles are split only if no placement of whole bundles is even, and the resulting placement is even."""
    placement = evened_out(brokers, [(owner % brokers, count) for owner, count in owners_and_counts])
    assert bool(placement.splits) is not wholes_do([count for _, count in owners_and_counts], brokers)
    assert placement.spread <= 1


@cases(
    "brokers, owners_and_counts, splits, moves",
    ("two brokers change places first", 2, [(0, 2), (0, 2), (0, 3), (0, 3), (0, 4), (0, 4)], 0, 3),
    ("no part takes the place of an equal one", 4, [(0, 6), (0, 7), (2, 6)], 5, 4),
    ("halves on one broker are not parted", 3, [(0, 4), (0, 6), (0, 6), (1, 3), (1, 5)], 1, 2),
)
def test_few_splits_and_moves(brokers: int, owners_and_counts: list[tuple[int, int]], splits: int, moves: int) -> None:
    """The search for an even placement ends without superfluous splits and moves."""
    placement = evened_out(brokers, owners_and_counts)
    assert len(placement.splits) == splits
    assert sum(placement.where[rank] != part.home for rank, part in placement.parts.items()) == moves


def test_what_helps_most_comes_first() -> None:
    """The first move of a batch takes the largest part from the fullest broker to the emptiest one."""
    owners_and_counts = [(0, 1), (0, 1), (0, 1), (1, 1), (1, 1), (1, 3), (1, 4), (2, 1)]
    placement = evened_out(4, owners_and_counts)
    moves = list(moves_in_order({broker(0): 3, broker(1): 9, broker(2): 1, broker(3): 0}, placement))
    assert (moves[0].part.home, moves[0].target) == (broker(1), broker(3))
    assert len(moves[0].part.coordinators) == 4


quick = settings(max_examples=40, deadline=None, derandomize=True)
"""The same examples in every run: a property that fails, fails for everyone."""


@st.composite
def tc_bundles(draw: st.DrawFn, brokers: int, *, owned: bool) -> tuple[TcBundle, ...]:
    """Up to 16 bundles with up to 6 coordinators and 3 other topics each, perhaps crowded on few brokers."""
    crowded = draw(st.integers(0, brokers - 1))
    owners = st.integers(0, draw(st.sampled_from([crowded, brokers - 1]))).map(broker)
    return tuple(
        tc_bundle(
            bundle,
            draw(owners if owned else st.none() | owners),
            coordinators_in(bundle, draw(st.integers(0, 6))),
            others=[f"persistent://{TC_NAMESPACE}/other-{number}" for number in range(draw(st.integers(0, 3)))],
            clients=draw(st.integers(0, 20)),
        )
        for bundle in equal_ranges(draw(st.integers(1, 16)))
    )


@st.composite
def free_scenes(draw: st.DrawFn) -> PlanningFacts:
    """Clusters of up to 6 brokers in which every bundle may move, and to every broker."""
    brokers = draw(st.integers(1, 6))
    return planning_facts_with(brokers, draw(tc_bundles(brokers, owned=True)))


@st.composite
def scenes(draw: st.DrawFn) -> PlanningFacts:
    """Clusters with draining and isolated brokers, resting and crowded bundles, and bundles that nobody owns."""
    brokers = draw(st.integers(1, 6))
    names = st.sets(st.integers(0, brokers - 1).map(broker))
    bundles = draw(tc_bundles(brokers, owned=False))
    ages = {bundle.bundle: draw(st.none() | st.integers(0, 60)) for bundle in bundles}
    return planning_facts_with(
        brokers,
        bundles,
        tc_allowed=draw(st.none() | names.map(sorted).map(tuple)),
        moved_at={
            f"{TC_NAMESPACE}/{name}": NOW - timedelta(minutes=age) for name, age in ages.items() if age is not None
        },
        policy=a_policy(brokers={"draining": tuple(sorted(draw(names)))}, apply={"most_clients_per_step": 15}),
    )


MOVED = planning_facts_with(3, hashed_tc_bundles([broker(0)] * 16, 16))
"""Many bundles on one of three brokers: moves alone even that out."""
SPLIT = planning_facts_with(3, counted_tc_bundles([(broker(0), 6)]))
"""All coordinators in one bundle: it has to be split first."""


@pytest.mark.parametrize(("planning", "kinds"), [(MOVED, {UnloadBundle}), (SPLIT, {SplitBundle, UnloadBundle})])
def test_the_examples_are_balanced(planning: PlanningFacts, kinds: set[type[object]]) -> None:
    """The plans of the examples have moves, and those of the second one splits as well."""
    batches = PLANNER.proposal(planning).batches
    assert {type(step.change) for batch in batches for step in batch.steps} == kinds


def spread(placements: Iterable[Placement], targets: Iterable[str]) -> int:
    """The most on any broker minus the fewest on one that may take more."""
    loads = {placement.broker: placement.count for placement in placements}
    return max(loads.values()) - min(loads[target] for target in targets)


def moves(batch: Batch) -> list[UnloadBundle]:
    return [step.change for step in batch.steps if isinstance(step.change, UnloadBundle)]


@quick
@given(free_scenes())
def test_ends_even_where_bundles_allow(planning: PlanningFacts) -> None:
    """If every bundle may move, the plan ends with a spread of at most 1 and no further proposal."""
    replay = Replay(planning)
    for batch in PLANNER.proposal(planning).batches:
        replay.finish(batch)
    assert spread(replay.placement(), targets_of(planning)) <= 1
    assert PLANNER.proposal(replay.scene_after(planning)).batches == ()


@quick
@example(MOVED)
@example(SPLIT)
@given(scenes())
def test_never_less_even(planning: PlanningFacts) -> None:
    """Every batch makes the placement more even: the sum of squared counts falls and the spread does not grow."""
    for batch in PLANNER.proposal(planning).batches:
        assert spread(batch.after, targets_of(planning)) <= spread(batch.before, targets_of(planning))
        assert sum(p.count**2 for p in batch.after) < sum(p.count**2 for p in batch.before)


@quick
@example(MOVED)
@example(SPLIT)
@given(scenes())
def test_steps_lead_to_what_is_promised(planning: PlanningFacts) -> None:
    """The steps, carried out in order, lead from exactly `before` to exactly `after`, and lose no coordinator."""
    for batch in PLANNER.proposal(planning).batches:
        replay = Replay(planning)
        assert replay.placement() == batch.before
        replay.finish(batch)
        assert replay.placement() == batch.after
        ids = Counter(number for bundle in replay.bundles.values() for number in bundle.coordinators)
        assert ids == Counter(number for bundle in planning.tc_bundles for number in bundle.coordinators)


@quick
@example(MOVED)
@example(SPLIT)
@given(scenes())
def test_each_effect_is_what_happens(planning: PlanningFacts) -> None:
    """Each move's effect states the counts of both brokers before and after it as they are at that moment."""
    for batch in PLANNER.proposal(planning).batches:
        replay = Replay(planning)
        for step in batch.steps:
            before = {placement.broker: placement.count for placement in replay.placement()}
            replay.carry_out(step)
            after = {placement.broker: placement.count for placement in replay.placement()}
            if isinstance(step.change, UnloadBundle):
                source, target = step.change.source, step.change.target
                left = counted(after[source], "coordinator")
                assert f"{source} goes from {before[source]} to {left}" in step.effect
                assert f"{target} from {before[target]} to {after[target]}" in step.effect


@quick
@example(MOVED)
@example(SPLIT)
@given(scenes())
def test_moves_are_few_and_permitted(planning: PlanningFacts) -> None:
    """Each bundle moves at most once, to a permitted broker, past all guards; moves are no more than coordinators."""
    targets = targets_of(planning)
    for batch in PLANNER.proposal(planning).batches:
        bundles = [move.bundle for move in moves(batch)]
        assert len(bundles) == len(set(bundles)) <= sum(placement.count for placement in batch.before)
        assert all(move.target in targets and move.target != move.source for move in moves(batch))
        assert all(step.guards for step in batch.steps)
        assert all(result.passed for step in batch.steps for result in step.guards)


@quick
@example(MOVED)
@example(SPLIT)
@given(scenes())
def test_splits_come_first_and_are_used(planning: PlanningFacts) -> None:
    """Splits precede all moves, and the two halves of a split end on different brokers."""
    for batch in PLANNER.proposal(planning).batches:
        kinds = [isinstance(step.change, SplitBundle) for step in batch.steps]
        assert kinds == sorted(kinds, reverse=True)
        replay = Replay(planning)
        replay.finish(batch)
        for step in batch.steps:
            if isinstance(step.change, SplitBundle) and set(step.change.halves) <= set(replay.bundles):
                lower, upper = (replay.bundles[half] for half in step.change.halves)
                assert lower.owner != upper.owner


@quick
@given(st.data())
def test_same_in_same_out(data: st.DataObject) -> None:
    """The same facts give the same bytes, also if brokers, bundles and moves are listed in another order."""
    planning = data.draw(scenes())
    shuffled = msgspec.structs.replace(
        planning,
        brokers=tuple(data.draw(st.permutations(planning.brokers))),
        tc_bundles=tuple(data.draw(st.permutations(planning.tc_bundles))),
        moved_at=dict(reversed(planning.moved_at.items())),
    )
    assert canonical_json(PLANNER.proposal(planning)) == canonical_json(PLANNER.proposal(shuffled))
