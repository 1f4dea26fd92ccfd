"""The order in which pieces move to where the search put them: what helps most comes first.

So a batch that stops half way, or of which only the first steps are approved, has done the better part of its work.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.planners.tc_parts import CoordinatorPart
from pulsar_steward.planners.tc_placement import gain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pulsar_steward.planners.tc_placement import CoordinatorAssignment


class Move(msgspec.Struct, frozen=True):
    """A piece's way from its home to its one target, with what both brokers hold right before.

    Attributes:
        piece: What moves, from its home.
        target: The broker that gets it.
        source_load: Coordinators on the piece's home before the move.
        target_load: Coordinators on the target before the move.
    """

    piece: CoordinatorPart
    target: str
    source_load: int
    target_load: int


def moves_in_order(loads: Mapping[str, int], board: CoordinatorAssignment) -> Iterator[Move]:
    """Each piece that ends elsewhere than at home, once.

    Args:
        loads: Coordinators of every broker before the first move.
        board: The placement that was found.
    """
    now = dict(loads)
    waiting = _waiting(board)
    while waiting:
        way = min(waiting, key=lambda way: (-_gain_of(waiting[way][-1], now, way), way))
        piece = waiting[way].pop()
        if not waiting[way]:
            del waiting[way]
        source, target = way
        yield Move(piece, target, now[source], now[target])
        now[source] -= len(piece.coordinators)
        now[target] += len(piece.coordinators)


def _waiting(board: CoordinatorAssignment) -> dict[tuple[str, str], list[CoordinatorPart]]:
    """Pieces by source and target, the heaviest last."""
    waiting: defaultdict[tuple[str, str], list[CoordinatorPart]] = defaultdict(list)
    for rank in sorted(board.where):
        piece, target = board.pieces[rank], board.where[rank]
        if target != piece.home:
            waiting[piece.home, target].append(piece)
    return dict(waiting)


def _gain_of(piece: CoordinatorPart, loads: Mapping[str, int], way: tuple[str, str]) -> int:
    source, target = way
    return gain(len(piece.coordinators), loads[source] - loads[target])
