"""Which topics are worth asking for their own statistics: the worst of each kind of trouble, within a budget."""

from __future__ import annotations

import re
from functools import reduce
from itertools import zip_longest
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column

DELAYED_SERIES = "pulsar_subscription_delayed"

_BLOCKED_FIRST = 1e15
"""More messages than any subscription has: blocked ones come before all that are only slow."""

SIGNS = ("ack_holes", "unacked", "backlog", "redelivery", "delayed")
"""Kinds of trouble, in the order in which they take their turns."""

_PARTITION = re.compile(r"(.+)-partition-\d+")


def base_of(topic: str) -> str:
    """The topic that a partition is of; any other topic itself."""
    match = _PARTITION.fullmatch(topic)
    return match[1] if match else topic


def suspects(subscriptions: DataFrame, metrics: DataFrame, most: int) -> list[str]:
    """Full names of persistent topics, the worst first; Pulsar's own topics and those of heartbeats are left out.

    Args:
        subscriptions: The table `subscriptions`.
        metrics: The table `metrics`.
        most: Topics, at most.
    """
    if not most:
        return []
    worst = [_worst(frame, sign, most) for sign, frame in _scored(subscriptions, metrics).items()]
    rows = reduce(DataFrame.unionByName, worst).collect()
    found = {sign: sorted((-row["score"], row["topic"]) for row in rows if row["sign"] == sign) for sign in SIGNS}
    return in_turn([[topic for _, topic in found[sign]] for sign in SIGNS], most)


def in_turn(lists: Iterable[Sequence[str]], most: int) -> list[str]:
    """The first of each list, then the second of each, and so on, each name once."""
    names = (name for names in zip_longest(*lists) for name in names if name is not None)
    return list(dict.fromkeys(names))[:most]


def _scored(subscriptions: DataFrame, metrics: DataFrame) -> dict[str, DataFrame]:
    """By sign, `topic` and `score` of what may show it."""
    blocked = F.col("blocked_on_unacked") | (F.col("consumers_blocked") > 0)
    scores = {
        "ack_holes": F.col("ack_holes"),
        "unacked": F.col("unacked_messages") + F.when(blocked, _BLOCKED_FIRST).otherwise(0),
        "backlog": F.col("backlog_messages"),
        "redelivery": F.col("redeliver_rate"),
    }
    delayed = metrics.where((F.col("series") == DELAYED_SERIES) & F.col("topic").isNotNull())
    return {
        **{sign: subscriptions.select("topic", score.alias("score")) for sign, score in scores.items()},
        "delayed": delayed.select("topic", F.col("value").alias("score")),
    }


def _worst(scored: DataFrame, sign: str, most: int) -> DataFrame:
    """The topics with the highest scores: Spark keeps so many of each task, and sorts no more than these."""
    ours = F.col("topic").startswith("persistent://") & ~_pulsars_own(F.col("topic"))
    of_topic = scored.where((F.col("score") > 0) & ours).groupBy("topic")
    best = of_topic.agg(F.max("score").cast("double").alias("score")).orderBy(F.desc("score"), "topic").limit(most)
    return best.select(F.lit(sign).alias("sign"), "topic", "score")


def _pulsars_own(topic: Column) -> Column:
    return topic.startswith("persistent://pulsar/") | topic.rlike("^persistent://[^/]+/[^/]+/__")
