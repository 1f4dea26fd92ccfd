"""Reading a snapshot without Spark."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pulsar_steward.errors import SnapshotError
from pulsar_steward.model.finding import Outlook, Severity
from pulsar_steward.model.tables import BROKERS, COLLECTED, SINCE, Table
from pulsar_steward.snapshots.arrow import schema_of
from pulsar_steward.snapshots.files import LocalFiles
from pulsar_steward.snapshots.folder import SnapshotFolder
from pulsar_steward.snapshots.read import open_snapshot

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("as_uri", [False, True])
def test_the_meta_row_says_what_it_is(folder: Path, *, as_uri: bool) -> None:
    """The meta row is the same by path and by URI, and its time is in UTC."""
    meta = open_snapshot(folder.as_uri() if as_uri else str(folder)).meta()

    assert (meta.cluster, meta.coordinators, meta.unread) == ("lab", 3, ("c:1",))
    assert meta.taken_at == datetime(2026, 1, 1, tzinfo=UTC)


def test_rows_come_in_order_and_with_their_nulls(folder: Path) -> None:
    """Rows come sorted and with their nulls, whatever their order in the files."""
    snapshot = open_snapshot(str(folder))

    assert [(row.broker, row.read, row.topics) for row in snapshot.brokers()] == [
        ("a:1", True, 5),
        ("b:1", True, 4),
        ("c:1", False, None),
    ]
    assert [row.coordinator for row in snapshot.coordinators()] == [0, 1, 2]
    assert [row.namespace for row in snapshot.namespaces()] == ["acme/orders", "pulsar/system"]
    assert [row.bundle[:4] for row in snapshot.system_bundles()] == ["0x00", "0x40", "0x80"]
    assert snapshot.namespace("no/such") is None


def test_findings_come_worst_first(folder: Path) -> None:
    """Findings come sorted by severity and subject, and their figures are integers by name."""
    snapshot = open_snapshot(str(folder))

    found = snapshot.findings()
    assert [(each.severity, each.subject) for each in found] == [
        (Severity.CRITICAL, "lab"),
        (Severity.INFO, "a"),
        (Severity.INFO, "z"),
    ]
    assert found[0].figures == {"most_coordinators": 2}
    assert [verdict.outlook for verdict in snapshot.verdicts()] == [Outlook.FOUND]


def test_trends_come_by_measure_subject_and_time(folder: Path) -> None:
    """Trends come sorted by measure, subject and time, and a snapshot without them has none."""
    snapshot = open_snapshot(str(folder))

    assert [(row.measure, row.subject, row.taken_at.year, row.value) for row in snapshot.trends()] == [
        ("broker_topics", "a:1", 2026, 5.0),
        ("topics", "lab", 2025, 8.0),
        ("topics", "lab", 2026, 9.0),
    ]
    shutil.rmtree(folder / "trends")
    assert open_snapshot(folder.as_uri()).trends() == ()


def test_single_columns_can_be_read(folder: Path) -> None:
    """A single column of a table can be read."""
    assert open_snapshot(str(folder)).table(BROKERS, ["broker"]).column_names == ["broker"]


def test_an_unfinished_snapshot_is_refused(folder: Path) -> None:
    """A snapshot without `_SUCCESS` is refused."""
    (folder / "_SUCCESS").unlink()

    with pytest.raises(SnapshotError, match="holds no _SUCCESS: collect again"):
        open_snapshot(str(folder))


@pytest.mark.parametrize("uri", ["no/such/folder", "file:///no/such/folder", "nowhere://x/y"])
def test_a_place_without_a_snapshot_is_refused(uri: str) -> None:
    """A place without a snapshot is refused with an error that names the place."""
    with pytest.raises(SnapshotError, match=uri):
        open_snapshot(uri)


@pytest.mark.parametrize("table", [each for each in COLLECTED if each not in SINCE], ids=lambda table: table.name)
def test_a_snapshot_that_lacks_a_table_is_refused(folder: Path, table: Table) -> None:
    """A snapshot that lacks a required table is refused with an error that names the table."""
    shutil.rmtree(folder / table.name)

    with pytest.raises(SnapshotError, match=f"lacks the tables {table.name}"):
        open_snapshot(str(folder))


@pytest.mark.parametrize("table", SINCE, ids=lambda table: table.name)
def test_a_snapshot_of_an_older_version_is_read(folder: Path, table: Table) -> None:
    """A snapshot without a table that older versions did not collect can be opened, and that table has no rows."""
    shutil.rmtree(folder / table.name)

    assert open_snapshot(str(folder)).meta().cluster
    assert SnapshotFolder(LocalFiles(), str(folder)).read(table) == schema_of(table).empty_table()


def test_findings_before_diagnosing_are_an_error(folder: Path) -> None:
    """Reading the findings of a snapshot that was not diagnosed is an error."""
    shutil.rmtree(folder / "findings")

    with pytest.raises(SnapshotError, match="findings cannot be read"):
        open_snapshot(str(folder)).findings()


@pytest.mark.parametrize(
    "content",
    [
        b"no parquet",
        {"broker": ["a:1"]},
        {name: [None] for name in BROKERS.names},
    ],
    ids=["not Parquet", "columns missing", "nulls where none may be"],
)
def test_a_table_of_another_shape_is_an_error(folder: Path, content: bytes | dict[str, list[str | None]]) -> None:
    """A table that is not Parquet, lacks columns or has forbidden nulls is an error that names the table."""
    shutil.rmtree(folder / "brokers")
    (folder / "brokers").mkdir()
    file = folder / "brokers" / "part-0.parquet"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        pq.write_table(pa.table(content), file)

    with pytest.raises(SnapshotError, match="the table brokers"):
        open_snapshot(str(folder)).brokers()


def test_a_snapshot_of_two_meta_rows_is_an_error(folder: Path) -> None:
    """A snapshot with two meta rows is an error."""
    shutil.copy(folder / "snapshot" / "part-0.parquet", folder / "snapshot" / "part-9.parquet")

    with pytest.raises(SnapshotError, match="2 rows instead of one"):
        open_snapshot(str(folder)).meta()
