"""Columns that collect values until they make an Arrow batch of one table's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pulsar_steward.collect.arrow import TableBatch
from pulsar_steward.snapshots.arrow import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.model.tables import Table

UNFIT = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, pa.ArrowException)
"""Errors raised for a document with an unexpected shape.

The document then counts as unread, as if there were no response. Decoding turns nearly all of them into `BrokenAnswer`
earlier (`pulsar_steward.pulsar.figures`).
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
