"""Columns that grow until they make an Arrow batch of one table's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pulsar_steward.collect.arrow import answer_schema, schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.model.tables import Table

BATCH_ROWS = 10_000
"""Rows in a batch: enough to make its fixed cost vanish, few enough to be a few megabytes."""


class Rows:
    """Rows of one table on their way into batches whose schema is `answer_schema(tables)`.

    Rows come as whole columns, as a Python object a row would cost more than all else.
    """

    def __init__(self, table: Table, tables: Sequence[Table]) -> None:
        self._fields = list(schema_of(table))
        self._schema = answer_schema(tables)
        self._place = [each.name for each in tables].index(table.name)
        self._columns: list[list[Any]] = [[] for _ in self._fields]

    def __len__(self) -> int:
        return len(self._columns[0])

    def add(self, *columns: Sequence[Any]) -> None:
        """Adds rows, given as one sequence of equal length for each of the table's columns, in order."""
        for column, more in zip(self._columns, columns, strict=True):
            column.extend(more)

    def full_batches(self) -> Iterator[pa.RecordBatch]:
        """Takes out as many whole batches as there are."""
        while len(self) >= BATCH_ROWS:
            yield self._take(BATCH_ROWS)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Takes out everything that is left."""
        yield from self.full_batches()
        if len(self):
            yield self._take(len(self))

    def _take(self, count: int) -> pa.RecordBatch:
        arrays = [
            pa.array(column[:count], type=field.type) for column, field in zip(self._columns, self._fields, strict=True)
        ]
        for column in self._columns:
            del column[:count]
        columns = [pa.nulls(count, field.type) for field in self._schema]
        columns[self._place] = pa.StructArray.from_arrays(arrays, fields=self._fields)
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)
