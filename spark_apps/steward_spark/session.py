"""The Spark session of all applications, set up for jobs of seconds on one machine unless configured otherwise."""

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
    # The applications show progress themselves.
    "spark.ui.showConsoleProgress": "false",
    # Java only starts tasks, which work in Python. `spark-submit` starts Java itself, so its caller has to pass
    # this on.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.parquet.compression.codec": "zstd",
}
"""Defaults that the submitter may override: quick to start, and small."""

FIXED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
"""Settings that snapshots rely on, which no submitter may override: times in UTC, and a `_SUCCESS` at the root only.

The submitter decides about Spark's event log and pages: nothing that a job is given contains a secret (tested).
"""


def spark_session(name: str) -> SparkSession:
    """Spark session of this process, started on the first call."""
    from pyspark import SparkConf, SparkContext  # the command line answers --help without Spark
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # Started by spark-submit: the submitted settings, the master too, are known only once Java has been called.
        SparkContext._ensure_initialized()  # there is no other way to see it before the session
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
