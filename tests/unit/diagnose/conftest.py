"""Snapshots made of rows: in memory, as those who ask are given them, and in folders, as `collect` leaves them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pytest

from pulsar_steward.diagnose.running import SnapshotSources
from pulsar_steward.model.tables import COLLECTED, KAFKA_TABLES, SHARDED, SMALL, Table
from pulsar_steward.snapshots.database import schema_of
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder, snapshot_uri
from tests.builders import CLUSTER, NOW

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


Rows = dict[str, list[dict[str, Any]]]
"""By table; rows may leave columns out, and tables that are left out are empty."""

ABOUT = {"cluster": CLUSTER, "taken_at": NOW, "unread_brokers": [], "unread_namespaces": []}


class FolderOf(Protocol):
    """Writes a snapshot of rows, in place of one of the same time."""

    def __call__(self, rows: Rows) -> SnapshotFolder:
        """It is finished, and not diagnosed."""


def arrow_of(table: Table, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """A table of rows that may leave columns out."""
    return pa.Table.from_pylist(list(rows), schema=schema_of(table))


def sources_of(rows: Rows, shards: Sequence[Rows] | None = None, earlier: Sequence[Rows] = ()) -> SnapshotSources:
    """A snapshot of these rows; of those of its large tables that shards have, where they are given."""
    return SnapshotSources(
        {table.name: arrow_of(table, rows.get(table.name, [])) for table in SMALL},
        [{table.name: arrow_of(table, part.get(table.name, [])) for table in SHARDED} for part in shards or [rows]],
        [sources_of(each) for each in earlier],
    )


@pytest.fixture
def folder_of(tmp_path: Path) -> FolderOf:
    """Snapshots in a folder of this machine."""

    def write(rows: Rows) -> SnapshotFolder:
        (about,) = rows["snapshot"]
        folder = SnapshotFolder(LocalFiles(), snapshot_uri(str(tmp_path), about["cluster"], about["taken_at"]))
        folder.begin()
        for table in (*COLLECTED, *KAFKA_TABLES):
            folder.write(table, arrow_of(table, rows.get(table.name, [])))
        folder.finish()
        return folder

    return write
