"""A snapshot's folder: its layout, the marks of a finished snapshot, and the division of its tables into shards."""

from __future__ import annotations

import logging
import re
import shutil
from datetime import UTC, datetime
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from pulsar_steward.errors import ConfigurationError, SnapshotError
from pulsar_steward.model.cluster import require_cluster_name
from pulsar_steward.model.tables import (
    COLLECTED,
    DIAGNOSED,
    DRILLED,
    FINDINGS,
    KAFKA_LAGS,
    KAFKA_PARTITIONS,
    KAFKA_TABLES,
    SHARDED,
    VERDICTS,
)
from pulsar_steward.snapshots.database import schema_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.model.tables import Table


SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")

OTHER_NAMES = {"s3a": "s3"}
"""Hadoop's URI schemes that have other names in Arrow."""

BY_HADOOP = ("hdfs", "viewfs")
"""Schemes for which Arrow loads Hadoop's own client, a C library that loads Java."""


_OF_HADOOP = (
    " (Airflow's tasks need Hadoop's client and Java for it: set JAVA_HOME, HADOOP_HOME, ARROW_LIBHDFS_DIR where"
    " libhdfs.so is elsewhere, and CLASSPATH to what `hadoop classpath --glob` prints)"
)


def place_of(uri: str) -> tuple[fs.FileSystem, str]:
    """File system of a URI, and the path on it.

    Raises:
        SnapshotError: If it cannot be opened; the message says what is missing.
    """
    match = SCHEME.match(uri)
    if match is None:
        return fs.LocalFileSystem(), uri.rstrip("/")
    scheme = OTHER_NAMES.get(match[1], match[1])
    try:
        files, path = fs.FileSystem.from_uri(scheme + uri[match.end(1) :])
    except pa.ArrowInvalid as error:
        raise SnapshotError(
            f"{uri}: Arrow, which plans read snapshots by, cannot open it: {error}. STEWARD_SNAPSHOTS may be a path or"
            " begin with file:, hdfs:, viewfs:, s3a:, gs: or abfss:"
        ) from error
    except OSError as error:
        remedy = _OF_HADOOP if scheme in BY_HADOOP else ""
        raise SnapshotError(f"{uri}: cannot be opened{remedy}: {error}") from error
    return files, path.rstrip("/")


log = logging.getLogger(__name__)

SUCCESS = "_SUCCESS"
STAGING = "_collecting"
COMPACTED = "_COMPACTED"

LOOK_BACK = 12
"""Maximum number of earlier snapshots that a diagnosis reads; these are never compacted."""

LARGE = (*SHARDED, DRILLED, KAFKA_PARTITIONS, KAFKA_LAGS)
"""Tables that grow with topics: nearly all of a snapshot's size."""

_STAMP = "%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"taken_at=(\d{8}T\d{6}Z)")
_BY_SPARK = re.compile(r"(part-\d+)-.*")


def stamp_of(taken_at: datetime) -> str:
    """Timestamp in a snapshot's name: ``20260131T235959Z``.

    Raises:
        ConfigurationError: If the time has no time zone.
    """
    if taken_at.tzinfo is None:
        raise ConfigurationError(f"the time {taken_at.isoformat()} lacks a time zone: end it with Z or +00:00")
    return taken_at.astimezone(UTC).strftime(_STAMP)


def snapshot_uri(out: str, cluster: str, taken_at: datetime) -> str:
    """URI of a snapshot below a folder of snapshots.

    Raises:
        ConfigurationError: If the cluster's name cannot be part of a path, or the time has no time zone.
    """
    return f"{out.rstrip('/')}/cluster={require_cluster_name(cluster)}/taken_at={stamp_of(taken_at)}"


class SnapshotFolder:
    """Reads and writes a snapshot's tables.

    Args:
        files: The file system that it is on.
        uri: The snapshot's own folder.
    """

    def __init__(self, files: Files, uri: str) -> None:
        self.files = files
        self.uri = uri.rstrip("/")

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.uri.rpartition("/")[2]

    def begin(self) -> None:
        """Marks the snapshot as unfinished until `finish`, and as not diagnosed."""
        for name in (SUCCESS, COMPACTED, VERDICTS.name):
            self.files.delete(self._place(name))

    def begin_diagnosis(self) -> None:
        """Marks the snapshot as not diagnosed until its verdicts are written, the last step."""
        self.files.delete(self._place(VERDICTS.name))

    def finish(self) -> None:
        """Marks the snapshot as finished."""
        self.files.write(self._place(SUCCESS), b"")

    def finished(self) -> bool:
        """True if the snapshot is finished."""
        return self.files.exists(self._place(SUCCESS))

    def require_finished(self) -> None:
        """Checks that the snapshot is finished.

        Raises:
            SnapshotError: If it is not.
        """
        if not self.finished():
            raise SnapshotError(f"{self.uri} is no finished snapshot, as it holds no {SUCCESS}: collect again")

    def diagnosed(self) -> bool:
        """True if the snapshot is finished, and `diagnose` has written its result."""
        return all(self.files.exists(self._place(name)) for name in (SUCCESS, FINDINGS.name, VERDICTS.name))

    def compacted(self) -> bool:
        """True if only the small tables and the diagnosis remain."""
        return self.files.exists(self._place(COMPACTED))

    def compact(self) -> None:
        """Deletes the large tables; keeps the small ones and the diagnosis, and marks the snapshot as unfinished."""
        self.files.write(self._place(COMPACTED), b"")
        self.files.delete(self._place(SUCCESS))
        for table in LARGE:
            self.files.delete(self._place(table.name))

    def remove(self) -> None:
        """Removes the snapshot; before the first file is deleted, it is marked as unfinished."""
        self.begin()
        self.files.delete(self.uri)

    def earlier(self, most: int) -> list[SnapshotFolder]:
        """Finished and diagnosed snapshots of the same cluster before this one, the newest first."""
        before = [each for each in reversed(self._siblings()) if each.startswith("taken_at=") and each < self.name]
        folders = (SnapshotFolder(self.files, self._sibling(each)) for each in before)
        return list(islice((each for each in folders if each.diagnosed()), most))

    def all_of_cluster(self) -> list[tuple[SnapshotFolder, datetime]]:
        """All snapshots of the same cluster, finished or not, with their times; other folders are left out."""
        dated = [(name, match[1]) for name in self._siblings() if (match := _NAME.fullmatch(name))]
        return [
            (SnapshotFolder(self.files, self._sibling(name)), datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC))
            for name, stamp in dated
        ]

    def read(self, table: Table) -> pa.Table:
        """Reads a whole table; not for large ones.

        A missing column is null, and a missing table has no rows.

        Raises:
            SnapshotError: If a file is not valid.
        """
        parts = [self._part(table, name) for name in self._file_names(table)]
        return pa.concat_tables([schema_of(table).empty_table(), *parts])

    def is_whole(self) -> bool:
        """True if every file of it can be read as far as its columns; takes a moment for each."""
        for table in (*COLLECTED, *KAFKA_TABLES, *DIAGNOSED):
            for name in self._file_names(table):
                place = self._place(f"{table.name}/{name}")
                try:
                    pq.read_metadata(self.files.local(place) or BytesIO(self.files.read(place)))
                except (OSError, pa.ArrowException) as error:
                    log.warning("%s cannot be read: %s", place, error)
                    return False
        return True

    def source(self, table: Table) -> pa.Table | list[str]:
        """Source of a table that is not large: the paths of its files if they are on this machine, else its rows."""
        places = [self._place(f"{table.name}/{name}") for name in self._file_names(table)]
        paths = [self.files.local(place) for place in places]
        return self.read(table) if None in paths else [str(path) for path in paths]

    def write(self, table: Table, rows: pa.Table) -> None:
        """Writes a table, replacing an existing one, with its columns in the table's order."""
        self.files.delete(self._place(table.name))
        self.files.write(self._place(f"{table.name}/part-0.parquet"), _parquet(table, rows))

    def add(self, table: Table, rows: pa.Table) -> None:
        """Adds rows to an existing table."""
        self.files.write(self._place(f"{table.name}/added.parquet"), _parquet(table, rows))

    def shards(self) -> list[Mapping[str, Sequence[str]]]:
        """Files of each shard, by the table's name: local paths if they are on this machine.

        Files with the same name contain the same brokers; names of files written by Spark differ after their number.
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
        """Local folder for files that `take_in` moves into the snapshot; None if it is not on a local file system."""
        return self.files.local(self._place(STAGING))

    def take_in(self, table: Table, names: Sequence[str]) -> None:
        """Replaces a table by files of the staging folder.

        Raises:
            SnapshotError: If one of the files does not exist.
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
        """Removes the staging folder and its remaining files."""
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
    """True if the name ends after Spark's task number: Steward's own names may begin alike."""
    return len(name) == len("part-00000")


class Files(Protocol):
    """A file system. A place is a path or a URI, like the snapshot's own."""

    def local(self, place: str) -> Path | None:
        """Local path of a place; None if it is not on this machine."""

    def exists(self, place: str) -> bool:
        """True if there is a file or folder."""

    def names(self, place: str) -> list[str]:
        """Names in a folder, sorted; empty if it does not exist."""

    def read(self, place: str) -> bytes:
        """The content of a file."""

    def write(self, place: str, content: bytes) -> None:
        """Writes a file, replacing an existing one; creates its folder."""

    def move(self, place: str, folder: str) -> bool:
        """Moves a file into an existing folder; False if the file does not exist."""

    def delete(self, place: str) -> None:
        """Deletes a file, or a folder with everything in it, if it exists."""


class LocalFiles(Files):
    """Folders of this machine, including mounted ones."""

    def local(self, place: str) -> Path:
        """See `Files.local`."""
        return Path(place.removeprefix("file://").removeprefix("file:"))

    def exists(self, place: str) -> bool:
        """See `Files.exists`."""
        return self.local(place).exists()

    def names(self, place: str) -> list[str]:
        """See `Files.names`."""
        folder = self.local(place)
        return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []

    def read(self, place: str) -> bytes:
        """See `Files.read`."""
        return self.local(place).read_bytes()

    def write(self, place: str, content: bytes) -> None:
        """See `Files.write`."""
        path = self.local(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def move(self, place: str, folder: str) -> bool:
        """See `Files.move`."""
        path = self.local(place)
        if not path.is_file():
            return False
        path.rename(self.local(folder) / path.name)
        return True

    def delete(self, place: str) -> None:
        """See `Files.delete`."""
        path = self.local(place)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
