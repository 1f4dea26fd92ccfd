"""Parquet that a task writes by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pulsar_steward.collect.arrow import TableBatch
from pulsar_steward.collect.reading import GROUP_ROWS, TableFiles
from pulsar_steward.model.tables import BUNDLES, CLIENTS, CONFIGURATION, SHARDED
from pulsar_steward.snapshots.database import schema_of

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.tables import Table


def settings(first: int, count: int) -> TableBatch:
    """Numbered rows of `configuration`."""
    rows = [{"broker": "b:1", "key": f"k{number}", "value": "v"} for number in range(first, first + count)]
    return TableBatch(CONFIGURATION, pa.RecordBatch.from_pylist(rows, schema=schema_of(CONFIGURATION)))


def test_each_table_has_a_file_and_the_rows_of_others_are_left(tmp_path: Path) -> None:
    """Each table gets a file of its own, also without rows, and rows of other tables are not taken."""
    bundles = TableBatch(BUNDLES, pa.RecordBatch.from_pylist([], schema=schema_of(BUNDLES)))
    with TableFiles(tmp_path, "part.parquet", (CONFIGURATION, CLIENTS)) as files:
        assert files.takes(settings(0, 3))
        assert files.takes(settings(3, 2))
        assert not files.takes(bundles)
        (named,) = files.written()

    assert named.rows.to_pylist() == [
        {"name": "configuration", "file": "part.parquet"},
        {"name": "clients", "file": "part.parquet"},
    ]
    written = pq.read_table(tmp_path / "configuration" / "part.parquet")
    assert written["key"].to_pylist() == [f"k{number}" for number in range(5)]
    assert pq.read_table(tmp_path / "clients" / "part.parquet").schema.equals(schema_of(CLIENTS))


def test_row_groups_are_neither_tiny_nor_endless(tmp_path: Path) -> None:
    """Small pieces are gathered into row groups of `GROUP_ROWS` rows, and the last group holds the rest."""
    with TableFiles(tmp_path, "part.parquet", (CONFIGURATION,)) as files:
        for first in range(0, 2 * GROUP_ROWS + 5_000, 5_000):
            files.takes(settings(first, 5_000))
        list(files.written())

    groups = pq.ParquetFile(tmp_path / "configuration" / "part.parquet").metadata
    assert [groups.row_group(number).num_rows for number in range(groups.num_row_groups)] == [
        GROUP_ROWS,
        GROUP_ROWS,
        5_000,
    ]


@pytest.mark.parametrize("table", SHARDED, ids=lambda table: table.name)
def test_every_large_table_can_be_written(tmp_path: Path, table: Table) -> None:
    """A row of each large table can be written to Parquet."""
    empty = TableBatch(table, pa.RecordBatch.from_pylist([{}], schema=schema_of(table)))
    with TableFiles(tmp_path, "part.parquet", (table,)) as files:
        files.takes(empty)
        list(files.written())

    assert pq.read_table(tmp_path / table.name / "part.parquet").num_rows == 1
