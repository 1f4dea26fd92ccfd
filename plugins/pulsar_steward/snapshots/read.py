"""Reader of a snapshot that `collect` finished: reads single tables and columns on demand."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import dataset, fs

from pulsar_steward.checks.views import USUAL_SETTINGS
from pulsar_steward.decoding import convert_rows, decode
from pulsar_steward.errors import SnapshotError
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.finding import Finding, Severity, Verdict
from pulsar_steward.model.tables import (
    BROKERS,
    BUNDLES,
    COLLECTED,
    CONFIGURATION,
    DIAGNOSED,
    FAILOVERS,
    FINDINGS,
    KAFKA_TABLES,
    NAMESPACES,
    SNAPSHOT,
    TRANSACTION_COORDINATORS,
    TRENDS,
    VERDICTS,
    Table,
)
from pulsar_steward.model.units import counted
from pulsar_steward.snapshots.database import add_views, connect, schema_of
from pulsar_steward.snapshots.folder import place_of, stamp_of
from pulsar_steward.snapshots.rows import (
    BrokerRow,
    BundleRow,
    ConfigurationRow,
    CoordinatorRow,
    FailoverRow,
    NamespaceRow,
    SnapshotMeta,
    TrendRow,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from pulsar_steward.checks.views import SqlView

SUCCESS = "_SUCCESS"

_TOPICS = """
with beats as (
    select owner as broker, sum(topics)::bigint as beating from bundles where is_heartbeat(namespace) group by owner)
select broker, topics - coalesce(beating, 0) as topics from brokers left join beats using (broker)
where topics is not null
"""

Row = TypeVar("Row", bound=msgspec.Struct)


def open_snapshot(uri: str) -> Snapshot:
    """Opens a finished snapshot.

    Args:
        uri: Its own folder: a path, or a URI that `snapshots.place` can open.

    Raises:
        SnapshotError: If it cannot be reached, is not finished, or lacks a table.
    """
    files, path = place_of(uri)
    try:
        found = {info.base_name for info in files.get_file_info(fs.FileSelector(path))}
    except (OSError, pa.ArrowException) as error:
        raise SnapshotError(f"{uri}: there is no snapshot that can be read: {error}") from error
    if SUCCESS not in found:
        raise SnapshotError(f"{uri} is no finished snapshot, as it holds no {SUCCESS}: collect again")
    missing = [table.name for table in COLLECTED if table.name not in found]
    if missing:
        raise SnapshotError(f"{uri} lacks the tables {', '.join(missing)}: collect again")
    return Snapshot(uri, files, path)


class _Topics(msgspec.Struct, frozen=True):
    broker: str
    topics: int


class Snapshot:
    """A finished snapshot; everything is read on demand.

    Every method raises `SnapshotError` if a table is missing, unreadable or of another shape.
    """

    def __init__(self, uri: str, files: fs.FileSystem, path: str) -> None:
        self.uri = uri
        self._files = files
        self._path = path

    def earlier(self, most: int) -> list[Snapshot]:
        """Finished snapshots of the same cluster before this one, newest first; none if the folder has another name."""
        return list(islice((each for each in self._before() if each.has(SUCCESS)), most))

    def diagnosed_before(self, most: int) -> Iterator[Snapshot]:
        """Diagnosed snapshots of the same cluster before this one, newest first; looked up as far as needed."""
        found = (each for each in self._before() if each.has(FINDINGS.name) and each.has(VERDICTS.name))
        return islice(self._of_same_cluster(found), most)

    def as_of(self, moment: datetime) -> Snapshot | None:
        """Newest diagnosed snapshot of the same cluster that was taken by a time; else the oldest one before this one.

        Only the small tables of it may be left. None: there is no earlier diagnosed snapshot.
        """
        wanted, before = f"taken_at={stamp_of(moment)}", list(self._before())
        by_then = [each for each in before if each.uri.rpartition("/")[2] <= wanted]
        later = before[: len(before) - len(by_then)]
        found = (each for each in (*by_then, *reversed(later)) if each.has(FINDINGS.name) and each.has(VERDICTS.name))
        return next(self._of_same_cluster(found), None)

    def _of_same_cluster(self, others: Iterable[Snapshot]) -> Iterator[Snapshot]:
        """Snapshots of the same Pulsar cluster that can be read: its name may have been another one's."""
        mine = None
        for other in others:
            try:
                mine = mine or self.meta().identity
                if other.meta().identity.is_same(mine):
                    yield other
            except SnapshotError:
                continue

    def has(self, name: str) -> bool:
        """True if its folder has a file or a table of this name."""
        (info,) = self._files.get_file_info([f"{self._path}/{name}"])
        return bool(info.type is not fs.FileType.NotFound)

    def _before(self) -> Iterator[Snapshot]:
        """Earlier snapshots of the same cluster, finished or not, newest first."""
        folder, _, name = self._path.rpartition("/")
        if not name.startswith("taken_at="):
            return
        uri = self.uri.rstrip("/").rpartition("/")[0]
        names = sorted(info.base_name for info in self._files.get_file_info(fs.FileSelector(folder)))
        for each in reversed(names):
            if each.startswith("taken_at=") and each < name:
                yield Snapshot(f"{uri}/{each}", self._files, f"{folder}/{each}")

    def meta(self) -> SnapshotMeta:
        """Metadata of the snapshot, with the names of unread brokers and namespaces."""
        rows = self._rows_of_any_release(SNAPSHOT, SnapshotMeta)
        if len(rows) != 1:
            raise SnapshotError(f"{self.uri}: the table {SNAPSHOT.name} has {counted(len(rows), 'row')} instead of one")
        return rows[0]

    def brokers(self) -> tuple[BrokerRow, ...]:
        """All brokers, by id."""
        return tuple(sorted(self._rows(BROKERS, BrokerRow), key=lambda row: row.broker))

    def topics_by_broker(self) -> dict[str, int]:
        """Number of loaded topics of each broker that was read, without those in which brokers check themselves."""
        return {row.broker: row.topics for row in self.select(_TOPICS, _Topics)}

    def system_bundles(self) -> tuple[BundleRow, ...]:
        """Bundles of ``pulsar/system``, by range."""
        rows = self._rows(BUNDLES, BundleRow, [("namespace", "=", TC_NAMESPACE)])
        return tuple(sorted(rows, key=lambda row: row.bundle))

    def coordinators(self) -> tuple[CoordinatorRow, ...]:
        """All transaction coordinators, by id."""
        return tuple(sorted(self._rows(TRANSACTION_COORDINATORS, CoordinatorRow), key=lambda row: row.coordinator))

    def namespaces(self, names: Iterable[str]) -> tuple[NamespaceRow, ...]:
        """The existing ones of these namespaces, by name."""
        wanted = list(names)  # an empty list has no type, and no file is filtered by it
        rows = self._rows(NAMESPACES, NamespaceRow, [("namespace", "in", wanted)]) if wanted else ()
        return tuple(sorted(rows, key=lambda row: row.namespace))

    def namespace_names(self) -> tuple[str, ...]:
        """All namespaces (``tenant/namespace``), sorted."""
        return tuple(sorted(row.namespace for row in self._rows(NAMESPACES, NamespaceRow)))

    def usual_settings(self, keys: Iterable[str]) -> dict[str, str]:
        """The values of most brokers for these settings, as far as brokers report them."""
        query = "select *, '' as broker from usual_settings where key in (select unnest($keys))"
        rows = self.select(query, ConfigurationRow, views=[USUAL_SETTINGS], keys=list(keys))
        return {row.key: row.value for row in rows if row.value is not None}

    def configuration(self, keys: Iterable[str]) -> list[ConfigurationRow]:
        """These settings of all brokers."""
        return self._rows(CONFIGURATION, ConfigurationRow, [("key", "in", list(keys))])

    def findings(self, *, as_judged: bool = False) -> tuple[Finding, ...]:
        """Findings of `diagnose`, by descending severity, then by check and subject.

        Args:
            as_judged: True: those of one check and severity stay in the check's own order, the worst first.
        """
        found = [
            Finding(
                check_id=row["check_id"],
                severity=Severity(row["severity"]),
                subject=row["subject"],
                evidence=row["evidence"],
                figures=decode(row["figures_json"], dict[str, int]),
                first_seen=row["first_seen"],
                snapshots_in_a_row=row["snapshots_in_a_row"],
            )
            for row in self.table(FINDINGS).to_pylist()
        ]
        if not as_judged:
            found.sort(key=lambda each: (each.subject, each.evidence))
        return tuple(sorted(found, key=lambda each: (-each.severity.rank, each.check_id)))

    def verdicts(self) -> tuple[Verdict, ...]:
        """Verdicts of the checks for the snapshot, by check."""
        rows = self._rows_of_any_release(VERDICTS, Verdict)
        return tuple(sorted(rows, key=lambda verdict: verdict.check_id))

    def trends(self) -> tuple[TrendRow, ...]:
        """Figures over time, by measure, subject and time."""
        rows = self._rows(TRENDS, TrendRow)
        return tuple(sorted(rows, key=lambda row: (row.measure, row.subject, row.taken_at)))

    def failovers(self) -> tuple[FailoverRow, ...]:
        """Estimated time without service for the topics of each broker, if it is lost."""
        return tuple(self._rows(FAILOVERS, FailoverRow))

    def rows(self, table: Table, kind: type[Row]) -> list[Row]:
        """All rows of a small table, as objects with a field for each column that is wanted, in the order written."""
        return self._rows(table, kind)

    def select(
        self,
        query: str,
        kind: type[Row],
        earlier: Sequence[Snapshot] = (),
        views: Sequence[SqlView] = (),
        **values: object,
    ) -> list[Row]:
        """Rows of a query, as objects.

        Args:
            query: SQL on tables by their names, with the macros of `checks.views`. Each row has an additional column
                `look`, the number of its snapshot: 0 is this one.
            kind: Type of a row, with a field for each of its columns.
            earlier: Further snapshots whose rows are included, numbered from 1.
            views: Further views of these tables that the query uses.
            values: Values of the query's parameters (``$name``).
        """
        texts = " ".join([query, *(view.sql for view in views)])
        sources = set(re.findall(r"\b(?:from|join)\s+(\w+)", texts))
        try:
            with connect(1) as connection:
                for table in (each for each in (*COLLECTED, *KAFKA_TABLES, *DIAGNOSED) if each.name in sources):
                    looks = []
                    for look, each in enumerate((self, *earlier)):
                        connection.register(f"{table.name}_{look}", each._dataset(table))  # noqa: SLF001 - its own class
                        looks.append(f"select *, {look} as look from {table.name}_{look}")
                    connection.execute(f"create temp view {table.name} as {' union all '.join(looks)}")
                add_views(connection, views)
                rows = connection.sql(query, params=values).to_arrow_table().to_pylist()
            return convert_rows(rows, kind)
        except (OSError, duckdb.Error, pa.ArrowException, msgspec.ValidationError) as error:
            raise SnapshotError(f"{self.uri}: it cannot be read: {error}") from error

    def _dataset(self, table: Table) -> dataset.Dataset:
        """Files of a table."""
        path = f"{self._path}/{table.name}"
        return dataset.dataset(path, schema_of(table), format="parquet", filesystem=self._files)

    def table(self, table: Table, columns: Sequence[str] | None = None, filters: Any = None) -> pa.Table:
        """Reads a table, or some of its columns and rows.

        Args:
            table: The table.
            columns: Names; None: all.
            filters: Filters in the form of `pyarrow.parquet.read_table`.
        """
        names = list(columns or table.names)
        try:
            return pq.read_table(
                f"{self._path}/{table.name}", columns=names, filters=filters, filesystem=self._files, partitioning=None
            ).select(names)
        except (OSError, KeyError, pa.ArrowException) as error:
            raise SnapshotError(f"{self.uri}: the table {table.name} cannot be read: {error}") from error

    def _rows(self, table: Table, kind: type[Row], filters: Any = None) -> list[Row]:
        return self._typed(table, self.table(table, kind.__struct_fields__, filters), kind)

    def _rows_of_any_release(self, table: Table, kind: type[Row]) -> list[Row]:
        """Rows of a table that gained columns since 0.2.0: where a snapshot lacks one, the field has its default."""
        try:
            rows = self._dataset(table).to_table(columns=list(kind.__struct_fields__))
        except (OSError, pa.ArrowException) as error:
            raise SnapshotError(f"{self.uri}: the table {table.name} cannot be read: {error}") from error
        return self._typed(table, rows, kind, nulls=False)

    def _typed(self, table: Table, rows: pa.Table, kind: type[Row], *, nulls: bool = True) -> list[Row]:
        told = rows.to_pylist()
        if not nulls:
            told = [{name: value for name, value in row.items() if value is not None} for row in told]
        try:
            return convert_rows(told, kind)
        except msgspec.ValidationError as error:
            raise SnapshotError(f"{self.uri}: the table {table.name} is of another shape: {error}") from error
