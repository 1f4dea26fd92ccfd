"""Snapshots are found, opened and asked."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pulsar_steward.errors import ConfigurationError, SnapshotError
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.finding import Outlook, Severity
from pulsar_steward.model.tables import BROKERS, COLLECTED, Table
from pulsar_steward.planners.from_snapshot import Moves, planning_facts_of
from pulsar_steward.planners.planning_facts import BrokerFact, TcBundle
from pulsar_steward.policy.schema import Policy
from pulsar_steward.snapshots.database import add_table, connect
from pulsar_steward.snapshots.latest import SnapshotShelf
from pulsar_steward.snapshots.read import open_snapshot
from tests.cases import cases
from tests.unit.report_checkup.snapshots import meta, written

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("as_uri", [False, True])
def test_the_meta_row_says_what_it_is(folder: Path, *, as_uri: bool) -> None:
    """The meta row is the same by path and by URI, and its time is in UTC."""
    meta = open_snapshot(folder.as_uri() if as_uri else str(folder)).meta()

    assert (meta.cluster, meta.coordinators, meta.unread) == ("lab", 3, ("c:1",))
    assert meta.taken_at == datetime(2026, 1, 1, tzinfo=UTC)


def test_rows_come_in_order_and_with_their_nulls(folder: Path) -> None:
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
    snapshot = open_snapshot(str(folder))

    assert [(row.measure, row.subject, row.taken_at.year, row.value) for row in snapshot.trends()] == [
        ("broker_topics", "a:1", 2026, 5.0),
        ("topics", "lab", 2025, 8.0),
        ("topics", "lab", 2026, 9.0),
    ]


def test_single_columns_can_be_read(folder: Path) -> None:
    assert open_snapshot(str(folder)).table(BROKERS, ["broker"]).column_names == ["broker"]


class BrokerOfLook(msgspec.Struct, frozen=True):
    """A row of the query below."""

    look: int
    broker: str
    topics: int | None
    skew: int | None


def test_a_query_gives_typed_rows_of_several_snapshots(folder: Path) -> None:
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
    (folder / "_SUCCESS").unlink()

    with pytest.raises(SnapshotError, match="holds no _SUCCESS: collect again"):
        open_snapshot(str(folder))


@pytest.mark.parametrize("uri", ["no/such/folder", "file:///no/such/folder", "nowhere://x/y"])
def test_a_place_without_a_snapshot_is_refused(uri: str) -> None:
    with pytest.raises(SnapshotError, match=uri):
        open_snapshot(uri)


@pytest.mark.parametrize("table", COLLECTED, ids=lambda table: table.name)
def test_a_snapshot_that_lacks_a_table_is_refused(folder: Path, table: Table) -> None:
    shutil.rmtree(folder / table.name)

    with pytest.raises(SnapshotError, match=f"lacks the tables {table.name}"):
        open_snapshot(str(folder))


def test_findings_before_diagnosing_are_an_error(folder: Path) -> None:
    shutil.rmtree(folder / "findings")

    with pytest.raises(SnapshotError, match="findings cannot be read"):
        open_snapshot(str(folder)).findings()


@cases(
    "content",
    ("not Parquet", b"no parquet"),
    ("columns missing", {"broker": ["a:1"]}),
    ("nulls where none may be", {name: [None] for name in BROKERS.names}),
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
    shutil.copy(folder / "snapshot" / "part-0.parquet", folder / "snapshot" / "part-9.parquet")

    with pytest.raises(SnapshotError, match="2 rows instead of one"):
        open_snapshot(str(folder)).meta()


def databases() -> set[str]:
    """Names of those that the engine holds, but for that of who asks."""
    with connect(1) as connection:
        (own,) = connection.execute("select current_database()").fetchone() or ("",)
        found = connection.execute("select database_name from duckdb_databases()").fetchall()
    return {name for (name,) in found} - {own}


def test_each_has_its_own_tables_also_at_the_same_time() -> None:
    """Connections at the same time have separate tables of the same names, and all use UTC."""

    def seen(number: int) -> tuple[str, int, str]:
        with connect(1) as connection:
            add_table(connection, BROKERS, pa.table({"broker": [f"b{number}:8080"]}), "brokers")
            connection.execute("create temp table kept as select broker from brokers")
            broker, count = connection.execute("select min(broker), count(*) from kept").fetchone() or ("", 0)
            zone = connection.execute("select current_setting('TimeZone')").fetchone() or ("",)
            return broker, count, zone[0]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(seen, range(100)))
    assert found == [(f"b{number}:8080", 1, "UTC") for number in range(100)]


def test_columns_that_were_not_collected_are_null_and_others_are_not_seen() -> None:
    with connect(1) as connection:
        add_table(connection, BROKERS, pa.table({"later": [1], "broker": ["b:8080"]}), "brokers")
        rows = connection.sql("select * from brokers").to_arrow_table()
    assert tuple(rows.column_names) == BROKERS.names
    assert rows.select(["broker", "topics"]).to_pylist() == [{"broker": "b:8080", "topics": None}]


def test_nothing_stays_behind() -> None:
    """A database is removed after use, also when a query in it failed."""
    before = databases()
    with pytest.raises(duckdb.CatalogException), connect(1) as connection:
        connection.execute("create table t as select * from nowhere")
    assert databases() == before


TIMES = ("20260301T120000Z", "20260301T121500Z", "20260301T123000Z")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three snapshots of one cluster, of which the oldest lost its large tables and the newest is not diagnosed."""
    for time in TIMES:
        written(tmp_path / "cluster=east" / f"taken_at={time}", snapshot=meta(snapshot_id=f"east-{time}"))
    (tmp_path / "cluster=east" / f"taken_at={TIMES[0]}" / "_SUCCESS").unlink()
    (tmp_path / "cluster=east" / f"taken_at={TIMES[2]}" / "verdicts").rename(tmp_path / "elsewhere")
    (tmp_path / "cluster=east" / "notes").mkdir()
    (tmp_path / "cluster=..%2f").mkdir()
    (tmp_path / "cluster=west").mkdir()
    return tmp_path


def names(shelf: SnapshotShelf, **asked: bool) -> list[str]:
    """Ids of the cluster's snapshots."""
    return [each.meta().snapshot_id for each in shelf.diagnosed("east", 10, **asked)]


def test_only_diagnosed_snapshots_are_found(root: Path) -> None:
    """Diagnosed snapshots are found newest first, and those without their large tables only on request."""
    shelf = SnapshotShelf(str(root))
    assert names(shelf) == [f"east-{TIMES[1]}"]
    assert names(shelf, whole=False) == [f"east-{TIMES[1]}", f"east-{TIMES[0]}"]
    assert shelf.diagnosed("west") == ()


def test_a_snapshot_is_found_by_its_id(root: Path) -> None:
    """A snapshot is found by its id if it is whole and diagnosed, and an unknown id finds None."""
    shelf = SnapshotShelf(str(root))
    found = shelf.named("east", f"east-{TIMES[1]}")
    assert found is not None
    assert found.meta().snapshot_id == f"east-{TIMES[1]}"
    assert [shelf.named("east", each) for each in (f"east-{TIMES[0]}", "east-../../west", "x")] == [None] * 3


def test_clusters_are_named_by_their_folders(root: Path) -> None:
    """Clusters are the folders with valid names, a missing folder has none, and an invalid name is refused."""
    assert SnapshotShelf(str(root)).clusters() == ("east", "west")
    assert SnapshotShelf(str(root / "missing")).clusters() == ()
    with pytest.raises(ConfigurationError):
        SnapshotShelf(str(root)).diagnosed("../east")


def test_the_scene_holds_the_bundles_that_place_coordinators(folder: Path) -> None:
    moved = {"pulsar/system/0x00000000_0x40000000": datetime(2025, 12, 31, tzinfo=UTC)}

    planning = planning_facts_of(open_snapshot(str(folder)), Policy(), Moves(moved_at=moved))

    assert planning.tc_bundles == (
        TcBundle(
            bundle="0x00000000_0x40000000",
            owner="a:1",
            coordinators=(0, 2),
            positions=(7, 9, 11),
            producers=1,
            consumers=2,
        ),
        TcBundle(bundle="0x80000000_0xffffffff", owner=None, coordinators=(1,), positions=(0x90000000,)),
    )
    assert planning.brokers[2] == BrokerFact(broker="c:1", read=False)
    assert planning.versions == Unknown("which version of Pulsar b:1 runs is not known")
    assert (planning.tc_allowed, planning.unread, planning.moved_at) == (("a:1", "b:1"), ("c:1",), moved)
    assert (planning.snapshot_id, planning.taken_at) == ("lab-20260101T000000Z", datetime(2026, 1, 1, tzinfo=UTC))
    assert len(planning.findings) == 3


def test_the_same_snapshot_gives_the_same_scene(folder: Path) -> None:
    by_path, by_uri = open_snapshot(str(folder)), open_snapshot(folder.as_uri())
    assert planning_facts_of(by_path, Policy(), Moves()) == planning_facts_of(by_uri, Policy(), Moves())


def test_a_snapshot_that_was_not_diagnosed_gives_no_scene(folder: Path) -> None:
    """Planning facts cannot be read from a snapshot without findings."""
    shutil.rmtree(folder / "findings")

    with pytest.raises(SnapshotError, match="findings"):
        planning_facts_of(open_snapshot(str(folder)), Policy(), Moves())
