"""The slowest consumers of subscriptions in words, for the subscriptions that are listed only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Row

    from steward_spark.frames import Frames

Key = tuple[str, str]
"""Topic and subscription."""

MOST_NAMED = 3
"""Consumers that one sentence can name before nobody reads it."""

_BETWEEN = "\n"


def subject_of(row: Row) -> str:
    """What a finding about a subscription is about."""
    return f"{row['topic']} subscription {row['subscription']}"


def slowest(frames: Frames, rows: Sequence[Row]) -> dict[Key, str]:
    """By topic and subscription, for rows with both: blocked consumers first, then by what they hold, in words."""
    if not rows:
        return {}
    keys = [f"{row['topic']}{_BETWEEN}{row['subscription']}" for row in rows]
    each = F.struct(
        (~F.coalesce("blocked", F.lit(False))).alias("free"),
        (-F.coalesce("unacked_messages", F.lit(0))).alias("order"),
        F.coalesce("available_permits", F.lit(0)).alias("permits"),
        "consumer",
        "address",
        "connected_since",
        "unacked_messages",
    )
    topics = F.col("topic").isin(sorted({row["topic"] for row in rows}))
    wanted = frames.clients.where(topics & F.concat_ws(_BETWEEN, "topic", "subscription").isin(keys))
    worst = F.slice(F.sort_array(F.collect_list(each)), 1, MOST_NAMED).alias("worst")
    found = wanted.groupBy("topic", "subscription").agg(worst).collect()
    return {(row["topic"], row["subscription"]): "; ".join(map(_in_words, row["worst"])) for row in found}


def slowest_words(names: dict[Key, str], row: Row) -> str:
    """A clause about one of the rows that `slowest` was asked for, with its `consumers`."""
    if not row["consumers"]:
        return "no consumer is connected"
    words = names.get((row["topic"], row["subscription"]))
    if words is None:
        return f"which of its {row['consumers']:,} consumers is the slowest is not in the snapshot"
    whose = "its only consumer" if row["consumers"] == 1 else f"slowest of its {row['consumers']:,} consumers"
    return f"{whose}: {words}"


def _in_words(consumer: Row) -> str:
    held = consumer["unacked_messages"]
    facts = [
        f"connected since {consumer['connected_since']}" if consumer["connected_since"] else "",
        "" if held is None else f"{held:,} unacknowledged",
        "no permits left" if consumer["permits"] <= 0 else f"{consumer['permits']:,} permits left",
        "" if consumer["free"] else "blocked",
    ]
    name = consumer["consumer"] or "(without a name)"
    return f"{name} at {consumer['address'] or '(address not told)'} ({', '.join(fact for fact in facts if fact)})"
