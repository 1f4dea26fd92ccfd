"""Rows held back until they are known to be valid: in memory while they are few, then on disk."""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa

from pulsar_steward.collect.arrow import TableBatch
from pulsar_steward.snapshots.arrow import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pulsar_steward.model.tables import Table

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
