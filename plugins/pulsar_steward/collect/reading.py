"""How all brokers are read side by side: what is large goes into files of the snapshot, what is small comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

import duckdb
import pyarrow as pa

from pulsar_steward.collect.arrow import SUSPECTS, WRITTEN
from pulsar_steward.collect.broker import BrokerTask, Scope, read_brokers
from pulsar_steward.collect.files import TableFiles
from pulsar_steward.collect.suspects import Worst
from pulsar_steward.errors import SnapshotError
from pulsar_steward.model.tables import BROKERS, BUNDLES, CONFIGURATION, METRICS, SHARDED
from pulsar_steward.snapshots.arrow import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pulsar_steward.admin.settings import AdminSettings
    from pulsar_steward.collect.arrow import Piece
    from pulsar_steward.collect.waiting import Waiting
    from pulsar_steward.model.tables import Table
    from pulsar_steward.parallel import MapOver
    from pulsar_steward.snapshots.folder import SnapshotFolder

SMALL_OF_BROKERS = (BROKERS, BUNDLES, CONFIGURATION, SUSPECTS)
"""What comes back from whoever reads brokers; `bundles` are those that they own."""

Tables = dict[str, pa.Table]
"""By the table's name."""


class BrokerReading(Protocol):
    """Reads all brokers of a cluster, each once. End it."""

    def read(self, tasks: Sequence[BrokerTask], scope: Scope) -> Tables:
        """Asks all brokers; returns `SMALL_OF_BROKERS` and keeps the rest.

        Args:
            tasks: The brokers.
            scope: How much is read of each.
        """

    def samples(self, series: str) -> pa.Table:
        """Rows of the table `metrics` of one series, of those that have a topic."""

    def take_in(self) -> None:
        """Makes what was kept tables of the snapshot."""

    def end(self) -> None:
        """Gives back what was kept and not taken in."""


@dataclass(frozen=True)
class Division:
    """Into how many tasks brokers are divided, and how many each of them asks at the same time."""

    tasks: int
    at_once: int


class WrittenByTasks(BrokerReading):
    """Each task writes files into a folder that is no part of the snapshot yet, where all of them see it.

    Args:
        settings: How to reach the cluster.
        folder: The snapshot's.
        map_over: Carries tasks out.
        division: How brokers are divided into tasks.
        waiting: Told which brokers are waited for; None where tasks run elsewhere.

    Raises:
        SnapshotError: If the snapshot lies in no folder.
    """

    def __init__(
        self,
        settings: AdminSettings,
        folder: SnapshotFolder,
        map_over: MapOver,
        division: Division,
        waiting: Waiting | None = None,
    ) -> None:
        staging = folder.staging()
        if staging is None:
            raise SnapshotError(f"{folder.uri} is in no folder of this machine")
        self._settings, self._folder, self._staging = settings, folder, staging
        self._map_over, self._division, self._waiting = map_over, division, waiting
        self._files: dict[str, list[str]] = {}

    def read(self, tasks: Sequence[BrokerTask], scope: Scope) -> Tables:
        """As `BrokerReading.read`."""
        reader = _Reader(self._settings, scope, self._staging, self._division.at_once, self._waiting)
        count = max(1, min(self._division.tasks, len(tasks)))
        answers = self._map_over(reader, [tuple(tasks[first::count]) for first in range(count)], "brokers")
        tables = together(answers, (*SMALL_OF_BROKERS, WRITTEN))
        for row in tables.pop(WRITTEN.name).to_pylist():
            self._files.setdefault(row["name"], []).append(row["file"])
        return tables

    def samples(self, series: str) -> pa.Table:
        """As `BrokerReading.samples`."""
        files = [str(self._staging / METRICS.name / name) for name in self._files[METRICS.name]]
        with duckdb.connect() as connection:
            rows = connection.read_parquet(files)
            return rows.filter(f"series = '{series}' and topic is not null").to_arrow_table()

    def take_in(self) -> None:
        """As `BrokerReading.take_in`."""
        for table in SHARDED:
            self._folder.take_in(table, self._files[table.name])

    def end(self) -> None:
        """As `BrokerReading.end`."""
        self._folder.end_staging()


@dataclass(frozen=True)
class _Reader:
    """What a task does with its brokers."""

    settings: AdminSettings
    scope: Scope
    staging: Path
    at_once: int
    waiting: Waiting | None

    def __call__(self, tasks: Sequence[BrokerTask]) -> Tables:
        """Reads them; of several tries of one task, those files count that the one names which ended well."""
        with TableFiles(self.staging, f"part-{uuid4().hex}.parquet", SHARDED) as files:
            pieces = pieces_of(self.settings, tasks, self.scope, self.at_once, self.waiting)
            rest = [piece for piece in pieces if not files.takes(piece)]
            return tables_of([*rest, *files.written()], (*SMALL_OF_BROKERS, WRITTEN))


def pieces_of(
    settings: AdminSettings,
    tasks: Iterable[BrokerTask],
    scope: Scope,
    at_once: int,
    waiting: Waiting | None = None,
) -> Iterator[Piece]:
    """Rows of all tables, and the worst topics among them.

    Args:
        settings: How to reach the cluster.
        tasks: The brokers.
        scope: How much is read of each.
        at_once: Brokers asked at the same time, at most.
        waiting: Told which are waited for.
    """
    worst = Worst(scope.policy.drilled_topics, scope.policy.drilled_from_consumed_bytes)
    for piece in read_brokers(settings, tasks, scope, at_once, waiting):
        worst.sees(piece)
        yield piece
    yield from worst.found()


def tables_of(pieces: Iterable[Piece], tables: Sequence[Table]) -> Tables:
    """Rows by the table's name; a table without rows is empty."""
    found: Mapping[str, list[pa.RecordBatch]] = {table.name: [] for table in tables}
    for piece in pieces:
        found[piece.table.name].append(piece.rows)
    return {table.name: pa.Table.from_batches(found[table.name], schema=schema_of(table)) for table in tables}


def together(parts: Sequence[Tables], tables: Sequence[Table]) -> Tables:
    """The tables of several tasks as one each."""
    return {
        table.name: pa.concat_tables([schema_of(table).empty_table(), *(part[table.name] for part in parts)])
        for table in tables
    }
