"""What belongs to users: not Pulsar's own topics, heartbeats and subscriptions, and no readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.checks.common.topics import of_users
from steward_spark.frames import derived_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from steward_spark.frames import Frames

_READER = r"^(reader|multiTopicsReader)-[0-9A-Za-z]+$"


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
