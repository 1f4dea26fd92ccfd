"""The snapshot's tables as Spark schemas; `pulsar_steward.model.tables` names and types their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.model.tables import Table


def spark_schema(table: Table) -> StructType:
    """A table's columns, in order, all nullable."""
    schema = StructType.fromDDL(_columns(table, " "))
    if not isinstance(schema, StructType):
        raise TypeError(f"the columns of {table.name} make a {schema.simpleString()} and no table")
    return schema


def answer_ddl(tables: Sequence[Table]) -> str:
    """DDL with one struct column per table, as `pulsar_steward.collect.arrow.answer_schema` has them."""
    return ", ".join(f"`{table.name}` struct<{_columns(table, ': ')}>" for table in tables)


def _columns(table: Table, between: str) -> str:
    return ", ".join(f"`{column.name}`{between}{column.kind.value}" for column in table.columns)
