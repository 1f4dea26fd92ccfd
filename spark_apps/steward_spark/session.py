"""The Spark session of both jobs: what a job of seconds on one machine needs, unless it is told otherwise."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from steward_spark.lookups import remember

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.catalogImplementation": "in-memory",
    # Measured on two cores: halves the processor time of a small snapshot. `spark-submit` starts Java itself, so
    # whoever calls that has to pass this on. What Spark generates for all checks fills the 48 MB that this compiler
    # has for its code by default: from then on Java only interprets, ten times as slow.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m",
    # Every expression would else ask Java several things, only for the place in Python to stand in an error's text.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
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
    spark = builder.getOrCreate()
    remember(spark)
    return spark
