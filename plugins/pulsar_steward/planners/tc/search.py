"""The search for an even placement of transaction coordinators: first whole bundles, then splits if those do not do.

Moving a part with c coordinators between two brokers that differ by M lowers the sum of the squared loads by 2c(M - c).
So it helps only if c < M, and most if c is near M/2. (The published rule "at most M" never ends: a part of exactly M
only swaps the two brokers' loads.) Every round lowers that sum, so the search ends. A part that helps towards any
target helps towards the emptiest one, so no other target has to be tried.

A round does the first of these that helps: move one part; exchange two parts so that an earlier move is taken back;
exchange any two parts; swap two brokers' loads. The last helps nothing by itself, but may make one of the others
possible. A split cannot be undone, so it comes after all of these.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.planners.tc.assignment import CoordinatorAssignment, best_to_move, first_of_count, gain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pulsar_steward.planners.tc.parts import PartSplit, Rank

WORTH_A_MOVE = 2
"""Minimum difference between two brokers that a move can lower."""

DETOURS = 300
"""Maximum number of detours in one search. Few, heavy bundles have many detours, and then only splits help."""


def even_out(placement: CoordinatorAssignment) -> None:
    """Moves parts, and splits them if moves are not enough, until the spread is at most 1 or nothing helps."""
    search = _Search(placement)
    search.settle()
    while _split_one(placement):
        search.settle()
    _cut_short(placement)
    for split in reversed(placement.splits.copy()):
        placement.join(split)
    _cut_short(placement)


class _Search:
    """Rounds of moves on a placement, until none helps."""

    def __init__(self, placement: CoordinatorAssignment) -> None:
        self._placement = placement
        self._detours_left = DETOURS

    def settle(self) -> None:
        while self._improve() or self._detour():
            pass

    def _improve(self) -> bool:
        return (
            _move_one(self._placement)
            or _exchange_one(self._placement, _is_guest)
            or _exchange_one(self._placement, _may_go)
        )

    def _detour(self) -> bool:
        placement = self._placement
        for source, target, difference in tuple(placement.pairs(1)) if placement.spread >= WORTH_A_MOVE else ():
            for back, forth in _even_exchanges(placement, source, target, difference):
                if not self._detours_left:
                    return False
                self._detours_left -= 1
                _exchange(placement, back, forth, source, target)
                if self._improve():
                    return True
                _exchange(placement, forth, back, source, target)
        return False


def _move_one(placement: CoordinatorAssignment) -> bool:
    for source, difference in placement.fuller_by(WORTH_A_MOVE):
        rank = best_to_move(placement.held(source), difference)
        if rank is not None:
            placement.move(rank, placement.emptiest)
            return True
    return False


def _is_guest(placement: CoordinatorAssignment, rank: Rank, source: str) -> bool:
    """True if a part came from the source, so that moving it back saves a move."""
    return placement.parts[rank].home == source


def _may_go(placement: CoordinatorAssignment, rank: Rank, source: str) -> bool:
    return placement.may_hold(rank, source)


def _exchange_one(
    placement: CoordinatorAssignment, may_return: Callable[[CoordinatorAssignment, Rank, str], bool]
) -> bool:
    """Exchanges a part of the source for a lighter part of the target."""
    for source, target, difference in placement.pairs(WORTH_A_MOVE):
        found = [
            (back, forth)
            for back in _one_of_each_count(placement, source, target, may_return)
            if (forth := best_to_move(placement.held(source), difference, over=back[0])) is not None
        ]
        if found:
            back, forth = min(found, key=lambda pair: (-gain(pair[1][0] - pair[0][0], difference), pair[1], pair[0]))
            _exchange(placement, back, forth, source, target)
            return True
    return False


def _one_of_each_count(
    placement: CoordinatorAssignment,
    source: str,
    target: str,
    may_return: Callable[[CoordinatorAssignment, Rank, str], bool],
) -> list[Rank]:
    ranks: dict[int, Rank] = {}
    for rank in placement.held(target):
        if rank[0] not in ranks and may_return(placement, rank, source):
            ranks[rank[0]] = rank
    return list(ranks.values())


def _even_exchanges(
    placement: CoordinatorAssignment, source: str, target: str, difference: int
) -> Iterator[tuple[Rank | None, Rank | None]]:
    """Ways to swap the loads of two brokers: a part that goes back, if any, and one that goes forth for it."""
    if alone := first_of_count(placement.held(source), difference):
        yield None, alone
    for back in _one_of_each_count(placement, source, target, _may_go):
        if forth := first_of_count(placement.held(source), back[0] + difference):
            yield back, forth


def _exchange(
    placement: CoordinatorAssignment, back: Rank | None, forth: Rank | None, source: str, target: str
) -> None:
    if back is not None:
        placement.move(back, source)
    if forth is not None:
        placement.move(forth, target)


def _split_one(placement: CoordinatorAssignment) -> bool:
    """Splits the most helpful part on the fullest broker that has one to split; False: there is none."""
    for source, difference in placement.fuller_by(WORTH_A_MOVE):
        if splits := placement.cuts(source):
            order = {split.part.rank: _split_order(split, difference) for split in splits}
            placement.split(min(splits, key=lambda split: order[split.part.rank]))
            return True
    return False


def _split_order(split: PartSplit, difference: int) -> tuple[int, int, tuple[int, ...]]:
    counts = [len(half.coordinators) for half in split.placed]
    best = max(max(gain(count, difference), 0) for count in counts)
    return -best, min(counts), split.part.rank[1:]


def _cut_short(placement: CoordinatorAssignment) -> None:
    """Keeps a part at home if an equal part replaces it: the equal part goes to the first part's target instead."""
    guests: defaultdict[tuple[str, int], list[Rank]] = defaultdict(list)
    for rank in sorted(placement.where):
        if placement.where[rank] != placement.parts[rank].home:
            guests[placement.where[rank], rank[0]].append(rank)
    for rank in sorted(placement.where):
        home, target = placement.parts[rank].home, placement.where[rank]
        if home != target and guests[home, rank[0]]:
            instead = guests[home, rank[0]].pop()
            guests[target, rank[0]].remove(rank)
            placement.move(rank, home)
            placement.move(instead, target)
            if placement.parts[instead].home != target:
                guests[target, rank[0]].append(instead)
