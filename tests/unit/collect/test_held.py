"""Rows that are held until it is known whether they count."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pulsar_steward.collect.arrow import UNREAD, WRITTEN, TableBatch
from pulsar_steward.collect.rows import HeldRows
from pulsar_steward.snapshots.arrow import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pulsar_steward.model.tables import Table


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder for the temporary files of a test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def piece(table: Table, first: int, count: int = 100) -> TableBatch:
    """Numbered rows."""
    columns = [pa.array([f"{name}-{number}" for number in range(first, first + count)]) for name in table.names]
    return TableBatch(table, pa.RecordBatch.from_arrays(columns, schema=schema_of(table)))


def rows(pieces: Iterable[TableBatch]) -> dict[str, list[dict[str, str]]]:
    """Returns the rows of all pieces, by table."""
    found: dict[str, list[dict[str, str]]] = {}
    for each in pieces:
        found.setdefault(each.table.name, []).extend(each.rows.to_pylist())
    return found


@pytest.mark.parametrize("most", [1 << 30, 2_000, 0], ids=["in memory", "some on disk", "all on disk"])
def test_all_comes_back_in_order(temporary: Path, most: int) -> None:
    """Held rows come back complete and in order for each table, and no temporary file is left."""
    pieces = [piece(table, first) for first in range(0, 1000, 100) for table in (UNREAD, WRITTEN)]
    held = HeldRows(most)
    held.add(pieces)
    assert bool(list(temporary.iterdir())) is (most < 1 << 30)

    assert rows(held.taken()) == rows(pieces)
    assert list(temporary.iterdir()) == []
    assert list(held.taken()) == []


def test_what_does_not_count_is_let_go(temporary: Path) -> None:
    """Held rows that are let go leave no temporary file and are not returned later."""
    held = HeldRows(0)
    held.add([piece(UNREAD, 0)])
    held.let_go()

    assert list(temporary.iterdir()) == []
    assert list(held.taken()) == []
