"""The Spark session of all applications: what seconds on one machine need, unless it is told otherwise."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.catalogImplementation": "in-memory",
    # How far it is, is told by the applications themselves.
    "spark.ui.showConsoleProgress": "false",
    # Java only starts tasks, which work in Python. `spark-submit` starts Java itself, so whoever calls that has to pass
    # this on.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.parquet.compression.codec": "zstd",
}
"""What whoever submits the job may set otherwise: quick to start, and small."""

FIXED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
"""What the snapshots rest on: times in UTC, and a `_SUCCESS` at the root only.

Spark's event log and its pages are whoever's who submits: what a job is given holds no secret (tested).
"""


def spark_session(name: str) -> SparkSession:
    """The session of this process, started when it is first asked for."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - the command line answers --help without Spark
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # Started by spark-submit: what was submitted, the master too, is only known once Java has been spoken to.
        SparkContext._ensure_initialized()  # noqa: SLF001 - there is no other way to see it before the session
    given = SparkConf()
    builder = SparkSession.builder.appName(name)
    if not given.contains("spark.master"):
        builder = builder.master("local[*]")
    for key, value in DEFAULTS.items():
        if not given.contains(key):
            builder = builder.config(key, value)
    for key, value in FIXED.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
