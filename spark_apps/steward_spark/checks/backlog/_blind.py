"""What cannot be seen of age quotas: the age of a backlog is known of drilled topics only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def unknown_ages(in_force: DataFrame) -> str | None:
    """Why silence about age quotas is no health; None where every topic with such a quota and a backlog was drilled.

    Where a drilled topic tells no age, the broker does not know it either, and so does not act on it.

    Args:
        in_force: Columns of `quotas_in_force`.
    """
    blind = in_force.where(~F.col("drilled") & (F.col("limit_seconds") > 0) & (F.col("backlog_bytes") > 0))
    first = blind.agg(F.count("*").alias("count"), F.min("topic").alias("topic")).collect()[0]
    if not first["count"]:
        return None
    return (
        f"{first['count']:,} topics with an age quota have a backlog whose age was not read, {first['topic']} among"
        " them (collect.drilled_topics bounds how many are asked)."
    )
