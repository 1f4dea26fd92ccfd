"""In-memory database with tables of a snapshot, for the queries of checks."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pulsar_steward.checks.views import MACROS
from pulsar_steward.model.tables import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pulsar_steward.checks.views import SqlView
    from pulsar_steward.model.tables import Table

Source: TypeAlias = "pa.Table | Sequence[str]"
"""Source of a table's rows: a table in memory, or paths of Parquet files."""

Sources: TypeAlias = "Mapping[str, Source]"
"""Sources by the table's name; a missing table has no rows."""

_SQL_TYPES = {
    Kind.STRING: "varchar",
    Kind.INT: "integer",
    Kind.LONG: "bigint",
    Kind.DOUBLE: "double",
    Kind.BOOLEAN: "boolean",
    Kind.TIMESTAMP: "timestamptz",
    Kind.LONGS: "bigint[]",
    Kind.STRINGS: "varchar[]",
}

_CONFIGURATION: dict[str, str | bool] = {
    # No extension is downloaded, and the order of nulls is the same everywhere.
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "default_null_order": "nulls_first_on_asc_last_on_desc",
}


_ENGINES: dict[tuple[int, int], duckdb.DuckDBPyConnection] = {}
"""Engines of this process, by its id (as a fork cannot use its parent's engine) and by their number of threads."""

_WITH_MACROS = "memory"
"""An engine's own database, which holds nothing but the macros."""

_ENGINES_LOCK = threading.Lock()
_NUMBERS = count(1)


@contextmanager
def connect(threads: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty database with the macros of `pulsar_steward.checks.views`, removed at the end of the `with` statement.

    Databases of a process share an engine, and its macros: an engine takes thirty times as long to start as a database
    to add.

    Args:
        threads: Threads of the engine; each query also uses the caller's thread.
    """
    name = f"shard_{next(_NUMBERS)}"
    try:
        connection = _attached(threads, name)
    except duckdb.FatalException:  # after an internal error an engine refuses everything
        _forget(threads)
        connection = _attached(threads, name)
    try:
        yield connection
    finally:
        connection.close()
        try:
            with _connection(threads) as connection:
                connection.execute(f"detach database if exists {name}")
        except duckdb.FatalException:
            _forget(threads)


def _attached(threads: int, name: str) -> duckdb.DuckDBPyConnection:
    connection = _connection(threads)
    connection.execute(f"attach ':memory:' as {name}")
    connection.execute(f"set search_path = '{name},{_WITH_MACROS}'")
    connection.execute("set TimeZone = 'UTC'")
    return connection


def _connection(threads: int) -> duckdb.DuckDBPyConnection:
    """A connection to this process's engine; each thread needs its own."""
    key = os.getpid(), threads
    with _ENGINES_LOCK:
        if key not in _ENGINES:
            engine = duckdb.connect(config={"threads": threads, **_CONFIGURATION})
            for macro in MACROS:
                engine.execute(macro)
            _ENGINES[key] = engine
        return _ENGINES[key].cursor()


def _forget(threads: int) -> None:
    with _ENGINES_LOCK:
        _ENGINES.pop((os.getpid(), threads), None)


def add_table(connection: duckdb.DuckDBPyConnection, table: Table, source: Source | None, name: str) -> None:
    """Creates a view of a table's rows.

    Missing columns are null.

    Args:
        connection: The database.
        table: The table, with its columns.
        source: Its rows; None: it has none.
        name: Name of the view.
    """
    if source is None or (not isinstance(source, pa.Table) and not source):
        nothing = ", ".join(f"null::{_SQL_TYPES[each.kind]} as {_quoted(each.name)}" for each in table.columns)
        connection.execute(f"create temp view {name} as select {nothing} where false")
        return
    if isinstance(source, pa.Table):
        connection.register(name, _whole(source, table))
        return
    rows = connection.read_parquet(list(source), union_by_name=True, hive_partitioning=False)
    there = set(rows.columns)
    columns = [
        _quoted(each.name) if each.name in there else f"null::{_SQL_TYPES[each.kind]} as {_quoted(each.name)}"
        for each in table.columns
    ]
    rows.project(", ".join(columns)).create_view(name)


def is_empty(source: Source | None) -> bool:
    """True if a source has no rows, as far as that is known without reading files."""
    return source is None or len(source) == 0


def rows_in(table: Table, source: Source | None) -> list[dict[str, Any]]:
    """Rows of a small table, read without a database; missing columns are null."""
    if source is None or is_empty(source):
        return []
    if not isinstance(source, pa.Table):
        files = [pq.ParquetFile(path).read() for path in source]
        source = pa.concat_tables(files, promote_options="permissive")
    return [dict(row) for row in _whole(source, table).to_pylist()]


def _whole(rows: pa.Table, table: Table) -> pa.Table:
    """Only the table's columns, in their order; missing ones are null."""
    there = set(rows.column_names)
    return pa.table(
        [
            rows[field.name] if field.name in there else pa.nulls(rows.num_rows, field.type)
            for field in schema_of(table)
        ],
        names=table.names,
    )


def add_views(connection: duckdb.DuckDBPyConnection, views: Sequence[SqlView]) -> None:
    """Creates views, in order; views marked `kept` are computed now."""
    for view in views:
        kind = "temp table" if view.kept else "temp view"
        connection.execute(f"create {kind} {view.name} as {view.sql}")


def _quoted(name: str) -> str:
    return f'"{name}"'


_TYPES: dict[Kind, pa.DataType] = {
    Kind.STRING: pa.string(),
    Kind.INT: pa.int32(),
    Kind.LONG: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Kind.LONGS: pa.list_(pa.int64()),
    Kind.STRINGS: pa.list_(pa.string()),
}


def rows_of(table: Table, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows of a table, by column; a column missing in a row is null."""
    return pa.Table.from_pylist(list(rows), schema=schema_of(table))


def schema_of(table: Table) -> pa.Schema:
    """Arrow schema of a table: its columns, in order, all nullable."""
    return pa.schema([(column.name, _TYPES[column.kind]) for column in table.columns])
