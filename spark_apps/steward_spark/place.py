"""A snapshot's folder, at any URI that Hadoop's file systems can reach."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulsar_steward.errors import ConfigurationError, SnapshotError
from pulsar_steward.model.tables import CLIENTS, DRILLED, FINDINGS, METRICS, SUBSCRIPTIONS, TOPICS, VERDICTS
from pulsar_steward.policy.place import CLUSTER_NAME
from steward_spark.lookups import java_class
from steward_spark.schemas import spark_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pulsar_steward.model.tables import Table

SUCCESS = "_SUCCESS"
DIAGNOSED_NOTE = "_DIAGNOSED"
STAGING = "_collecting"
COMPACTED = "_COMPACTED"
LARGE = (TOPICS, SUBSCRIPTIONS, CLIENTS, METRICS, DRILLED)
"""Tables that grow with topics: nearly all of a snapshot's size."""
_STAMP = "%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"taken_at=(\d{8}T\d{6}Z)")


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


class SnapshotPlace:
    """Reads and writes a snapshot's tables.

    Args:
        spark: The session.
        uri: The snapshot's own folder.
    """

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self._spark = spark
        self.uri = uri.rstrip("/")

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.uri.rpartition("/")[2]

    def begin(self) -> None:
        """Makes the snapshot count no more until `finish`, and not as diagnosed before it is diagnosed again."""
        for name in (SUCCESS, COMPACTED, DIAGNOSED_NOTE, VERDICTS.name):
            self._files().delete(self._path(name), True)

    def finish(self) -> None:
        """Makes the snapshot count."""
        self._files().create(self._path(SUCCESS), True).close()

    def require_finished(self) -> None:
        """Checks that the snapshot counts.

        Raises:
            SnapshotError: If it does not.
        """
        if not self.finished():
            raise SnapshotError(f"{self.uri} is no finished snapshot, as it holds no {SUCCESS}: collect again")

    def earlier(self, most: int) -> list[SnapshotPlace]:
        """Finished and diagnosed snapshots of the same cluster before this one, the newest first."""
        folder, _, name = self.uri.rpartition("/")
        path = self._path_of(folder)
        names = (str(each.getPath().getName()) for each in self._files().listStatus(path))
        before = sorted((each for each in names if each.startswith("taken_at=") and each < name), reverse=True)
        places = (SnapshotPlace(self._spark, f"{folder}/{each}") for each in before)
        return list(islice((place for place in places if place.diagnosed()), most))

    def all_of_cluster(self) -> list[tuple[SnapshotPlace, datetime]]:
        """Every snapshot of the same cluster, whole or not, with when it was taken; other names are left out."""
        folder = self.uri.rpartition("/")[0]
        path = self._path_of(folder)
        if not self._files().exists(path):
            return []
        names = sorted(str(each.getPath().getName()) for each in self._files().listStatus(path))
        dated = [(name, _NAME.fullmatch(name)) for name in names]
        return [
            (SnapshotPlace(self._spark, f"{folder}/{name}"), datetime.strptime(match[1], _STAMP).replace(tzinfo=UTC))
            for name, match in dated
            if match
        ]

    def compact(self) -> None:
        """Leaves only what was said of the snapshot, which counts no more, and what is small of it."""
        self._files().create(self._path(COMPACTED), True).close()
        self._files().delete(self._path(SUCCESS), False)
        for table in LARGE:
            self._files().delete(self._path(table.name), True)

    def compacted(self) -> bool:
        """Whether only what was said of the snapshot is left."""
        return bool(self._files().exists(self._path(COMPACTED)))

    def finished(self) -> bool:
        """Whether the snapshot counts."""
        return bool(self._files().exists(self._path(SUCCESS)))

    def remove(self) -> None:
        """Removes the snapshot; it counts no more before the first of its files is gone."""
        self.begin()
        self._files().delete(self._path(""), True)

    def diagnosed(self) -> bool:
        """Whether the snapshot counts, and `diagnose` has said what it found."""
        return all(self._files().exists(self._path(name)) for name in (SUCCESS, FINDINGS.name, VERDICTS.name))

    def write(self, table: Table, frame: DataFrame) -> None:
        """Writes a table in place of what is there, its columns in the order that was agreed."""
        frame.select(*table.names).write.mode("overwrite").parquet(f"{self.uri}/{table.name}")

    def add(self, table: Table, frame: DataFrame) -> None:
        """Writes more rows of a table that is there."""
        frame.select(*table.names).write.mode("append").parquet(f"{self.uri}/{table.name}")

    def staging(self) -> Path | None:
        """A folder for files that become part of the snapshot with `take_in`; None where it lies in no folder."""
        files = self._files()
        if str(files.getScheme()) != "file":
            return None
        return Path(str(files.makeQualified(self._path(STAGING)).toUri().getPath()))

    def staged(self, table: Table, names: Sequence[str]) -> DataFrame:
        """A table's rows in files of the staging folder."""
        paths = [f"{self.uri}/{STAGING}/{table.name}/{name}" for name in names]
        return self._spark.read.schema(spark_schema(table)).parquet(*paths)

    def take_in(self, table: Table, names: Sequence[str]) -> None:
        """Makes files of the staging folder a table, in place of what is there.

        Raises:
            SnapshotError: If one of them is not there.
        """
        files, folder = self._files(), self._path(table.name)
        files.delete(folder, True)
        files.mkdirs(folder)
        for name in names:
            staged = f"{STAGING}/{table.name}/{name}"
            if not (files.exists(self._path(staged)) and files.rename(self._path(staged), folder)):
                raise SnapshotError(
                    f"{self.uri}/{staged}, which a Spark task wrote, is not there: where tasks run on other machines, "
                    "snapshots need a URI that all of them reach, such as a shared folder's, hdfs:// or s3a://"
                )

    def end_staging(self) -> None:
        """Removes the staging folder with what was not taken in."""
        self._files().delete(self._path(STAGING), True)

    def note(self, name: str) -> bytes | None:
        """The content of a small file beside the tables; None where there is none."""
        if not self._files().exists(self._path(name)):
            return None
        stream = self._files().open(self._path(name))
        try:
            return bytes(java_class(self._spark, "org.apache.hadoop.io.IOUtils").readFullyToByteArray(stream))
        finally:
            stream.close()

    def write_note(self, name: str, content: bytes) -> None:
        """Writes a small file beside the tables, in place of what is there."""
        stream = self._files().create(self._path(name), True)
        try:
            stream.write(content)
        finally:
            stream.close()

    def remove_note(self, name: str) -> None:
        """Removes a small file beside the tables, where it is there."""
        self._files().delete(self._path(name), False)

    def size(self, table: Table) -> int:
        """Bytes of a table's files; 0 where there is no such table."""
        path = self._path(table.name)
        return int(self._files().getContentSummary(path).getLength()) if self._files().exists(path) else 0

    def read(self, table: Table) -> DataFrame:
        """A table as it was written."""
        return self._spark.read.schema(spark_schema(table)).parquet(f"{self.uri}/{table.name}")

    def _path(self, name: str) -> Any:
        return self._path_of(f"{self.uri}/{name}")

    def _path_of(self, uri: str) -> Any:
        return java_class(self._spark, "org.apache.hadoop.fs.Path")(uri)

    def _files(self) -> Any:
        configuration = self._spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - Hadoop has no other door
        return self._path("").getFileSystem(configuration)
