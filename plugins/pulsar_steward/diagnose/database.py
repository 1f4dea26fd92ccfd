"""In-memory database with tables of a snapshot, in which the checks' queries run."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import duckdb
import pyarrow as pa

from pulsar_steward.checks.views import MACROS
from pulsar_steward.model.tables import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.checks.views import View
    from pulsar_steward.model.tables import Table

Source: TypeAlias = "pa.Table | Sequence[str]"
"""Source of a table's rows: a table in memory, or paths of Parquet files."""

Sources: TypeAlias = "Mapping[str, Source]"
"""Sources by the table's name; a table that is absent has no rows."""

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


def connect(threads: int) -> duckdb.DuckDBPyConnection:
    """Opens an empty database with the macros of `pulsar_steward.checks.views`."""
    connection = duckdb.connect(config={"threads": threads, **_CONFIGURATION})
    connection.execute("set TimeZone = 'UTC'")
    for macro in MACROS:
        connection.execute(macro)
    return connection


def add_table(connection: duckdb.DuckDBPyConnection, table: Table, source: Source | None, name: str) -> None:
    """Creates a view of a table's rows.

    Columns that an older version did not collect are null.

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
        rows = connection.from_arrow(source)
    else:
        rows = connection.read_parquet(list(source), union_by_name=True, hive_partitioning=False)
    there = set(rows.columns)
    columns = [
        _quoted(each.name) if each.name in there else f"null::{_SQL_TYPES[each.kind]} as {_quoted(each.name)}"
        for each in table.columns
    ]
    rows.project(", ".join(columns)).create_view(name)


def add_views(connection: duckdb.DuckDBPyConnection, views: Sequence[View]) -> None:
    """Creates views, in order; those that are kept are computed now."""
    for view in views:
        kind = "temp table" if view.kept else "temp view"
        connection.execute(f"create {kind} {view.name} as {view.sql}")


def _quoted(name: str) -> str:
    return f'"{name}"'
