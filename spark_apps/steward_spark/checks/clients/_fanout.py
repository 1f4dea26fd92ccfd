"""Topics with more clients of one kind than a partition should have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.checks.common.listing import worst
from steward_spark.checks.common.topics import of_users

if TYPE_CHECKING:
    from pyspark.sql import Row

    from steward_spark.frames import Frames


def crowded(frames: Frames, clients: str, least: int) -> tuple[list[Row], int]:
    """The topics with most `producers` or `consumers`, from `least` on, and the number of further ones."""
    topics = of_users(frames.topics.where(F.col(clients) >= least))
    columns = ("topic", "bundle", "broker", "producers", "consumers", "subscriptions", "producers_connected_recently")
    return worst(topics.select(*columns), F.desc(clients), F.asc("topic"))


def most_of_one(frames: Frames, clients: str) -> str:
    """What to say where no topic is crowded: the highest number that was seen."""
    row = of_users(frames.topics).agg(F.max(clients).alias("most")).first()
    most = row["most"] if row is not None else None
    return f"No partition has more than {most or 0:,} {clients}."


def moving(row: Row) -> str:
    """What a move of the topic means, in a sentence."""
    clients = (row["producers"] or 0) + (row["consumers"] or 0)
    return f"A move or restart makes all {clients:,} clients of the topic reconnect at once."
