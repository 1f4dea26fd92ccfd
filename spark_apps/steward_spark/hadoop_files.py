"""Snapshot storage on any file system that Hadoop reaches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulsar_steward.snapshots.folder import Files, LocalFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def files_at(spark: SparkSession, uri: str) -> Files:
    """File system of a URI; for one without a scheme, Hadoop's configuration decides."""
    found = HadoopFiles(spark)
    return LocalFiles() if found.local(uri) is not None else found


class HadoopFiles(Files):
    """File system that is reached only through Java.

    Args:
        spark: The session with Hadoop's configuration.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def local(self, place: str) -> Path | None:
        """See `Files.local`."""
        files, path = self._at(place)
        if str(files.getScheme()) != "file":
            return None
        return Path(str(files.makeQualified(path).toUri().getPath()))

    def exists(self, place: str) -> bool:
        """See `Files.exists`."""
        files, path = self._at(place)
        return bool(files.exists(path))

    def names(self, place: str) -> list[str]:
        """See `Files.names`."""
        files, path = self._at(place)
        if not files.exists(path):
            return []
        return sorted(str(each.getPath().getName()) for each in files.listStatus(path))

    def read(self, place: str) -> bytes:
        """See `Files.read`."""
        files, path = self._at(place)
        stream = files.open(path)
        try:
            return bytes(java_class(self._spark, "org.apache.hadoop.io.IOUtils").readFullyToByteArray(stream))
        finally:
            stream.close()

    def write(self, place: str, content: bytes) -> None:
        """See `Files.write`."""
        files, path = self._at(place)
        stream = files.create(path, True)
        try:
            stream.write(content)
        finally:
            stream.close()

    def move(self, place: str, folder: str) -> bool:
        """See `Files.move`."""
        files, path = self._at(place)
        files.mkdirs(self._at(folder)[1])
        return bool(files.exists(path) and files.rename(path, self._at(folder)[1]))

    def delete(self, place: str) -> None:
        """See `Files.delete`."""
        files, path = self._at(place)
        files.delete(path, True)

    def _at(self, place: str) -> tuple[Any, Any]:
        path = java_class(self._spark, "org.apache.hadoop.fs.Path")(place)
        configuration = self._spark.sparkContext._jsc.hadoopConfiguration()  # Hadoop has no other door
        return path.getFileSystem(configuration), path


def java_class(spark: SparkSession, name: str) -> Any:
    """Returns a Java class by its full name; attribute by attribute, py4j would look each part up as a class."""
    return getattr(spark.sparkContext._jvm, name)  # there is no other way to Java
