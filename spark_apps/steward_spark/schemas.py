"""Columns of the snapshot's tables as Spark's DDL; `pulsar_steward.model.tables` names and types them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.model.tables import Table


def answer_ddl(tables: Sequence[Table]) -> str:
    """DDL with one struct column per table, as `pulsar_steward.collect.arrow.answer_schema` has them."""
    return ", ".join(f"`{table.name}` struct<{_columns(table)}>" for table in tables)


def _columns(table: Table) -> str:
    return ", ".join(f"`{column.name}`: {column.kind.value}" for column in table.columns)
