"""File system of a snapshot's URI, opened with Arrow: Spark writes by Hadoop's client, planning reads without Java."""

from __future__ import annotations

import re

import pyarrow as pa
from pyarrow import fs

from pulsar_steward.errors import SnapshotError

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
