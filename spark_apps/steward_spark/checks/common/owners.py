"""The brokers that own a few topics, without a shuffle of all topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from steward_spark.frames import Frames


def with_owners(rows: DataFrame, frames: Frames) -> DataFrame:
    """Adds `broker` to rows with a `topic`; null where the topic is not loaded.

    Args:
        rows: Few, as `Frames.few` gives them; many cost a join of all topics.
        frames: The snapshot.
    """
    return rows.join(frames.few(of_topics(frames.topics.select("topic", "broker"), rows)), "topic", "left")


def of_topics(table: DataFrame, rows: DataFrame) -> DataFrame:
    """What a table has of the topics of a few rows."""
    return table.join(rows.select("topic").distinct(), "topic", "left_semi")
