"""Which topics are worth asking for their own statistics: the worst of each kind of trouble, within a budget.

Each task keeps the worst of those that it reads, so that nobody has to look through all subscriptions for them.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_steward.collect.arrow import SUSPECTS, Piece
from pulsar_steward.model.tables import METRICS, SUBSCRIPTIONS
from pulsar_steward.snapshots.arrow import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

DELAYED_SERIES = "pulsar_subscription_delayed"

SIGNS = ("ack_holes", "unacked", "backlog", "redelivery", "delayed")
"""Kinds of trouble, in the order in which they take their turns."""

_BLOCKED_FIRST = 1e15
"""More messages than any subscription has: blocked ones come before all that are only slow."""

_PULSARS_OWN = r"^persistent://(pulsar/|[^/]+/[^/]+/__)"
_PERSISTENT = "persistent://"
_PARTITION = re.compile(r"(.+)-partition-\d+")

_ROWS_AT_ONCE = 50_000
"""That wait to be compared."""


class Worst:
    """The worst topics of each sign among rows as they come.

    Persistent topics only; Pulsar's own and those of heartbeats are left out.

    Args:
        most: Topics of each sign, at most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[str, list[pa.Table]] = {sign: [] for sign in SIGNS}

    def sees(self, piece: Piece) -> None:
        """Looks through rows of any table."""
        if self._most and piece.table in {SUBSCRIPTIONS, METRICS}:
            scores = _of_subscriptions(piece.rows) if piece.table == SUBSCRIPTIONS else _of_metrics(piece.rows)
            for sign, score in scores.items():
                self._keep(sign, _positive(piece.rows["topic"], score))

    def found(self) -> Iterator[Piece]:
        """Rows of `SUSPECTS`."""
        for sign, tables in self._kept.items():
            if tables:
                worst = _worst(tables, self._most)
                columns = [pa.array([sign] * worst.num_rows), *(each.combine_chunks() for each in worst.columns)]
                yield Piece(SUSPECTS, pa.RecordBatch.from_arrays(columns, schema=schema_of(SUSPECTS)))

    def _keep(self, sign: str, rows: pa.Table) -> None:
        if rows.num_rows:
            self._kept[sign].append(rows)
            if sum(table.num_rows for table in self._kept[sign]) > _ROWS_AT_ONCE:
                self._kept[sign] = [_worst(self._kept[sign], self._most)]


def worst_of(found: pa.Table, most: int) -> list[str]:
    """Full names of topics, the worst first.

    Args:
        found: Rows of `SUSPECTS`, of all tasks.
        most: Topics, at most.
    """
    by_sign = ((sign, found.filter(pc.field("sign") == sign).select(["topic", "score"])) for sign in SIGNS)
    return in_turn([_worst([rows], most)["topic"].to_pylist() for _, rows in by_sign], most) if most else []


def in_turn(lists: Iterable[Sequence[str]], most: int) -> list[str]:
    """The first of each list, then the second of each, and so on, each name once."""
    names = (name for names in zip_longest(*lists) for name in names if name is not None)
    return list(dict.fromkeys(names))[:most]


def base_of(topic: str) -> str:
    """The topic that a partition is of; any other topic itself."""
    match = _PARTITION.fullmatch(topic)
    return match[1] if match else topic


def _of_subscriptions(rows: pa.RecordBatch) -> Mapping[str, pa.Array]:
    blocked = pc.or_(
        pc.fill_null(rows["blocked_on_unacked"], False),
        pc.fill_null(pc.greater(rows["consumers_blocked"], 0), False),
    )
    first = pc.multiply(pc.cast(blocked, pa.float64()), _BLOCKED_FIRST)
    return {
        "ack_holes": rows["ack_holes"],
        "unacked": pc.add(pc.cast(rows["unacked_messages"], pa.float64(), safe=False), first),
        "backlog": rows["backlog_messages"],
        "redelivery": rows["redeliver_rate"],
    }


def _of_metrics(rows: pa.RecordBatch) -> Mapping[str, pa.Array]:
    return {"delayed": pc.if_else(pc.equal(rows["series"], DELAYED_SERIES), rows["value"], None)}


def _positive(topics: pa.Array, scores: pa.Array) -> pa.Table:
    """`topic` and `score` of those that show the sign and are somebody's."""
    rows = pa.table({"topic": topics, "score": pc.cast(scores, pa.float64(), safe=False)}).filter(pc.field("score") > 0)
    if not rows.num_rows:
        return rows
    names = rows["topic"]
    somebodys = pc.and_not(pc.starts_with(names, _PERSISTENT), pc.match_substring_regex(names, _PULSARS_OWN))
    return rows.filter(somebodys)


def _worst(tables: Sequence[pa.Table], most: int) -> pa.Table:
    """So many topics with their highest scores, the worst first."""
    highest = pa.concat_tables(tables).group_by("topic").aggregate([("score", "max")])
    order = pc.select_k_unstable(highest, most, [("score_max", "descending"), ("topic", "ascending")])
    return highest.take(order).rename_columns({"topic": "topic", "score_max": "score"}).select(["topic", "score"])
