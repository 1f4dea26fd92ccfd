"""What belongs to users: not Pulsar's own topics, heartbeats and subscriptions, and no readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.frames import derived_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from steward_spark.frames import Frames

_PULSARS_OWN = r"^[a-z-]+://(pulsar/|([^/]+/){2,3}__)"
_READER = r"^(reader|multiTopicsReader)-[0-9A-Za-z]+$"


def of_users(rows: DataFrame) -> DataFrame:
    """Rows with a `topic` that is no heartbeat and none of Pulsar's own; what figures rule out goes before."""
    name = F.col("topic")
    # Nearly all topics are told by the first, which is quick.
    return rows.where(~((name.contains("//pulsar/") | name.contains("/__")) & name.rlike(_PULSARS_OWN)))


def subscriptions_of_users(rows: DataFrame) -> DataFrame:
    """Subscriptions without Pulsar's own ones, and without readers: these owe nobody that they read.

    Args:
        rows: Of the table `subscriptions` what is wanted already: names take longer to look at than figures.
    """
    named = F.col("subscription")
    return of_users(rows.where(~named.startswith("__"))).where(~named.rlike(_READER))


@derived_once
def nothing_read(frames: Frames) -> str | None:
    """Why silence means nothing where no broker was read; None where one was."""
    return None if frames.brokers.where("read").take(1) else "No broker was read."
