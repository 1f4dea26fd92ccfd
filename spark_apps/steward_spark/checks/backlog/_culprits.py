"""Who holds a topic's backlog: its slowest subscription and that one's worst consumer, for the topics listed only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Row

    from steward_spark.frames import Frames


_BETWEEN = "\n"


@dataclass(frozen=True)
class Culprit:
    """The subscription that holds a topic's backlog, and its worst consumer as far as it was looked at."""

    subscription: str
    messages: int
    consumers: int
    consumer: str | None = None

    def __str__(self) -> str:
        """A clause, such as ``slowest is subscription s with 12 messages; no consumer is connected to it``."""
        words = f"slowest is subscription {self.subscription} with {self.messages:,} messages"
        if self.consumers == 0:
            return f"{words}; no consumer is connected to it"
        return f"{words}; of its {self.consumers:,} consumers, {self.consumer}" if self.consumer else words


def culprits(frames: Frames, rows: Sequence[Row]) -> dict[str, Culprit]:
    """By topic, for rows with `topic` and `slowest_subscription` (null: the one with the largest backlog counts)."""
    if not rows:
        return {}
    topics = [row["topic"] for row in rows]
    told = [_key(row["topic"], row["slowest_subscription"]) for row in rows if row["slowest_subscription"]]
    wanted = frames.subscriptions.where(F.col("topic").isin(topics)).fillna(0, ["backlog_messages", "consumers"])
    is_told = F.concat_ws(_BETWEEN, "topic", "subscription").isin(told) if told else F.expr("false")
    order = F.struct(is_told, "backlog_messages", "subscription")
    slowest = wanted.groupBy("topic").agg(
        F.max_by(F.struct("subscription", "backlog_messages", "consumers"), order).alias("worst")
    )
    found = {
        row["topic"]: Culprit(row["subscription"], row["backlog_messages"], row["consumers"])
        for row in slowest.select("topic", "worst.*").collect()
    }
    consumers = _worst_consumers(frames, list(found))
    return {
        topic: Culprit(each.subscription, each.messages, each.consumers, consumers.get((topic, each.subscription)))
        for topic, each in found.items()
    }


def _key(topic: str, subscription: str) -> str:
    return f"{topic}{_BETWEEN}{subscription}"


def _worst_consumers(frames: Frames, topics: list[str]) -> dict[tuple[str, str], str]:
    """The consumer with the most unacknowledged messages by topic and subscription, in words."""
    rows = frames.clients.where(F.col("topic").isin(topics)).fillna(0, ["unacked_messages"])
    worst = F.max_by(
        F.struct("consumer", "address", "connected_since", "unacked_messages", "blocked"),
        F.struct("unacked_messages", "consumer", "address"),
    )
    each = rows.groupBy("topic", "subscription").agg(worst.alias("worst")).select("topic", "subscription", "worst.*")
    return {(row["topic"], row["subscription"]): _in_words(row) for row in each.collect()}


def _in_words(row: Row) -> str:
    since = f", connected since {row['connected_since']}," if row["connected_since"] else ""
    blocked = ", blocked" if row["blocked"] else ""
    return (
        f"{row['consumer'] or '(without a name)'} at {row['address'] or '(address not told)'}{since}"
        f" holds {row['unacked_messages']:,} unacknowledged{blocked}"
    )
