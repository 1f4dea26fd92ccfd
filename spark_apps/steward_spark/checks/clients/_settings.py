"""What each broker is configured to, a column a setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.checks.common.owners import with_owners
from steward_spark.checks.common.worst import named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from steward_spark.frames import Frames

MOST_RANGES = "managedLedgerMaxUnackedRangesToPersist"
LONG_ARRAY = "managedLedgerPersistIndividualAckAsLongArray"
MESSAGE_BYTES = "maxMessageSize"


def settings(frames: Frames, columns: Mapping[str, tuple[str, str]]) -> DataFrame:
    """Settings by `broker`; null where one was not read, or is not what its type says.

    Args:
        frames: The snapshot.
        columns: Setting and SQL type by the column that it is to be.
    """
    keys = [key for key, _ in columns.values()]
    picked = [
        F.max(F.when(F.col("key") == key, F.expr(f"try_cast(trim(value) as {kind})"))).alias(column)
        for column, (key, kind) in columns.items()
    ]
    return frames.configuration.where(F.col("key").isin(keys)).groupBy("broker").agg(*picked)


def with_settings(rows: DataFrame, frames: Frames, columns: Mapping[str, tuple[str, str]]) -> DataFrame:
    """Rows with a `topic`, few as `Frames.few` gives them, and the `broker` that owns it with its settings."""
    return with_owners(rows, frames).join(F.broadcast(settings(frames, columns)), "broker", "left")


def smallest(frames: Frames, key: str) -> int | None:
    """The lowest whole number that a setting has on any broker; None where none told it."""
    row = settings(frames, {"value": (key, "bigint")}).agg(F.min("value").alias("least")).collect()[0]
    least: int | None = row["least"]
    return least


def brokers_without(frames: Frames, key: str) -> str | None:
    """Why silence means nothing where brokers with topics did not tell a setting; None where all did."""
    told = frames.configuration.where((F.col("key") == key) & F.col("value").isNotNull()).select("broker")
    silent = frames.brokers.where("read and coalesce(topics, 1) > 0").join(told, "broker", "left_anti")
    names = sorted(row["broker"] for row in silent.select("broker").collect())
    return f"The setting {key} is not in the snapshot for {named(names)}." if names else None
