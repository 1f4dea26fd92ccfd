"""Check that executors write to the storage that the driver reads: a path may be another disk on each machine.

Spark itself does not notice: rows that an executor writes to its own disk are missing in the table, without an error.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from pulsar_steward.errors import ConfigurationError
from steward_spark.hadoop_files import java_class
from steward_spark.reading import map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import SparkSession

LOOKS_A_CORE = 2
"""Tasks for each core of the executors, so that nearly every executor gets one."""


def require_shared(spark: SparkSession, uri: str) -> None:
    """Checks that executors see the folder that the driver sees; does nothing for Spark on one machine.

    Args:
        spark: The session.
        uri: The folder of snapshots; created if it is a path that does not exist.

    Raises:
        ConfigurationError: If an executor sees another one.
    """
    context = spark.sparkContext
    if str(context.master).startswith("local") or (folder := _folder(spark, uri)) is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / f".seen-{uuid4().hex}"
    mark.touch()
    try:
        looks = LOOKS_A_CORE * context.defaultParallelism
        rows = map_in_arrow(spark.range(0, looks, 1, looks), _looking(mark), "host string")
        blind = sorted({row.host for row in rows.collect()})
    finally:
        mark.unlink()
    if blind:
        raise ConfigurationError(
            f"{uri} is another folder on {', '.join(blind)} than where the driver runs: set STEWARD_SNAPSHOTS to one"
            " that all machines of Spark share, such as hdfs://, s3a:// or a network file system's path"
        )


def _folder(spark: SparkSession, uri: str) -> Path | None:
    """Path of the URI on this machine, or None if it is none; without a scheme, Hadoop's configuration decides."""
    configuration = spark.sparkContext._jsc.hadoopConfiguration()  # Hadoop has no other door
    place = java_class(spark, "org.apache.hadoop.fs.Path")(uri)
    if place.getFileSystem(configuration).getUri().getScheme() != "file":
        return None
    return Path(str(place.toUri().getPath()))


def _looking(mark: Path) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Function for tasks that yields the machine's name where the mark is not visible."""

    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            if not mark.exists():
                yield pa.RecordBatch.from_pydict({"host": [socket.gethostname()]})

    return look
