"""Arrow schemas of the snapshot's tables, and of the results of a collecting task."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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
from pulsar_steward.snapshots.arrow import schema_of

if TYPE_CHECKING:
    from collections.abc import Sequence

UNREAD = Table(
    "unread",
    "one row a namespace that could not be read; collecting's own, not written",
    (
        Column("name", Kind.STRING, "the namespace"),
        Column("failure", Kind.STRING, "why it could not be read"),
    ),
)

OWN_POLICIES = Table(
    "own_policies",
    "one row a topic, partitioned or not, whose own policies were asked for; becomes columns of `drilled`",
    (
        Column("base", Kind.STRING, "its full name, without the number of a partition"),
        Column("topic_quota_json", Kind.STRING, "as in `drilled`"),
        Column("topic_retention_json", Kind.STRING, "as in `drilled`"),
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

NAMESPACE_TABLES = (NAMESPACES, UNREAD)
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
