"""Spark's settings while it works on little, or on much."""

from __future__ import annotations

from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

OF_SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
}
"""Measured on a snapshot of a few topics: half the processor time of what is best for a large one."""

AS_IT_IS: Mapping[str, str] = MappingProxyType({})
"""Nothing that whoever submitted the job did not ask for."""

OF_LARGE = {
    # What is divided by topics is divided well enough to be joined by topics and subscriptions.
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    # To find few rows, all of a table has to be looked at, in one job.
    "spark.sql.limit.initialNumPartitions": "1000000",
    # What is held is read a few times within seconds: to compress it takes longer than all of these.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
}


@contextmanager
def tuned(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Has these settings for the length of a block, and afterwards those from before."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
