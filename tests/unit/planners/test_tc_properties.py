"""Properties of every balance of transaction coordinators, whatever the cluster looks like."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.canonical import canonical_json
from pulsar_steward.model.step import SplitBundle, UnloadBundle
from pulsar_steward.model.units import counted
from pulsar_steward.planners.tc.balance import TC_BALANCE as PLANNER
from pulsar_steward.planners.tc.parts import targets_of
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
from tests.unit.planners.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsar_steward.model.plan import Batch, Placement
    from pulsar_steward.planners.planning_facts import PlanningFacts, TcBundle

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
    """The moves of a batch."""
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
