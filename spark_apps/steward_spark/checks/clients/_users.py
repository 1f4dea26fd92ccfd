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
    """Rows with a `topic` that is no heartbeat and none of Pulsar's own."""
    return rows.where(~F.col("topic").rlike(_PULSARS_OWN))


def subscriptions_of_users(frames: Frames) -> DataFrame:
    """The table `subscriptions` without Pulsar's own ones, and without readers: these owe nobody that they read."""
    named = F.col("subscription")
    return of_users(frames.subscriptions).where(~named.startswith("__") & ~named.rlike(_READER))


@derived_once
def nothing_read(frames: Frames) -> str | None:
    """Why silence means nothing where no broker was read; None where one was."""
    return None if frames.brokers.where("read").take(1) else "No broker was read."
