"""A snapshot's folder: what is in it, what makes it count, and how its tables are divided into shards."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from pulsar_steward.errors import ConfigurationError, SnapshotError
from pulsar_steward.model.tables import DRILLED, FINDINGS, SHARDED, VERDICTS
from pulsar_steward.policy.place import CLUSTER_NAME
from pulsar_steward.snapshots.arrow import schema_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pulsar_steward.model.tables import Table
    from pulsar_steward.snapshots.files import Files

SUCCESS = "_SUCCESS"
STAGING = "_collecting"
COMPACTED = "_COMPACTED"

LOOK_BACK = 12
"""Earlier snapshots that a diagnosis looks at, at most, and so stay whole."""

LARGE = (*SHARDED, DRILLED)
"""Tables that grow with topics: nearly all of a snapshot's size."""

_STAMP = "%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"taken_at=(\d{8}T\d{6}Z)")
_BY_SPARK = re.compile(r"(part-\d+)-.*")


def stamp_of(taken_at: datetime) -> str:
    """A time in a snapshot's name: ``20260131T235959Z``.

    Raises:
        ConfigurationError: If the time does not say its time zone.
    """
    if taken_at.tzinfo is None:
        raise ConfigurationError(f"the time {taken_at.isoformat()} lacks a time zone: end it with Z or +00:00")
    return taken_at.astimezone(UTC).strftime(_STAMP)


def snapshot_uri(out: str, cluster: str, taken_at: datetime) -> str:
    """Where a snapshot goes below a folder of snapshots.

    Raises:
        ConfigurationError: If the cluster's name cannot be part of a path, or the time lacks its zone.
    """
    if not CLUSTER_NAME.fullmatch(cluster):
        raise ConfigurationError(f"cluster name {cluster!r}: use letters, digits, '.', '_' and '-' only")
    return f"{out.rstrip('/')}/cluster={cluster}/taken_at={stamp_of(taken_at)}"


class SnapshotFolder:
    """Reads and writes a snapshot's tables.

    Args:
        files: The file system that it lies in.
        uri: The snapshot's own folder.
    """

    def __init__(self, files: Files, uri: str) -> None:
        self.files = files
        self.uri = uri.rstrip("/")

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.uri.rpartition("/")[2]

    def begin(self) -> None:
        """Makes the snapshot count no more until `finish`, and not as diagnosed before it is diagnosed again."""
        for name in (SUCCESS, COMPACTED, VERDICTS.name):
            self.files.delete(self._place(name))

    def begin_diagnosis(self) -> None:
        """Makes the snapshot count as diagnosed no more until its verdicts are written, which comes last."""
        self.files.delete(self._place(VERDICTS.name))

    def finish(self) -> None:
        """Makes the snapshot count."""
        self.files.write(self._place(SUCCESS), b"")

    def finished(self) -> bool:
        """Whether the snapshot counts."""
        return self.files.exists(self._place(SUCCESS))

    def require_finished(self) -> None:
        """Checks that the snapshot counts.

        Raises:
            SnapshotError: If it does not.
        """
        if not self.finished():
            raise SnapshotError(f"{self.uri} is no finished snapshot, as it holds no {SUCCESS}: collect again")

    def diagnosed(self) -> bool:
        """Whether the snapshot counts, and `diagnose` has said what it found."""
        return all(self.files.exists(self._place(name)) for name in (SUCCESS, FINDINGS.name, VERDICTS.name))

    def compacted(self) -> bool:
        """Whether only what was said of the snapshot is left."""
        return self.files.exists(self._place(COMPACTED))

    def compact(self) -> None:
        """Leaves only what was said of the snapshot, which counts no more, and what is small of it."""
        self.files.write(self._place(COMPACTED), b"")
        self.files.delete(self._place(SUCCESS))
        for table in LARGE:
            self.files.delete(self._place(table.name))

    def remove(self) -> None:
        """Removes the snapshot; it counts no more before the first of its files is gone."""
        self.begin()
        self.files.delete(self.uri)

    def earlier(self, most: int) -> list[SnapshotFolder]:
        """Finished and diagnosed snapshots of the same cluster before this one, the newest first."""
        before = [each for each in reversed(self._siblings()) if each.startswith("taken_at=") and each < self.name]
        folders = (SnapshotFolder(self.files, self._sibling(each)) for each in before)
        return list(islice((each for each in folders if each.diagnosed()), most))

    def all_of_cluster(self) -> list[tuple[SnapshotFolder, datetime]]:
        """Every snapshot of the same cluster, whole or not, with when it was taken; other names are left out."""
        dated = [(name, match[1]) for name in self._siblings() if (match := _NAME.fullmatch(name))]
        return [
            (SnapshotFolder(self.files, self._sibling(name)), datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC))
            for name, stamp in dated
        ]

    def read(self, table: Table) -> pa.Table:
        """A table that is not large, whole.

        What an older version did not write is null, and has no rows where the whole table is missing.

        Raises:
            SnapshotError: If a file is none.
        """
        parts = [self._part(table, name) for name in self._file_names(table)]
        return pa.concat_tables([schema_of(table).empty_table(), *parts])

    def source(self, table: Table) -> pa.Table | list[str]:
        """A table that is not large: the paths of its files where they are on this machine, and else its rows."""
        places = [self._place(f"{table.name}/{name}") for name in self._file_names(table)]
        paths = [self.files.local(place) for place in places]
        return self.read(table) if None in paths else [str(path) for path in paths]

    def has(self, table: Table) -> bool:
        """Whether the snapshot has the table at all."""
        return self.files.exists(self._place(table.name))

    def write(self, table: Table, rows: pa.Table) -> None:
        """Writes a table in place of what is there, its columns in the order that was agreed."""
        self.files.delete(self._place(table.name))
        self.files.write(self._place(f"{table.name}/part-0.parquet"), _parquet(table, rows))

    def add(self, table: Table, rows: pa.Table) -> None:
        """Writes more rows of a table that is there."""
        self.files.write(self._place(f"{table.name}/added.parquet"), _parquet(table, rows))

    def shards(self) -> list[Mapping[str, Sequence[str]]]:
        """The files of each shard, by the table's name: paths, where they are on this machine.

        Files of one name hold the same brokers; of those that Spark wrote the name differs behind its number.
        """
        found: dict[str, dict[str, list[str]]] = {}
        for table in SHARDED:
            for name in self._file_names(table):
                match = _BY_SPARK.fullmatch(name)
                shard = found.setdefault(match[1] if match and _is_number(match[1]) else name, {})
                place = self._place(f"{table.name}/{name}")
                shard.setdefault(table.name, []).append(str(self.files.local(place) or place))
        return [found[key] for key in sorted(found)]

    def staging(self) -> Path | None:
        """A folder for files that become part of the snapshot with `take_in`; None where it lies on no machine."""
        return self.files.local(self._place(STAGING))

    def take_in(self, table: Table, names: Sequence[str]) -> None:
        """Makes files of the staging folder a table, in place of what is there.

        Raises:
            SnapshotError: If one of them is not there.
        """
        folder = self._place(table.name)
        self.files.delete(folder)
        local = self.files.local(folder)
        if local is not None:
            local.mkdir(parents=True)
        for name in names:
            staged = f"{STAGING}/{table.name}/{name}"
            if not self.files.move(self._place(staged), folder):
                raise SnapshotError(
                    f"{self.uri}/{staged}, which a Spark task wrote, is not there: where tasks run on other machines, "
                    "snapshots need a URI that all of them reach, such as a shared folder's, hdfs:// or s3a://"
                )

    def end_staging(self) -> None:
        """Removes the staging folder with what was not taken in."""
        self.files.delete(self._place(STAGING))

    def _file_names(self, table: Table) -> list[str]:
        return [name for name in self.files.names(self._place(table.name)) if name.endswith(".parquet")]

    def _part(self, table: Table, name: str) -> pa.Table:
        place = self._place(f"{table.name}/{name}")
        local = self.files.local(place)
        try:
            rows = pq.read_table(BytesIO(self.files.read(place)) if local is None else local, partitioning=None)
        except (OSError, pa.ArrowException) as error:
            raise SnapshotError(f"{place} cannot be read: {error}") from error
        schema = schema_of(table)
        columns = [
            rows[field.name].cast(field.type)
            if field.name in rows.column_names
            else pa.nulls(rows.num_rows, field.type)
            for field in schema
        ]
        return pa.Table.from_arrays(columns, schema=schema)

    def _siblings(self) -> list[str]:
        return self.files.names(self.uri.rpartition("/")[0])

    def _sibling(self, name: str) -> str:
        return f"{self.uri.rpartition('/')[0]}/{name}"

    def _place(self, name: str) -> str:
        return f"{self.uri}/{name}"


def _parquet(table: Table, rows: pa.Table) -> bytes:
    made = BytesIO()
    pq.write_table(rows.select(list(table.names)).cast(schema_of(table)), made, compression="zstd")
    return made.getvalue()


def _is_number(name: str) -> bool:
    """Whether it is Spark's number of a task: a part's own name may begin alike."""
    return len(name) == len("part-00000")
