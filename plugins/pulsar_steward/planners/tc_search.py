"""The search for an even placement of transaction coordinators: whole bundles first, splits where these do not do.

Moving a piece with c coordinators between two brokers that differ by M lowers the sum of the squares of all loads by
2c(M - c): it helps only when c < M, and most when c is near M/2. (The published rule "at most M" never ends: a piece
of exactly M only makes the two brokers change places.) As every round lowers that sum, the search ends. A piece that
helps towards any target helps towards the emptiest one, so no other target has to be tried.

What a round may do, the first that helps: move one piece; exchange two and so take back an earlier move; exchange any
two; let two brokers change places, which by itself helps nothing but may make one of the former possible. A split
cannot be undone, so it comes after all of these.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.planners.tc_placement import CoordinatorAssignment, best_to_move, first_of_count, gain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pulsar_steward.planners.tc_parts import Rank, Split

WORTH_A_MOVE = 2
"""The least difference between two brokers that a move can lower."""

DETOURS = 300
"""Detours tried in one search; they are many where bundles are few and heavy, and then only splits help."""


def even_out(board: CoordinatorAssignment) -> None:
    """Moves pieces, and splits them where moves alone do not do, until the spread is at most 1 or nothing helps."""
    search = _Search(board)
    search.settle()
    while _split_one(board):
        search.settle()
    _cut_short(board)
    for split in reversed(board.splits.copy()):
        board.join(split)
    _cut_short(board)


class _Search:
    """Rounds of moves on a board, until none helps."""

    def __init__(self, board: CoordinatorAssignment) -> None:
        self._board = board
        self._detours_left = DETOURS

    def settle(self) -> None:
        while self._improve() or self._detour():
            pass

    def _improve(self) -> bool:
        return _move_one(self._board) or _exchange_one(self._board, _is_guest) or _exchange_one(self._board, _may_go)

    def _detour(self) -> bool:
        board = self._board
        for source, target, difference in tuple(board.pairs(1)) if board.spread >= WORTH_A_MOVE else ():
            for back, forth in _even_exchanges(board, source, target, difference):
                if not self._detours_left:
                    return False
                self._detours_left -= 1
                _exchange(board, back, forth, source, target)
                if self._improve():
                    return True
                _exchange(board, forth, back, source, target)
        return False


def _move_one(board: CoordinatorAssignment) -> bool:
    for source, difference in board.fuller_by(WORTH_A_MOVE):
        rank = best_to_move(board.held(source), difference)
        if rank is not None:
            board.move(rank, board.emptiest)
            return True
    return False


def _is_guest(board: CoordinatorAssignment, rank: Rank, source: str) -> bool:
    """Whether a piece came from the source, so that its way back is one move less."""
    return board.pieces[rank].home == source


def _may_go(board: CoordinatorAssignment, rank: Rank, source: str) -> bool:
    return board.may_hold(rank, source)


def _exchange_one(board: CoordinatorAssignment, may_return: Callable[[CoordinatorAssignment, Rank, str], bool]) -> bool:
    """Gives a target a piece of the source for a lighter one."""
    for source, target, difference in board.pairs(WORTH_A_MOVE):
        found = [
            (back, forth)
            for back in _one_of_each_count(board, source, target, may_return)
            if (forth := best_to_move(board.held(source), difference, over=back[0])) is not None
        ]
        if found:
            back, forth = min(found, key=lambda pair: (-gain(pair[1][0] - pair[0][0], difference), pair[1], pair[0]))
            _exchange(board, back, forth, source, target)
            return True
    return False


def _one_of_each_count(
    board: CoordinatorAssignment,
    source: str,
    target: str,
    may_return: Callable[[CoordinatorAssignment, Rank, str], bool],
) -> list[Rank]:
    ranks: dict[int, Rank] = {}
    for rank in board.held(target):
        if rank[0] not in ranks and may_return(board, rank, source):
            ranks[rank[0]] = rank
    return list(ranks.values())


def _even_exchanges(
    board: CoordinatorAssignment, source: str, target: str, difference: int
) -> Iterator[tuple[Rank | None, Rank | None]]:
    """Ways for two brokers to change places: what goes back, and what goes forth for it."""
    if alone := first_of_count(board.held(source), difference):
        yield None, alone
    for back in _one_of_each_count(board, source, target, _may_go):
        if forth := first_of_count(board.held(source), back[0] + difference):
            yield back, forth


def _exchange(board: CoordinatorAssignment, back: Rank | None, forth: Rank | None, source: str, target: str) -> None:
    if back is not None:
        board.move(back, source)
    if forth is not None:
        board.move(forth, target)


def _split_one(board: CoordinatorAssignment) -> bool:
    """Splits the piece that helps most, on the fullest broker that has one to split; False: there is none."""
    for source, difference in board.fuller_by(WORTH_A_MOVE):
        if splits := board.cuts(source):
            order = {split.piece.rank: _split_order(split, difference) for split in splits}
            board.split(min(splits, key=lambda split: order[split.piece.rank]))
            return True
    return False


def _split_order(split: Split, difference: int) -> tuple[int, int, tuple[int, ...]]:
    counts = [len(half.coordinators) for half in split.placed]
    best = max(max(gain(count, difference), 0) for count in counts)
    return -best, min(counts), split.piece.rank[1:]


def _cut_short(board: CoordinatorAssignment) -> None:
    """Leaves a piece at home where an equal one comes in its place: that one goes to the first one's target instead."""
    guests: defaultdict[tuple[str, int], list[Rank]] = defaultdict(list)
    for rank in sorted(board.where):
        if board.where[rank] != board.pieces[rank].home:
            guests[board.where[rank], rank[0]].append(rank)
    for rank in sorted(board.where):
        home, target = board.pieces[rank].home, board.where[rank]
        if home != target and guests[home, rank[0]]:
            instead = guests[home, rank[0]].pop()
            guests[target, rank[0]].remove(rank)
            board.move(rank, home)
            board.move(instead, target)
            if board.pieces[instead].home != target:
                guests[target, rank[0]].append(instead)
