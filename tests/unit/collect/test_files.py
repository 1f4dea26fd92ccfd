"""How rows are written by tasks: files, what is held in memory, the order of brokers, and the pace of requests."""

from __future__ import annotations

import tempfile
from threading import Event, Lock
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pulsar_steward.collect.arrow import UNREAD, WRITTEN, TableBatch, Task, interleave
from pulsar_steward.collect.drill import CallPace, TimeIsUp
from pulsar_steward.collect.reading import GROUP_ROWS, TableFiles
from pulsar_steward.collect.rows import HeldRows
from pulsar_steward.model.tables import BUNDLES, CLIENTS, CONFIGURATION, SHARDED, Table
from pulsar_steward.snapshots.database import schema_of
from tests.cases import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path


def settings(first: int, count: int) -> TableBatch:
    """Numbered rows of `configuration`."""
    rows = [{"broker": "b:1", "key": f"k{number}", "value": "v"} for number in range(first, first + count)]
    return TableBatch(CONFIGURATION, pa.RecordBatch.from_pylist(rows, schema=schema_of(CONFIGURATION)))


def test_each_table_has_a_file_and_the_rows_of_others_are_left(tmp_path: Path) -> None:
    bundles = TableBatch(BUNDLES, pa.RecordBatch.from_pylist([], schema=schema_of(BUNDLES)))
    with TableFiles(tmp_path, "part.parquet", (CONFIGURATION, CLIENTS)) as files:
        assert files.takes(settings(0, 3))
        assert files.takes(settings(3, 2))
        assert not files.takes(bundles)
        (named,) = files.written()

    assert named.rows.to_pylist() == [
        {"name": "configuration", "file": "part.parquet"},
        {"name": "clients", "file": "part.parquet"},
    ]
    written = pq.read_table(tmp_path / "configuration" / "part.parquet")
    assert written["key"].to_pylist() == [f"k{number}" for number in range(5)]
    assert pq.read_table(tmp_path / "clients" / "part.parquet").schema.equals(schema_of(CLIENTS))


def test_row_groups_are_neither_tiny_nor_endless(tmp_path: Path) -> None:
    with TableFiles(tmp_path, "part.parquet", (CONFIGURATION,)) as files:
        for first in range(0, 2 * GROUP_ROWS + 5_000, 5_000):
            files.takes(settings(first, 5_000))
        list(files.written())

    groups = pq.ParquetFile(tmp_path / "configuration" / "part.parquet").metadata
    assert [groups.row_group(number).num_rows for number in range(groups.num_row_groups)] == [
        GROUP_ROWS,
        GROUP_ROWS,
        5_000,
    ]


@pytest.mark.parametrize("table", SHARDED, ids=lambda table: table.name)
def test_every_large_table_can_be_written(tmp_path: Path, table: Table) -> None:
    empty = TableBatch(table, pa.RecordBatch.from_pylist([{}], schema=schema_of(table)))
    with TableFiles(tmp_path, "part.parquet", (table,)) as files:
        files.takes(empty)
        list(files.written())

    assert pq.read_table(tmp_path / table.name / "part.parquet").num_rows == 1


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
    found: dict[str, list[dict[str, str]]] = {}
    for each in pieces:
        found.setdefault(each.table.name, []).extend(each.rows.to_pylist())
    return found


@cases("most", ("in memory", 1 << 30), ("some on disk", 2_000), ("all on disk", 0))
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


WITHIN_S = 30.0


def waiting(*calls: Callable[[], str]) -> Task[str]:
    """Makes these calls one after the other, and tells what they returned."""
    told = []
    for call in calls:
        answer: str = yield call
        told.append(answer)
    return told


def test_one_that_waits_long_holds_up_no_other() -> None:
    others_ended = Event()

    def slow() -> str:
        assert others_ended.wait(WITHIN_S), "it held the others up"
        return "slow"

    ended = []
    for each in interleave([waiting(slow), *(waiting(lambda: "quick", lambda: "again") for _ in range(20))], 2):
        ended.append(each)
        if len(ended) == 40:
            others_ended.set()

    assert ended == ["quick", "again"] * 20 + ["slow"]


def test_few_are_begun_at_a_time() -> None:
    """The number of tasks that have begun and not yet ended never exceeds the limit."""
    begun, most, lock = 0, 0, Lock()

    def one() -> Task[str]:
        nonlocal begun, most
        begun += 1
        most = max(most, begun)
        yield lock.locked
        yield lock.locked
        begun -= 1
        return ["ended"]

    assert len(list(interleave((one() for _ in range(30)), 3))) == 30
    assert most == 3


def test_what_a_call_raises_is_raised_where_it_was_asked_for() -> None:
    """A call's error is raised in the task that requested it, and in the caller if the task does not handle it."""

    def fails() -> str:
        raise OSError("nobody there")

    def careful() -> Task[str]:
        try:
            yield fails
        except OSError as error:
            return [str(error)]
        return []

    assert sorted(interleave([careful(), waiting(lambda: "fine")], 1)) == ["fine", "nobody there"]
    with pytest.raises(OSError, match="nobody there"):
        list(interleave([waiting(fails)], 1))


def test_nothing_to_wait_for_is_nothing() -> None:
    """Interleaving no tasks returns no results."""
    nothing: Iterator[Task[str]] = iter(())
    assert list(interleave(nothing, 4)) == []


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Lets time pass."""
        self.now += seconds


def test_calls_keep_their_distance() -> None:
    """Calls begin at least the policy's interval apart, and at once after a call that took longer."""
    clock = Clock()
    pace = CallPace(4, 60, clock, clock.sleep)
    moments = []
    for took in (0.0, 0.1, 5.0, 0.0):
        pace.wait()
        moments.append(clock.now - 100)
        clock.sleep(took)

    assert moments == pytest.approx([0, 0.25, 0.5, 5.5])


def test_no_call_begins_after_the_end() -> None:
    """A call that would begin at the end of the time or later is refused at once, without sleeping."""
    clock = Clock()
    pace = CallPace(1, 2, clock, clock.sleep)
    pace.wait()
    pace.wait()

    with pytest.raises(TimeIsUp, match="2 seconds"):
        pace.wait()
    assert clock.now == pytest.approx(101)
    clock.sleep(9)
    with pytest.raises(TimeIsUp, match="2 seconds"):
        pace.wait()
    assert clock.now == pytest.approx(110)
