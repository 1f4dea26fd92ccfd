"""What a topic's full name tells: its namespace, and whether it is one of Pulsar's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def of_users(rows: DataFrame) -> DataFrame:
    """Rows with a `topic` that is neither of Pulsar's own tenant, as heartbeats are, nor one of a namespace's own.

    Args:
        rows: What is wanted already: names take longer to look at than figures.
    """
    name = F.col("topic")
    of_pulsar = name.startswith("persistent://pulsar/") | name.startswith("non-persistent://pulsar/")
    return rows.where(~(of_pulsar | F.substring_index(name, "/", -1).startswith("__")))


def namespace_of(topic: str) -> Column:
    """The namespace in a topic's full name; of an old one, the cluster is in it. Null where the name is null."""
    # Between the domain and the last slash. A pattern would say it in a word, and take several times as long.
    rest = f"left({topic}, length({topic}) - length(substring_index({topic}, '/', -1)) - 1)"
    return F.expr(f"substring_index({rest}, '://', -1)")
