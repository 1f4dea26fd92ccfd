"""Arrow schemas of the snapshot's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pulsar_steward.model.tables import Kind

if TYPE_CHECKING:
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


def schema_of(table: Table) -> pa.Schema:
    """Arrow schema of a table: its columns, in order, all nullable."""
    return pa.schema([(column.name, _TYPES[column.kind]) for column in table.columns])
