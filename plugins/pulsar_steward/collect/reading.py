"""Parallel reading of all brokers: large tables go into files of the snapshot, small ones are returned.

Spark itself converts Arrow to Java's rows and these to Parquet, which costs more than all other work of collecting
(docs/performance.md). It is still used for other file systems.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pulsar_steward.collect.arrow import SUSPECTS, WRITTEN
from pulsar_steward.collect.broker import BrokerTask, ReadScope, read_brokers
from pulsar_steward.collect.rows import Rows
from pulsar_steward.collect.suspects import SuspectCollector
from pulsar_steward.errors import SnapshotError
from pulsar_steward.model.tables import BROKERS, BUNDLES, CLIENT_VERSIONS, CONFIGURATION, METRICS, SHARDED, Kind
from pulsar_steward.pulsar.body import Closing
from pulsar_steward.snapshots.arrow import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pulsar_steward.collect.arrow import TableBatch
    from pulsar_steward.collect.pending import PendingBrokers
    from pulsar_steward.model.tables import Table
    from pulsar_steward.pulsar.settings import AdminSettings
    from pulsar_steward.runtime.parallel import MapOver
    from pulsar_steward.snapshots.folder import SnapshotFolder


GROUP_ROWS = 100_000
"""Rows in a row group: the unit of reading."""

ALL_DIFFERENT = frozenset({"topic", "labels_json"})
"""Columns whose texts hardly repeat: a dictionary would be abandoned once it is full."""


class TableFiles(Closing):
    """One file for each of some tables: ``FOLDER/TABLE/NAME``. An unclosed file is never used.

    Args:
        folder: Contains a folder for each table; created if missing.
        name: Name of each file; no other task, and no other attempt of the same task, may use it.
        tables: The tables; each gets a file, even if it has no rows.
    """

    def __init__(self, folder: Path, name: str, tables: Sequence[Table]) -> None:
        self._name = name
        self._open = ExitStack()
        self._files = {table.name: _File(self._open, Path(folder, table.name), name, table) for table in tables}

    def takes(self, piece: TableBatch) -> bool:
        """Writes rows of one of its tables; returns False for rows of another table."""
        file = self._files.get(piece.table.name)
        if file is not None:
            file.add(piece.rows)
        return file is not None

    def written(self) -> Iterator[TableBatch]:
        """Closes the files, and yields their names."""
        for file in self._files.values():
            file.flush()
        self.close()
        rows = Rows(WRITTEN)
        rows.add(list(self._files), [self._name] * len(self._files))
        yield from rows.rest()

    def close(self) -> None:
        """Closes the files as they are."""
        self._open.close()


class _File:
    """A Parquet file for rows of one table, in row groups of useful size."""

    def __init__(self, opened: ExitStack, folder: Path, name: str, table: Table) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        texts = [
            column.name for column in table.columns if column.kind is Kind.STRING and column.name not in ALL_DIFFERENT
        ]
        self._writer = opened.enter_context(
            pq.ParquetWriter(folder / name, schema_of(table), compression="zstd", use_dictionary=texts)
        )
        self._rows: list[pa.RecordBatch] = []
        self._count = 0

    def add(self, rows: pa.RecordBatch) -> None:
        self._rows.append(rows)
        self._count += rows.num_rows
        if self._count >= GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_batches(self._rows), row_group_size=self._count)
        self._rows, self._count = [], 0


SMALL_OF_BROKERS = (BROKERS, BUNDLES, CLIENT_VERSIONS, CONFIGURATION, SUSPECTS)
"""Tables that a `BrokerReading` returns; `bundles` has only owned bundles."""

Tables = dict[str, pa.Table]
"""Tables by name."""


class BrokerReading(Protocol):
    """Reads all brokers of a cluster, each once; `end` has to be called last."""

    def read(self, tasks: Sequence[BrokerTask], scope: ReadScope) -> Tables:
        """Reads all brokers; returns `SMALL_OF_BROKERS` and stores the other tables.

        Args:
            tasks: The brokers.
            scope: Extent of reading.
        """

    def samples(self, series: str) -> pa.Table:
        """Rows of the table `metrics` for one series, only rows with a topic."""

    def take_in(self) -> None:
        """Adds the stored tables to the snapshot."""

    def end(self) -> None:
        """Discards stored tables that were not added."""


MAX_BROKERS_A_TASK = 50
"""Maximum number of brokers in a task, and so in a shard: a diagnosis holds all topics of a shard in memory."""


@dataclass(frozen=True)
class TaskDivision:
    """Division of brokers into tasks.

    Attributes:
        tasks: Number of tasks, if there are enough brokers; more if each task would have too many.
        at_once: Number of brokers that each task reads at the same time.
    """

    tasks: int
    at_once: int

    def tasks_for(self, brokers: int) -> int:
        """Number of tasks for so many brokers."""
        return max(1, min(self.tasks, brokers), -(-brokers // MAX_BROKERS_A_TASK))


class WrittenByTasks(BrokerReading):
    """Each task writes files into a staging folder outside of the snapshot; all tasks have to see it.

    Args:
        settings: Admin API settings of the cluster.
        folder: The snapshot's folder.
        map_over: Runs the tasks.
        division: Division of brokers into tasks.
        waiting: Keeps track of pending brokers; None if tasks run in other processes.

    Raises:
        SnapshotError: If the snapshot is not in a folder of a file system.
    """

    def __init__(
        self,
        settings: AdminSettings,
        folder: SnapshotFolder,
        map_over: MapOver,
        division: TaskDivision,
        waiting: PendingBrokers | None = None,
    ) -> None:
        staging = folder.staging()
        if staging is None:
            raise SnapshotError(f"{folder.uri} is in no folder of this machine")
        self._settings, self._folder, self._staging = settings, folder, staging
        self._map_over, self._division, self._waiting = map_over, division, waiting
        self._files: dict[str, list[str]] = {}

    def read(self, tasks: Sequence[BrokerTask], scope: ReadScope) -> Tables:
        """See `BrokerReading.read`."""
        reader = _Reader(self._settings, scope, self._staging, self._division.at_once, self._waiting)
        count = self._division.tasks_for(len(tasks))
        answers = self._map_over(reader, [tuple(tasks[first::count]) for first in range(count)], "brokers")
        tables = together(answers, (*SMALL_OF_BROKERS, WRITTEN))
        for row in tables.pop(WRITTEN.name).to_pylist():
            self._files.setdefault(row["name"], []).append(row["file"])
        return tables

    def samples(self, series: str) -> pa.Table:
        """See `BrokerReading.samples`."""
        files = [str(self._staging / METRICS.name / name) for name in self._files[METRICS.name]]
        with duckdb.connect() as connection:
            rows = connection.read_parquet(files)
            return rows.filter(f"series = '{series}' and topic is not null").to_arrow_table()

    def take_in(self) -> None:
        """See `BrokerReading.take_in`."""
        for table in SHARDED:
            self._folder.take_in(table, self._files[table.name])

    def end(self) -> None:
        """See `BrokerReading.end`."""
        self._folder.end_staging()


@dataclass(frozen=True)
class _Reader:
    """Work of one task on its brokers."""

    settings: AdminSettings
    scope: ReadScope
    staging: Path
    at_once: int
    waiting: PendingBrokers | None

    def __call__(self, tasks: Sequence[BrokerTask]) -> Tables:
        """Reads the brokers. Of several attempts of one task, only the successful one's files count."""
        with TableFiles(self.staging, f"part-{uuid4().hex}.parquet", SHARDED) as files:
            pieces = pieces_of(self.settings, tasks, self.scope, self.at_once, self.waiting)
            rest = [piece for piece in pieces if not files.takes(piece)]
            return tables_of([*rest, *files.written()], (*SMALL_OF_BROKERS, WRITTEN))


def pieces_of(
    settings: AdminSettings,
    tasks: Iterable[BrokerTask],
    scope: ReadScope,
    at_once: int,
    waiting: PendingBrokers | None = None,
) -> Iterator[TableBatch]:
    """Yields rows of all tables, and the worst topics among them.

    Args:
        settings: Admin API settings of the cluster.
        tasks: The brokers.
        scope: Extent of reading.
        at_once: Maximum number of brokers read at the same time.
        waiting: Keeps track of the brokers whose responses are pending.
    """
    worst = SuspectCollector(scope.policy.drilled_topics, scope.policy.drilled_from_consumed_bytes)
    for piece in read_brokers(settings, tasks, scope, at_once, waiting):
        worst.sees(piece)
        yield piece
    yield from worst.found()


def tables_of(pieces: Iterable[TableBatch], tables: Sequence[Table]) -> Tables:
    """Groups rows into tables by name; a table without rows is empty."""
    found: Mapping[str, list[pa.RecordBatch]] = {table.name: [] for table in tables}
    for piece in pieces:
        found[piece.table.name].append(piece.rows)
    return {table.name: pa.Table.from_batches(found[table.name], schema=schema_of(table)) for table in tables}


def together(parts: Sequence[Tables], tables: Sequence[Table]) -> Tables:
    """Concatenates the tables of several tasks."""
    return {
        table.name: pa.concat_tables([schema_of(table).empty_table(), *(part[table.name] for part in parts)])
        for table in tables
    }
