"""Parquet files that a task writes itself, one per table, to a folder that every task and the driver can see.

Spark's own way converts Arrow to Java's rows and these to Parquet, which costs more than all the rest of
collecting (docs/performance.md). It is still used for any other file system.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from pulsar_steward.admin.closing import Closing
from pulsar_steward.collect.arrow import WRITTEN
from pulsar_steward.collect.rows import Rows
from pulsar_steward.model.tables import Kind
from pulsar_steward.snapshots.arrow import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.collect.arrow import TableBatch
    from pulsar_steward.model.tables import Table

GROUP_ROWS = 100_000
"""Rows in a row group: the unit of reading."""

ALL_DIFFERENT = frozenset({"topic", "labels_json"})
"""Columns whose texts hardly repeat: a dictionary of them would be abandoned once it is full."""


class TableFiles(Closing):
    """One file for each of some tables: ``FOLDER/TABLE/NAME``. A file that was not closed is never used.

    Args:
        folder: Contains a folder for each table; created if missing.
        name: Name of each file; no other task, and no other try of the same, may use it.
        tables: The tables; each gets a file, even if it has no rows.
    """

    def __init__(self, folder: Path, name: str, tables: Sequence[Table]) -> None:
        self._name = name
        self._open = ExitStack()
        self._files = {table.name: _File(self._open, Path(folder, table.name), name, table) for table in tables}

    def takes(self, piece: TableBatch) -> bool:
        """Writes rows of one of its tables; returns False if they are another table's."""
        file = self._files.get(piece.table.name)
        if file is not None:
            file.add(piece.rows)
        return file is not None

    def written(self) -> Iterator[TableBatch]:
        """Closes the files, and yields their names."""
        for file in self._files.values():
            file.flush()
        self.close()
        rows = Rows(WRITTEN)
        rows.add(list(self._files), [self._name] * len(self._files))
        yield from rows.rest()

    def close(self) -> None:
        """Closes the files as they are."""
        self._open.close()


class _File:
    """A Parquet file that rows of one table are written to, in row groups of useful size."""

    def __init__(self, opened: ExitStack, folder: Path, name: str, table: Table) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        texts = [
            column.name for column in table.columns if column.kind is Kind.STRING and column.name not in ALL_DIFFERENT
        ]
        self._writer = opened.enter_context(
            pq.ParquetWriter(folder / name, schema_of(table), compression="zstd", use_dictionary=texts)
        )
        self._rows: list[pa.RecordBatch] = []
        self._count = 0

    def add(self, rows: pa.RecordBatch) -> None:
        self._rows.append(rows)
        self._count += rows.num_rows
        if self._count >= GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_batches(self._rows), row_group_size=self._count)
        self._rows, self._count = [], 0
