"""A database in memory with some tables of a snapshot in it, in which checks ask their questions."""

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
"""Where a table's rows are: here, or in Parquet files at these paths."""

Sources: TypeAlias = "Mapping[str, Source]"
"""By the table's name; a table that is absent has no rows."""

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
    # Nothing is fetched from anywhere, and what sorts is as it is everywhere.
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "default_null_order": "nulls_first_on_asc_last_on_desc",
}


def connect(threads: int) -> duckdb.DuckDBPyConnection:
    """An empty database with the macros of `pulsar_steward.checks.views`."""
    connection = duckdb.connect(config={"threads": threads, **_CONFIGURATION})
    connection.execute("set TimeZone = 'UTC'")
    for macro in MACROS:
        connection.execute(macro)
    return connection


def add_table(connection: duckdb.DuckDBPyConnection, table: Table, source: Source | None, name: str) -> None:
    """Makes a table's rows a view.

    What an older version did not collect is null.

    Args:
        connection: The database.
        table: What columns it has.
        source: Its rows; None: it has none.
        name: What to call the view.
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
    """Makes views, in order; those that are kept are computed now."""
    for view in views:
        kind = "temp table" if view.kept else "temp view"
        connection.execute(f"create {kind} {view.name} as {view.sql}")


def _quoted(name: str) -> str:
    return f'"{name}"'
