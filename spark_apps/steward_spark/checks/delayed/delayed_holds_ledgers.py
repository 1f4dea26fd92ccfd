"""Few delayed messages that keep many consumed entries stored: ledgers are deleted from the front only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.delayed import DELAYED_HOLDS_LEDGERS
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import Check, Judgement
from steward_spark.checks.common.listing import worst
from steward_spark.checks.common.owners import of_topics
from steward_spark.checks.common.words import duration, size
from steward_spark.checks.delayed._waiting import backlog_ages, delayed_messages, gap, tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.checks.delayed import DelayedHoldsLedgersPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames

MIB = 1024 * 1024

_KEYS = ["topic", "subscription"]


def holding(frames: Frames, policy: DelayedHoldsLedgersPolicy) -> DataFrame:
    """Topics in which most of what a subscription's cursor spans is consumed, and kept all the same.

    Of the bytes from the first message that is not acknowledged on, the backlog explains as many as its share of the
    entries there; an entry holds one message or more, so what is held is rather more than this.

    Returns:
        `topic`, `storage_bytes`, `held_bytes`, and of the subscription that holds most `subscription`,
        `delayed_messages`, `backlog_messages`, `entries`.
    """
    entries, backlog = F.col("entries"), F.col("backlog_messages")
    held = F.floor(F.col("backlog_bytes") * (F.lit(1.0) - backlog / entries)).cast("bigint")
    least = policy.warning_held_mebibytes * MIB
    # Few topics have backlog enough: neither all cursors nor all delayed messages are joined with anything.
    sizes = frames.few(
        frames.topics.where(F.col("backlog_bytes") >= least).select("topic", "storage_bytes", "backlog_bytes")
    )
    cursors = frames.subscriptions.select(
        "topic", "subscription", "backlog_messages", F.col("entries_since_first_gap").alias("entries")
    )
    spanning = (entries > 0) & (entries >= policy.warning_entries_per_backlog_message * backlog)
    spans = frames.few(of_topics(cursors.where(spanning), sizes))
    delayed = of_topics(delayed_messages(frames), spans)
    found = (
        delayed.join(spans, _KEYS)
        .join(sizes, "topic")
        .withColumn("held_bytes", held)
        .where(F.col("held_bytes") >= least)
    )
    most = F.max_by(
        F.struct("subscription", "delayed_messages", "backlog_messages", "entries"),
        F.struct("held_bytes", "delayed_messages", "subscription"),
    )
    return (
        found.groupBy("topic", "storage_bytes")
        .agg(F.max("held_bytes").alias("held_bytes"), most.alias("most"))
        .select("topic", "storage_bytes", "held_bytes", "most.*")
    )


def _judge(frames: Frames, policy: Policy) -> Judgement:
    found = frames.few(holding(frames, policy.delayed_holds_ledgers))
    ledgers = frames.drilled.groupBy("topic").agg(F.max("ledgers").alias("ledgers"))
    described = found.join(ledgers, "topic", "left").join(backlog_ages(frames, found), "topic", "left")
    rows, more = worst(described, F.desc("held_bytes"), F.asc("topic"))
    if rows:
        return Judgement(findings=tuple(_finding(row, policy.delayed_holds_ledgers) for row in rows), more=more)
    unknown = gap(frames) or _unknown_spans(frames)
    if unknown:
        return Judgement(cannot_tell=unknown)
    subscriptions, messages = tally(frames)
    return Judgement(
        quiet=f"The {messages:,} delayed messages of {subscriptions:,} subscriptions keep little else from deletion."
    )


def _unknown_spans(frames: Frames) -> str | None:
    read = frames.subscriptions.where("entries_since_first_gap is not null and backlog_messages is not null")
    sized = frames.topics.where("backlog_bytes is not null").select("topic")
    known = delayed_messages(frames).join(read.select(*_KEYS), _KEYS, "left_semi").join(sized, "topic", "left_semi")
    count = tally(frames)[0] - known.count()
    if not count:
        return None
    return f"What the cursors of {count:,} subscriptions with delayed messages span was not read."


def _finding(row: Row, policy: DelayedHoldsLedgersPolicy) -> Finding:
    critical = row["held_bytes"] >= policy.critical_held_mebibytes * MIB
    words = (
        f"Subscription {row['subscription']} waits for {row['backlog_messages']:,} messages"
        f" ({row['delayed_messages']:,} delayed), but {row['entries']:,} entries follow its first unacknowledged one:"
        f" about {size(row['held_bytes'])} of {size(row['storage_bytes'])} stored are consumed and cannot be deleted"
    )
    figures = {
        "backlog_messages": row["backlog_messages"],
        "delayed_messages": row["delayed_messages"],
        "entries_since_first_gap": row["entries"],
        "held_bytes": row["held_bytes"],
        "storage_bytes": row["storage_bytes"],
    }
    if row["ledgers"] is not None:
        words += f"; the topic has {row['ledgers']:,} ledgers"
        figures["ledgers"] = row["ledgers"]
    if row["age_seconds"] is not None:
        words += f"; its oldest message waits for {duration(row['age_seconds'])}"
        figures["oldest_backlog_age_seconds"] = row["age_seconds"]
    return Finding(
        check_id=DELAYED_HOLDS_LEDGERS.check_id,
        severity=Severity.CRITICAL if critical else Severity.WARNING,
        subject=row["topic"],
        evidence=words + ".",
        figures=figures,
    )


CHECK = Check(DELAYED_HOLDS_LEDGERS, _judge)
