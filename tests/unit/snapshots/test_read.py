"""Reading a snapshot without Spark."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pulsar_steward.errors import SnapshotError
from pulsar_steward.model.finding import Outlook, Severity
from pulsar_steward.model.tables import BROKERS, COLLECTED, Table
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
    names = ["pulsar/system", "no/such", "acme/orders"]
    assert [row.namespace for row in snapshot.namespaces(names)] == ["acme/orders", "pulsar/system"]
    assert [row.bundle[:4] for row in snapshot.system_bundles()] == ["0x00", "0x40", "0x80"]


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
    """Trends come sorted by measure, subject and time."""
    snapshot = open_snapshot(str(folder))

    assert [(row.measure, row.subject, row.taken_at.year, row.value) for row in snapshot.trends()] == [
        ("broker_topics", "a:1", 2026, 5.0),
        ("topics", "lab", 2025, 8.0),
        ("topics", "lab", 2026, 9.0),
    ]


def test_single_columns_can_be_read(folder: Path) -> None:
    """A single column of a table can be read."""
    assert open_snapshot(str(folder)).table(BROKERS, ["broker"]).column_names == ["broker"]


class BrokerOfLook(msgspec.Struct, frozen=True):
    """A row of the query below."""

    look: int
    broker: str
    topics: int | None
    skew: int | None


def test_a_query_gives_typed_rows_of_several_snapshots(folder: Path) -> None:
    """A query has the rows of earlier snapshots by their number, values, macros, and null for what is not there."""
    for path in (folder / BROKERS.name).iterdir():
        pq.write_table(pq.read_table(path).drop_columns(["clock_skew_milliseconds"]), path)
    query = """select look, broker, topics, clock_skew_milliseconds as skew from brokers
        where broker in (select unnest($names)) and not is_heartbeat(broker) order by look"""
    snapshot = open_snapshot(str(folder))

    assert snapshot.select(query, BrokerOfLook, [snapshot], names=["a:1", "no:1"]) == [
        BrokerOfLook(look, "a:1", 5, None) for look in (0, 1)
    ]
    with pytest.raises(SnapshotError, match="it cannot be read"):
        snapshot.select("select look, 1 as broker, null as topics, null as skew from brokers", BrokerOfLook)


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


@pytest.mark.parametrize("table", COLLECTED, ids=lambda table: table.name)
def test_a_snapshot_that_lacks_a_table_is_refused(folder: Path, table: Table) -> None:
    """A snapshot that lacks a required table is refused with an error that names the table."""
    shutil.rmtree(folder / table.name)

    with pytest.raises(SnapshotError, match=f"lacks the tables {table.name}"):
        open_snapshot(str(folder))


def test_findings_before_diagnosing_are_an_error(folder: Path) -> None:
    """Reading the findings of a snapshot that was not diagnosed is an error."""
    shutil.rmtree(folder / "findings")

    with pytest.raises(SnapshotError, match="findings cannot be read"):
        open_snapshot(str(folder)).findings()


@pytest.mark.parametrize(
    "content",
    [b"no parquet", {"broker": ["a:1"]}, {name: [None] for name in BROKERS.names}],
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
