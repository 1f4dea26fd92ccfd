"""Columns on their way into batches."""

from __future__ import annotations

import pytest

from pulsar_steward.collect.arrow import UNREAD, answer_schema, as_answer
from pulsar_steward.collect.rows import BATCH_ROWS, Rows
from pulsar_steward.model.tables import COLLECTED, DIAGNOSED, NAMESPACES, Table
from pulsar_steward.snapshots.database import schema_of


def test_an_answer_is_of_one_table_only() -> None:
    """An answer holds the rows of one table, and nulls for the other tables."""
    rows = Rows(UNREAD)
    rows.add(["a/b", "c/d"], ["refused", None])

    batch = as_answer(next(rows.rest()), (NAMESPACES, UNREAD))

    assert batch.schema == answer_schema((NAMESPACES, UNREAD))
    assert batch["namespaces"].null_count == 2
    assert batch["unread"].to_pylist() == [{"name": "a/b", "failure": "refused"}, {"name": "c/d", "failure": None}]


@pytest.mark.parametrize("count", [0, 1, BATCH_ROWS - 1, BATCH_ROWS, BATCH_ROWS + 1, 3 * BATCH_ROWS])
def test_batches_stay_bounded_and_lose_nothing(count: int) -> None:
    """The batches hold all rows in order, and each batch holds at most `BATCH_ROWS` rows."""
    rows = Rows(UNREAD)
    rows.add([str(number) for number in range(count)], [None] * count)

    batches = [piece.rows for piece in (*rows.full(), *rows.rest())]

    assert all(0 < batch.num_rows <= BATCH_ROWS for batch in batches)
    assert [name for batch in batches for name in batch["name"].to_pylist()] == [str(number) for number in range(count)]


@pytest.mark.parametrize("table", [*COLLECTED, *DIAGNOSED], ids=lambda table: table.name)
def test_every_table_has_an_arrow_schema(table: Table) -> None:
    """The Arrow schema of each table has the table's columns in order."""
    assert tuple(schema_of(table).names) == table.names


def test_columns_of_unequal_number_are_refused() -> None:
    """Rows are refused when a column is missing."""
    with pytest.raises(ValueError, match="zip"):
        Rows(UNREAD).add(["a/b"])
