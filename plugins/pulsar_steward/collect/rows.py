"""Columns that collect values until they make an Arrow batch of one table's rows."""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pulsar_steward.collect.arrow import TableBatch
from pulsar_steward.snapshots.arrow import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pulsar_steward.model.tables import Table

UNFIT = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, pa.ArrowException)
"""Errors raised for a document with an unexpected shape.

The document then counts as unread, as if there were no response. Decoding turns nearly all of them into `BrokenAnswer`
earlier (`pulsar_steward.pulsar.statistics`).
"""

BATCH_ROWS = 10_000
"""Rows in a batch: enough to make its fixed cost negligible, few enough for a few megabytes."""


class Rows:
    """Rows of one table, collected into batches.

    Rows are added as whole columns: a Python object for each row would cost more than all other work.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._schema = schema_of(table)
        self._columns: list[list[Any]] = [[] for _ in self._schema]

    def __len__(self) -> int:
        return len(self._columns[0])

    def add(self, *columns: Sequence[Any]) -> None:
        """Adds rows, given as one sequence of equal length for each of the table's columns, in order."""
        for column, more in zip(self._columns, columns, strict=True):
            column.extend(more)

    def require_fit(self, *values: Any) -> None:
        """Checks that a row fits the table before it is added to a batch with other rows.

        Raises:
            Exception: One of `UNFIT`.
        """
        for value, field in zip(values, self._schema, strict=True):
            pa.scalar(value, type=field.type)

    def full(self) -> Iterator[TableBatch]:
        """Yields and removes all full batches."""
        while len(self) >= BATCH_ROWS:
            yield self._take(BATCH_ROWS)

    def rest(self) -> Iterator[TableBatch]:
        """Yields and removes all remaining rows."""
        yield from self.full()
        if len(self):
            yield self._take(len(self))

    def _take(self, count: int) -> TableBatch:
        arrays = [
            pa.array(column[:count], type=field.type) for column, field in zip(self._columns, self._schema, strict=True)
        ]
        for column in self._columns:
            del column[:count]
        return TableBatch(self._table, pa.RecordBatch.from_arrays(arrays, schema=self._schema))


IN_MEMORY_BYTES = 64 << 20
"""Maximum bytes of Arrow rows in memory: about 100,000 topics."""


class HeldRows:
    """Pieces in the order in which they were added, or by table if there were too many.

    Args:
        most: Maximum bytes in memory.
    """

    def __init__(self, most: int = IN_MEMORY_BYTES) -> None:
        self._most = most
        self._size = 0
        self._pieces: list[TableBatch] = []
        self._spilled: dict[str, tuple[Table, Path, pa.RecordBatchWriter]] = {}
        self._open = ExitStack()

    def add(self, pieces: Iterable[TableBatch]) -> None:
        """Adds pieces, and moves them to disk once there are too many."""
        for piece in pieces:
            self._pieces.append(piece)
            self._size += piece.rows.nbytes
            if self._size > self._most:
                self._spill()

    def taken(self) -> Iterator[TableBatch]:
        """Yields all pieces and removes them."""
        with self._open:
            for table, path, writer in self._spilled.values():
                writer.close()
                with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
                    yield from (TableBatch(table, rows) for rows in reader)
            yield from self._pieces
        self._forget()

    def let_go(self) -> None:
        """Discards all pieces."""
        self._open.close()
        self._forget()

    def _forget(self) -> None:
        self._pieces, self._spilled, self._size = [], {}, 0

    def _spill(self) -> None:
        by_table: dict[str, list[TableBatch]] = defaultdict(list)
        for piece in self._pieces:
            by_table[piece.table.name].append(piece)
        for name, pieces in by_table.items():
            if name not in self._spilled:
                self._spilled[name] = self._file(pieces[0].table)
            for piece in pieces:
                self._spilled[name][2].write_batch(piece.rows)
        self._pieces, self._size = [], 0

    def _file(self, table: Table) -> tuple[Table, Path, pa.RecordBatchWriter]:
        path = Path(self._open.enter_context(TemporaryDirectory(prefix="steward-")), table.name)
        file = self._open.enter_context(pa.OSFile(str(path), "wb"))
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        return table, path, self._open.enter_context(pa.ipc.new_stream(file, schema_of(table), options=options))
