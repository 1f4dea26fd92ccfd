"""The parts of the search for an even placement: which part to move, what a split yields, and when wholes do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_steward.model.bundles import FULL_RANGE, BundleRange
from pulsar_steward.planners.tc.assignment import CoordinatorAssignment, best_to_move, even_out, first_of_count
from pulsar_steward.planners.tc.balance import moves_in_order
from pulsar_steward.planners.tc.parts import part_of, split_of
from tests.builders import broker, coordinators_in, counted_tc_bundles, tc_bundle

if TYPE_CHECKING:
    from pulsar_steward.planners.tc.parts import Rank

WHOLE = BundleRange(0, FULL_RANGE)
OTHERS = tuple(f"persistent://pulsar/system/other-{number}" for number in range(4))


def ranks(*counts: int) -> list[Rank]:
    """Parts of these counts, each with one client less than the one before, in rising order."""
    return sorted((count, 100 - place, place, place + 1) for place, count in enumerate(counts))


@pytest.mark.parametrize(
    ("counts", "difference", "over", "best"),
    [
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
    ],
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


@pytest.mark.parametrize(
    ("brokers", "owners_and_counts", "splits", "moves"),
    [
        pytest.param(2, [(0, 2), (0, 2), (0, 3), (0, 3), (0, 4), (0, 4)], 0, 3, id="two brokers change places first"),
        pytest.param(4, [(0, 6), (0, 7), (2, 6)], 5, 4, id="no part takes the place of an equal one"),
        pytest.param(3, [(0, 4), (0, 6), (0, 6), (1, 3), (1, 5)], 1, 2, id="halves on one broker are not parted"),
    ],
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
