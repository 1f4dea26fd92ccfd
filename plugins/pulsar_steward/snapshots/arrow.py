"""Arrow schemas of the snapshot's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pulsar_steward.model.tables import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pulsar_steward.model.tables import Table

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
