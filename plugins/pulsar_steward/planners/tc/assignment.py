"""An assignment of parts to brokers, during the search for an even placement of transaction coordinators."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING

from pulsar_steward.planners.tc.parts import CoordinatorPart, PartSplit, Rank, split_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

_COUNT = itemgetter(0)


class CoordinatorAssignment:
    """Brokers and the movable parts on them. Parts that must stay count only in `loads`.

    Attributes:
        loads: Coordinators of each broker, movable or not.
        parts: The movable parts.
        where: The broker of each part.
        splits: The splits, in the order in which they were made.
    """

    def __init__(self, loads: Mapping[str, int], targets: Collection[str], parts: Iterable[CoordinatorPart]) -> None:
        self.loads = dict(loads)
        self.parts = {part.rank: part for part in parts}
        self.where = {rank: part.home for rank, part in self.parts.items()}
        self.splits: list[PartSplit] = []
        self._held: dict[str, list[Rank]] = {broker: [] for broker in self.loads}
        for rank in sorted(self.parts):
            self._held[self.where[rank]].append(rank)
        self._targets = sorted((self.loads[broker], broker) for broker in targets)
        self._sources = sorted((-load, broker) for broker, load in self.loads.items())
        self._may_take = frozenset(targets)
        self._cut: dict[Rank, PartSplit | None] = {}

    @property
    def fullest(self) -> str:
        """The broker with the most coordinators; at a tie, the lowest id."""
        return self._sources[0][1]

    @property
    def emptiest(self) -> str:
        """The possible target with the fewest coordinators; at a tie, the lowest id."""
        return self._targets[0][1]

    @property
    def spread(self) -> int:
        """The most coordinators on any broker minus the fewest on a possible target."""
        return self.loads[self.fullest] - self.loads[self.emptiest]

    def held(self, broker: str) -> Sequence[Rank]:
        """The movable parts on a broker, rising."""
        return self._held[broker]

    def may_hold(self, rank: Rank, broker: str) -> bool:
        """True for every possible target, and for the part's home."""
        return broker in self._may_take or self.parts[rank].home == broker

    def fuller_by(self, least: int) -> Iterator[tuple[str, int]]:
        """Brokers, the fullest first, with their difference to the emptiest, as long as it is at least `least`."""
        fewest = self.loads[self.emptiest]
        for load, broker in tuple(self._sources):
            if -load - fewest < least:
                return
            yield broker, -load - fewest

    def pairs(self, least: int) -> Iterator[tuple[str, str, int]]:
        """Pairs of brokers with their difference: every broker with the emptiest, and the fullest with every target."""
        emptiest, fullest = self.emptiest, self.fullest
        for source, difference in self.fuller_by(least):
            yield source, emptiest, difference
        most = self.loads[fullest]
        for load, target in self._targets[1:]:
            if most - load < least:
                return
            yield fullest, target, most - load

    def move(self, rank: Rank, target: str) -> None:
        """Puts a part on another broker."""
        source = self.where[rank]
        self._held[source].remove(rank)
        insort(self._held[target], rank)
        self.where[rank] = target
        self._load(source, -rank[0])
        self._load(target, rank[0])

    def cuts(self, broker: str) -> list[PartSplit]:
        """The splits that the parts on a broker allow."""
        return [split for rank in self._held[broker] if (split := self._split_of(rank))]

    def split(self, split: PartSplit) -> None:
        """Puts the halves of a part in its place; a half without coordinators is ignored from then on."""
        broker = self._take(split.part.rank)
        for half in split.placed:
            self._put(half, broker)
        self.splits.append(split)

    def join(self, split: PartSplit) -> None:
        """Takes back a split if both halves ended on one broker, as it would only disturb clients."""
        halves = [half.rank for half in split.placed]
        brokers = {self.where.get(rank) for rank in halves}
        if len(brokers) == 1 and None not in brokers:
            broker = self.where[halves[0]]
            for rank in halves:
                self._take(rank)
            self._put(split.part, broker)
            self.splits.remove(split)

    def _take(self, rank: Rank) -> str:
        broker = self.where.pop(rank)
        del self.parts[rank]
        self._held[broker].remove(rank)
        return broker

    def _put(self, part: CoordinatorPart, broker: str) -> None:
        self.parts[part.rank] = part
        self.where[part.rank] = broker
        insort(self._held[broker], part.rank)

    def _load(self, broker: str, more: int) -> None:
        before = self.loads[broker]
        self.loads[broker] = before + more
        _replace(self._sources, (-before, broker), (-before - more, broker))
        if broker in self._may_take:
            _replace(self._targets, (before, broker), (before + more, broker))

    def _split_of(self, rank: Rank) -> PartSplit | None:
        if rank not in self._cut:
            self._cut[rank] = split_of(self.parts[rank])
        return self._cut[rank]


def best_to_move(ranks: Sequence[Rank], difference: int, *, over: int = 0) -> Rank | None:
    """The best part to move: its count less `over` is nearest to half the difference, and below the whole difference.

    At a tie, the part with the fewest clients, then the lowest range. `over` coordinators come back in exchange.
    """
    above = bisect_left(ranks, over + difference // 2 + 1, key=_COUNT)
    candidates = list(ranks[above : above + 1])
    if above:
        candidates.append(ranks[bisect_left(ranks, ranks[above - 1][0], key=_COUNT)])
    helpful = [rank for rank in candidates if over < rank[0] < over + difference]
    return min(helpful, key=lambda rank: (-gain(rank[0] - over, difference), rank[1:]), default=None)


def first_of_count(ranks: Sequence[Rank], count: int) -> Rank | None:
    """The part (of `ranks`, rising) with exactly this count that has the fewest clients, then the lowest range."""
    place = bisect_left(ranks, count, key=_COUNT)
    return ranks[place] if place < len(ranks) and ranks[place][0] == count else None


def gain(count: int, difference: int) -> int:
    """Half of the decrease of the sum of squared loads if `count` coordinators move from the fuller broker."""
    return count * (difference - count)


def _replace(ordered: list[tuple[int, str]], old: tuple[int, str], new: tuple[int, str]) -> None:
    del ordered[bisect_left(ordered, old)]
    insort(ordered, new)


# Moving a part with c coordinators between two brokers that differ by M lowers the sum of the squared loads by 2c(M
# - c). So it helps only if c < M, and most if c is near M/2. (The published rule "at most M" never ends: a part of
# exactly M only swaps the two brokers' loads.) Every round lowers that sum, so the search ends. A part that helps
# towards any target helps towards the emptiest one, so no other target has to be tried.
#
# A round does the first of these that helps: move one part; exchange two parts so that an earlier move is taken
# back; exchange any two parts; swap two brokers' loads. The last helps nothing by itself, but may make one of the
# others possible. A split cannot be undone, so it comes after all of these.


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
        # First parts that came from the source: moving them back saves a move.
        return (
            _move_one(self._placement)
            or _exchange_one(self._placement, lambda placement, rank, source: placement.parts[rank].home == source)
            or _exchange_one(self._placement, CoordinatorAssignment.may_hold)
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
    for back in _one_of_each_count(placement, source, target, CoordinatorAssignment.may_hold):
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
