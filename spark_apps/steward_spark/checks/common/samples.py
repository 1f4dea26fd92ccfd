"""The samples that processes give of themselves: of a large cluster's metrics a small part, which many checks read."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.frames import few_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from steward_spark.frames import Frames

OF_TOPICS = ("pulsar_compaction_", "pulsar_delayed_message_index_", "pulsar_storage_", "pulsar_subscription_")
"""How the series begin of which each topic may have a sample."""

OF_NAMESPACES = ("pulsar_ml_LedgerAddEntryLatencyBuckets", "pulsar_ml_LedgerSwitchLatencyBuckets")
"""The same, of which each namespace has several on each of its brokers."""


DELAYED = "pulsar_subscription_delayed"


@few_once
def tellers(frames: Frames) -> DataFrame:
    """Who gave any sample: `source`, `source_kind`, and `delayed`, whether it tells the series `DELAYED` at all."""
    delayed = F.max(F.col("series") == DELAYED).alias("delayed")
    return frames.metrics.groupBy("source", "source_kind").agg(delayed)


@few_once
def of_processes(frames: Frames) -> DataFrame:
    """The table `metrics` without the series `OF_TOPICS` and `OF_NAMESPACES`."""
    name = F.col("series")
    return frames.metrics.where(~reduce(Column.__or__, [name.startswith(each) for each in OF_TOPICS + OF_NAMESPACES]))
