"""The search for an even placement of transaction coordinators: whole bundles first, splits where these do not do.

Moving a piece with c coordinators between two brokers that differ by M lowers the sum of the squares of all loads by
2c(M - c): it helps only when c < M, and most when c is near M/2. (The published rule "at most M" never ends: a piece
of exactly M only makes the two brokers change places.) As every step lowers that sum, the search ends. A piece that
helps towards any target helps towards the emptiest one, so no other target has to be tried.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from operator import itemgetter
from typing import TYPE_CHECKING

from pulsar_steward.planners.tc_pieces import Piece, Rank, Split, split_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

WORTH_A_MOVE = 2
"""The least difference between two brokers that a move can lower."""

_COUNT = itemgetter(0)


class Board:
    """Which broker holds which piece, while the search goes on. Pieces that must stay only count in `loads`.

    Attributes:
        loads: Coordinators a broker holds, movable or not.
        pieces: The movable pieces.
        where: Which broker holds each of them.
        moved: The pieces that were ever moved, with the turn of the last time.
        splits: In the order in which they were made.
    """

    def __init__(self, loads: Mapping[str, int], targets: Collection[str], pieces: Iterable[Piece]) -> None:
        self.loads = dict(loads)
        self.pieces = {piece.rank: piece for piece in pieces}
        self.where = {rank: piece.home for rank, piece in self.pieces.items()}
        self.moved: dict[Rank, int] = {}
        self.splits: list[Split] = []
        self._turn = 0
        self._held: dict[str, list[Rank]] = {broker: [] for broker in self.loads}
        for rank in sorted(self.pieces):
            self._held[self.where[rank]].append(rank)
        self._targets = sorted((self.loads[broker], broker) for broker in targets)
        self._sources = sorted((-load, broker) for broker, load in self.loads.items())
        self._may_take = frozenset(targets)
        self._cut: dict[Rank, Split | None] = {}

    @property
    def fullest(self) -> str:
        """The broker with the most coordinators; of equals, the lowest id."""
        return self._sources[0][1]

    @property
    def emptiest(self) -> str:
        """The broker with the fewest coordinators of those that may take one; of equals, the lowest id."""
        return self._targets[0][1]

    @property
    def spread(self) -> int:
        """The most on any broker minus the fewest on one that may take more."""
        return self.loads[self.fullest] - self.loads[self.emptiest]

    def settle(self) -> None:
        """Moves pieces until no move and no exchange makes the placement more even."""
        while self._move_one() or self._exchange_one():
            pass

    def split_one(self, worth: int) -> bool:
        """Splits the piece that helps most, on the fullest broker that has one to split; False: there is none.

        Args:
            worth: The least difference to the emptiest broker that is worth a split.
        """
        for load, source in self._sources:
            difference = -load - self.loads[self.emptiest]
            if difference < worth:
                return False
            splits = [split for rank in self._held[source] if (split := self._split_of(rank))]
            if splits:
                self._split(min(splits, key=lambda split: _split_order(split, difference)))
                return True
        return False

    def _move_one(self) -> bool:
        target = self.emptiest
        for load, source in self._sources:
            difference = -load - self.loads[target]
            if difference < WORTH_A_MOVE:
                return False
            rank = best_to_move(self._held[source], difference)
            if rank is not None:
                self._move(rank, target)
                return True
        return False

    def _exchange_one(self) -> bool:
        """Takes back what a target got from a source and gives it something better: no move more than before."""
        for source, target in self._pairs():
            difference = self.loads[source] - self.loads[target]
            if difference >= WORTH_A_MOVE and (exchange := self._exchange(source, target, difference)):
                back, forth = exchange
                self._move(back, source)
                self._move(forth, target)
                return True
        return False

    def _pairs(self) -> Iterator[tuple[str, str]]:
        for _, source in self._sources:
            yield source, self.emptiest
        for _, target in self._targets[1:]:
            yield self.fullest, target

    def _exchange(self, source: str, target: str, difference: int) -> tuple[Rank, Rank] | None:
        guests: dict[int, Rank] = {}
        for rank in self._held[target]:
            if self.pieces[rank].home == source:
                guests.setdefault(rank[0], rank)
        found = [
            (back, forth)
            for back in guests.values()
            if (forth := best_to_move(self._held[source], difference, over=back[0])) is not None
        ]
        return min(found, key=lambda pair: (-_gain(pair[1][0] - pair[0][0], difference), pair[1], pair[0]), default=None)

    def _move(self, rank: Rank, target: str) -> None:
        source = self.where[rank]
        self._held[source].remove(rank)
        insort(self._held[target], rank)
        self.where[rank] = target
        self._turn += 1
        self.moved[rank] = self._turn
        self._load(source, -rank[0])
        self._load(target, rank[0])

    def _load(self, broker: str, more: int) -> None:
        before = self.loads[broker]
        self.loads[broker] = before + more
        _replace(self._sources, (-before, broker), (-before - more, broker))
        if broker in self._may_take:
            _replace(self._targets, (before, broker), (before + more, broker))

    def _split_of(self, rank: Rank) -> Split | None:
        if rank not in self._cut:
            self._cut[rank] = split_of(self.pieces[rank])
        return self._cut[rank]

    def _split(self, split: Split) -> None:
        rank = split.piece.rank
        broker = self.where.pop(rank)
        self._held[broker].remove(rank)
        turn = self.moved.pop(rank, None)
        for half in split.placed:
            self.pieces[half.rank] = half
            self.where[half.rank] = broker
            insort(self._held[broker], half.rank)
            if turn is not None:
                self.moved[half.rank] = turn
        self.splits.append(split)


def best_to_move(ranks: Sequence[Rank], difference: int, *, over: int = 0) -> Rank | None:
    """The piece whose count exceeds `over` by most nearly half the difference, and by less than all of it.

    Of equally good ones the one with the fewest clients, then the lowest range.

    Args:
        ranks: Pieces in rising order.
        difference: How many coordinators more the source has than the target.
        over: Coordinators that come back in exchange.
    """
    above = bisect_left(ranks, over + difference // 2 + 1, key=_COUNT)
    candidates = list(ranks[above : above + 1])
    if above:
        candidates.append(ranks[bisect_left(ranks, ranks[above - 1][0], key=_COUNT)])
    helpful = [rank for rank in candidates if over < rank[0] < over + difference]
    return min(helpful, key=lambda rank: (-_gain(rank[0] - over, difference), rank[1:]), default=None)


def _gain(count: int, difference: int) -> int:
    return count * (difference - count)


def _split_order(split: Split, difference: int) -> tuple[int, int, tuple[int, ...]]:
    counts = [len(half.coordinators) for half in split.placed]
    gain = max(max(_gain(count, difference), 0) for count in counts)
    return -gain, min(counts), split.piece.rank[1:]


def _replace(ordered: list[tuple[int, str]], old: tuple[int, str], new: tuple[int, str]) -> None:
    del ordered[bisect_left(ordered, old)]
    insort(ordered, new)
