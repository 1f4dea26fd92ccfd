"""Arrow schemas of the snapshot's tables, and of the results of a collecting task."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pyarrow as pa

from pulsar_steward.model.tables import (
    BROKERS,
    BUNDLES,
    CLIENT_VERSIONS,
    CONFIGURATION,
    DRILLED,
    NAMESPACES,
    SHARDED,
    Column,
    Kind,
    Table,
)
from pulsar_steward.snapshots.database import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

UNREAD = Table(
    "unread",
    "one row a namespace that could not be read; collecting's own, not written",
    (Column("name", Kind.STRING, "the namespace"), Column("failure", Kind.STRING, "why it could not be read")),
)

ELSEWHERE = Table(
    "elsewhere",
    "one row a namespace that only other clusters serve; collecting's own, becomes a column of `snapshot`",
    (Column("name", Kind.STRING, "the namespace"),),
)

OWN_POLICIES = Table(
    "own_policies",
    "one row a topic, partitioned or not, whose own policies were asked for; becomes columns of `drilled`",
    (
        Column("base", Kind.STRING, "its full name, without the number of a partition"),
        Column("topic_quota_json", Kind.STRING, "as in `drilled`"),
        Column("topic_retention_json", Kind.STRING, "as in `drilled`"),
        Column("topic_rates_json", Kind.STRING, "as in `drilled`"),
    ),
)

WRITTEN = Table(
    "written",
    "one row a file that a task wrote by itself; collecting's own, not written",
    (
        Column("name", Kind.STRING, "the table"),
        Column("file", Kind.STRING, "the name of the file, in the table's folder"),
    ),
)

SUSPECTS = Table(
    "suspects",
    "one row a sign of trouble and topic, the worst of what one task read; collecting's own, not written",
    (
        Column("sign", Kind.STRING, "one of `pulsar_steward.collect.suspects.SIGNS`"),
        Column("topic", Kind.STRING, "its full name"),
        Column("score", Kind.DOUBLE, "how bad it is, beside others of the same sign"),
    ),
)

BROKER_TABLES = (BROKERS, BUNDLES, CLIENT_VERSIONS, CONFIGURATION, SUSPECTS, *SHARDED)
"""Tables read from each broker."""

DRILL_TABLES = (DRILLED, OWN_POLICIES)
"""Tables read from a broker for its suspects."""

NAMESPACE_TABLES = (NAMESPACES, UNREAD, ELSEWHERE)
"""Tables read for each namespace."""


class TableBatch(NamedTuple):
    """Rows of one table."""

    table: Table
    rows: pa.RecordBatch


def answer_schema(tables: Sequence[Table]) -> pa.Schema:
    """One struct column for each table; a row fills exactly one of them, the others are null.

    So one pass over a broker can yield rows of several tables.
    """
    return pa.schema([(table.name, pa.struct(list(schema_of(table)))) for table in tables])


def as_answer(piece: TableBatch, tables: Sequence[Table]) -> pa.RecordBatch:
    """Converts rows to a batch of `answer_schema(tables)`."""
    schema, rows = answer_schema(tables), piece.rows
    columns = [pa.nulls(rows.num_rows, field.type) for field in schema]
    place = [table.name for table in tables].index(piece.table.name)
    columns[place] = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


T = TypeVar("T")

Task = Generator[Callable[[], Any], Any, Iterable[T]]
"""Generator that yields calls to run in the background, and returns the task's results.

It receives the return value of each call, or the call's exception.
"""


def interleave(things: Iterable[Task[T]], at_once: int) -> Iterator[T]:
    """Yields the results of all tasks, in the order in which they end.

    Calls run on threads; between its calls, each task runs on the calling thread, one at a time.

    Args:
        things: The tasks; each is started when a place is free.
        at_once: Maximum number of tasks under way.
    """
    to_come = iter(things)
    calls: dict[Future[Any], Task[T]] = {}
    with ThreadPoolExecutor(at_once) as pool:
        while True:
            for thing in islice(to_come, at_once - len(calls)):
                calls[pool.submit(next(thing))] = thing
            if not calls:
                return
            for call in wait(calls, return_when=FIRST_COMPLETED).done:
                thing = calls.pop(call)
                try:
                    calls[pool.submit(_carried_on(thing, call))] = thing
                except StopIteration as ended:
                    yield from ended.value


def _carried_on(thing: Task[T], call: Future[Any]) -> Callable[[], Any]:
    """Returns the task's next call; raises `StopIteration` when it has ended."""
    error = call.exception()
    return thing.send(call.result()) if error is None else thing.throw(error)
