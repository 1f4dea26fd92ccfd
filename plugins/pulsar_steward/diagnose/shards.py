"""Execution of queries on one shard in a separate database, and combination of several shards' results."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pulsar_steward.checks.views import LARGE_TABLES, SHARED, TABLE_MACROS
from pulsar_steward.diagnose.moving import IN_PLACE, MOVING
from pulsar_steward.diagnose.queries import FOUND, statement_of, statement_on_all, text_of, words_of
from pulsar_steward.model.tables import SHARDED, SMALL_BEFORE
from pulsar_steward.snapshots.database import add_table, add_views, connect

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pulsar_steward.checks.check import Row
    from pulsar_steward.checks.views import SqlView
    from pulsar_steward.diagnose.queries import Key, PreparedQuery
    from pulsar_steward.snapshots.database import Sources

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ShardRows:
    """Result of a query: its rows, limited in number, and their full count; or the failure.

    Attributes:
        rows: The rows; None: the query failed.
        count: Number of rows before they were limited.
        cut: The rows that were left out, by namespace and flags (`QueryRows.cut`).
        failure: Why the query failed.
    """

    rows: pa.Table | None
    count: int = 0
    failure: str | None = None
    cut: tuple[tuple[Row, int], ...] = ()


@dataclass(frozen=True)
class ShardTask:
    """Queries on one shard.

    Attributes:
        small: The small tables.
        shard: The shard's own tables.
        queries: The queries.
        views: Views that queries may select from.
        threads: Threads of its database.
        given: For queries on an earlier snapshot: the results from this snapshot's shards, by asker.
        settled: Replacement for rows of topics that moved during the read; empty if none did.
    """

    small: Sources
    shard: Sources
    queries: tuple[PreparedQuery, ...]
    views: tuple[SqlView, ...]
    threads: int
    given: Mapping[str, Mapping[str, pa.Table]] = field(default_factory=dict)
    settled: Mapping[str, pa.Table] = field(default_factory=dict)

    def places(self) -> list[str]:
        """Files of the shard's own tables."""
        return [place for source in self.shard.values() if not isinstance(source, pa.Table) for place in source]

    def with_contents(self, contents: Mapping[str, bytes]) -> ShardTask:
        """Returns the task with tables instead of files, from the files' content."""
        tables = {
            name: source
            if isinstance(source, pa.Table)
            else pa.concat_tables([pq.read_table(BytesIO(contents[place])) for place in source])
            for name, source in self.shard.items()
        }
        return replace(self, shard=tables)


def run_on_shard(task: ShardTask) -> dict[Key, ShardRows]:
    """Results of every query on one shard."""
    with connect(task.threads) as connection:
        prepare(connection, task, [text_of(asked) for asked in task.queries])
        queried = {}
        for asked in task.queries:
            given = task.given.get(asked.key[0], {})
            for name, rows in given.items():
                connection.register(name, rows)
            queried[asked.key] = selected_by(connection, asked)
            for name in given:
                connection.execute(f"drop view {name}")
        return queried


def prepare(connection: duckdb.DuckDBPyConnection, task: ShardTask, texts: Sequence[str]) -> None:
    """Creates only the tables, macros and views that the texts need, as each takes 1 ms."""
    needed = views_needed(task.views, texts)
    words = words_needed(needed, texts)
    for table in SMALL_BEFORE:  # only earlier snapshots have a diagnosis; this one has none yet
        if table.name in words:
            add_table(connection, table, task.small.get(table.name), table.name)
    for name, rows in task.settled.items():
        connection.from_arrow(rows).create_view(name if name == MOVING else f"settled_{name}")
    for table in SHARDED:
        raw = f"raw_{table.name}"
        if raw in words:
            source = task.shard.get(table.name)
            add_table(connection, table, source, f"told_{table.name}" if task.settled else raw)
            if task.settled:
                connection.execute(f"create temp view {raw} as {IN_PLACE[table.name]}")
    for name, macro in TABLE_MACROS.items():
        if name in words:
            connection.execute(macro)
    add_views(connection, needed)


def views_needed(views: Sequence[SqlView], texts: Sequence[str]) -> list[SqlView]:
    """Views that texts name, also through other views, in order; `limits` needs `namespaces_seen`."""
    words = {word for text in texts for word in words_of(text)}
    if "limits" in words:
        words.add("namespaces_seen")
    found = []
    for view in reversed((*LARGE_TABLES, *SHARED, *views)):
        if view.name in words:
            found.append(view)
            words.update(words_of(view.sql))
    return found[::-1]


def words_needed(views: Sequence[SqlView], texts: Sequence[str]) -> frozenset[str]:
    """Words of texts, of the needed views, and of the macros that these name; they include names of tables."""
    words = {word for text in (*texts, *(view.sql for view in views)) for word in words_of(text)}
    words |= {word for name, macro in TABLE_MACROS.items() if name in words for word in words_of(macro)}
    return frozenset(words)


def selected_by(connection: duckdb.DuckDBPyConnection, asked: PreparedQuery) -> ShardRows:
    """Result of one query, or its failure."""
    try:
        return _rows(connection, asked)
    except duckdb.Error as error:
        log.exception("%s: its query `%s` is broken on this snapshot", *asked.key)
        return ShardRows(None, failure=f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")


def _rows(connection: duckdb.DuckDBPyConnection, asked: PreparedQuery) -> ShardRows:
    rows = connection.sql(statement_of(asked), params=dict(asked.parameters)).to_arrow_table()
    if asked.worst_first is None:
        return ShardRows(rows, rows.num_rows)
    count, rows = rows[FOUND][0].as_py() if rows.num_rows else 0, rows.drop_columns([FOUND])
    return ShardRows(rows, count, cut=_cut(connection, asked, rows) if count > rows.num_rows else ())


def _cut(connection: duckdb.DuckDBPyConnection, asked: PreparedQuery, kept: pa.Table) -> tuple[tuple[Row, int], ...]:
    """The rows beyond the limit, by namespace and flags; a second run of the query, as hardly any has so many rows."""
    shape = connection.sql(statement_on_all(asked, "select * from found limit 0"), params=asked.parameters_of_all)
    names = [each for each in _flags(shape.to_arrow_table()) if each in kept.column_names]
    if not names:
        return ()
    counts = f"select {_grouped(names)}, count(*) as {FOUND} from found group by all"
    rows = connection.sql(statement_on_all(asked, counts), params=asked.parameters_of_all).to_arrow_table().to_pylist()
    found = {tuple(row.items()): number for row in rows if (number := row.pop(FOUND))}
    return _counted(Counter(found) - _flagged(connection, kept, names))


def _flags(rows: pa.Table) -> list[str]:
    """Names of the columns by which cut rows are counted: those that a severity depends on, and of the namespace."""
    whose = next((name for name in ("namespace", "topic") if name in rows.column_names), None)
    flags = (each.name for each in rows.schema if each.name == "rank" or pa.types.is_boolean(each.type))
    return [*flags, *([whose] if whose else [])]


def _grouped(names: Sequence[str]) -> str:
    """SELECT list of these columns, with the namespace of a topic in its place."""
    return ", ".join("namespace_of(topic) as namespace" if name == "topic" else name for name in names)


def _flagged(
    connection: duckdb.DuckDBPyConnection, rows: pa.Table, names: Sequence[str]
) -> Counter[tuple[tuple[str, object], ...]]:
    """Number of rows by namespace and flags."""
    grouped = connection.from_arrow(rows).project(_grouped(names)).to_arrow_table().to_pylist()
    return Counter(tuple(row.items()) for row in grouped)


def _counted(rows: Mapping[tuple[tuple[str, object], ...], int]) -> tuple[tuple[Row, int], ...]:
    return tuple((dict(flags), number) for flags, number in rows.items())


def all_together(asked: Iterable[PreparedQuery], parts: Mapping[Key, Sequence[ShardRows]]) -> dict[Key, ShardRows]:
    """Combines the results of several shards for each query; queries without results are left out."""
    told = [(each, parts[each.key]) for each in asked if parts[each.key]]
    if all(len(each) == 1 for _, each in told):
        return {each.key: only for each, (only,) in told}
    with connect(1) as connection:
        return {each.key: _together(connection, each, some) for each, some in told}


def _together(connection: duckdb.DuckDBPyConnection, asked: PreparedQuery, parts: Sequence[ShardRows]) -> ShardRows:
    """Combines the results of several shards for one query, ordered and limited again."""
    for part in parts:
        if part.rows is None:
            return part
    if len(parts) == 1:
        return parts[0]
    rows = pa.concat_tables([part.rows for part in parts], promote_options="permissive")
    cut = tuple(each for part in parts for each in part.cut)
    if rows.num_rows > 1:
        connection.from_arrow(rows).create_view("answers", replace=True)
        rows = connection.sql(f"select * from answers order by {asked.worst_first or 'all'}").to_arrow_table()
    if asked.worst_first is not None and rows.num_rows > asked.most:
        beyond = rows.slice(asked.most)
        if names := _flags(rows):
            cut += _counted(_flagged(connection, beyond, names))
        rows = rows.slice(0, asked.most)
    return ShardRows(rows, sum(part.count for part in parts), cut=cut)
