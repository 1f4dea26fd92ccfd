"""Clients that come and go: topics whose clients are mostly new, and brokers whose connections do not last.

One snapshot cannot tell a deployment from clients that reconnect for ever: that a finding stands in the next one does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from pulsar_steward.model.catalog.clients import CONNECTION_CHURN
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import MOST_FINDINGS, Check, Judgement
from steward_spark.checks.clients._connections import SERIES, connections
from steward_spark.checks.clients._users import nothing_read
from steward_spark.checks.common.listing import worst
from steward_spark.checks.common.owners import of_topics
from steward_spark.checks.common.topics import of_users
from steward_spark.checks.common.words import duration
from steward_spark.checks.common.worst import named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames

_RANKED = (Severity.INFO, Severity.WARNING, Severity.CRITICAL)


def young_after(policy: Policy) -> int:
    """Seconds after a start during which clients are naturally new."""
    return 2 * 60 * policy.collect.recent_minutes


def new_clients(frames: Frames, policy: Policy) -> DataFrame:
    """Topics of brokers that did not just start, most of whose clients connected recently.

    Only where some client is older it is sure that the topic was not just loaded, which makes all of them new.

    Returns:
        `topic`, `broker`, `clients`, `recent`, `busiest` (a subscription; null where no consumer is new),
        `settled` (some are older) and `rank`.
    """
    limits = policy.connection_churn
    large = frames.few(_large(frames, limits.minimum_clients))
    consumers = frames.few(
        of_topics(frames.subscriptions.where("consumers_connected_recently > 0"), large)
        .groupBy("topic")
        .agg(
            F.sum("consumers_connected_recently").alias("new_consumers"),
            F.max(F.struct("consumers_connected_recently", "subscription")).alias("most"),
        )
    )
    young = connections(frames).where(F.col("uptime_seconds") < young_after(policy)).select("broker")
    old = large.join(F.broadcast(young), "broker", "left_anti").join(consumers, "topic", "left")
    counted = old.withColumn("recent", F.expr("new_producers + coalesce(new_consumers, 0)"))
    settled = F.col("recent") < F.col("clients")
    rank = F.when(~settled, 0).when(F.col("recent") >= limits.critical_recent_clients, 2).otherwise(1).alias("rank")
    most = F.col("recent") * 100 >= F.col("clients") * limits.warning_recent_percent
    columns = ("topic", "broker", "clients", "recent", F.col("most.subscription").alias("busiest"))
    return counted.where(most).select(*columns, settled.alias("settled"), rank)


def _large(frames: Frames, minimum_clients: int) -> DataFrame:
    """Topics with so many clients: `topic`, `broker`, `clients` and `new_producers`."""
    counted = frames.topics.select(
        "topic",
        "broker",
        F.expr("coalesce(producers, 0) + coalesce(consumers, 0)").alias("clients"),
        F.coalesce("producers_connected_recently", F.lit(0)).alias("new_producers"),
    )
    return of_users(counted.where(F.col("clients") >= minimum_clients))


def short_lived(brokers: DataFrame, policy: Policy) -> DataFrame:
    """Brokers, not just started, whose connections were replaced too often on average since they started."""
    limits = policy.connection_churn
    often = F.col("turnovers_per_hour") >= limits.warning_turnovers_per_hour
    many = F.col("replaced_per_minute") >= limits.minimum_replaced_per_minute
    return brokers.where(often & many & (F.col("uptime_seconds") >= young_after(policy)))


def _judge(frames: Frames, policy: Policy) -> Judgement:
    brokers = connections(frames)
    churning, more_brokers = worst(short_lived(brokers, policy), F.desc("turnovers_per_hour"), F.asc("broker"))
    topics, more_topics = worst(new_clients(frames, policy), F.desc("rank"), F.desc("recent"), F.asc("topic"))
    minutes = policy.collect.recent_minutes
    found = [_of_broker(row) for row in churning] + [_of_topic(row, minutes) for row in topics]
    found.sort(key=lambda finding: -finding.severity.rank)
    return Judgement(
        findings=tuple(found[:MOST_FINDINGS]),
        more=more_brokers + more_topics + max(0, len(found) - MOST_FINDINGS),
        quiet="Clients stay: on no larger topic are most of them new, and no broker's connections are short.",
        cannot_tell=None if found else nothing_read(frames) or _missing(brokers),
    )


def _missing(brokers: DataFrame) -> str | None:
    silent = brokers.where("uptime_seconds is null or active is null or succeeded is null").select("broker").collect()
    if not silent:
        return None
    names = named(sorted(row["broker"] for row in silent))
    return f"On no larger topic are most clients new; but {', '.join(SERIES)} are not in the snapshot for {names}."


def _of_topic(row: Row, recent_minutes: int) -> Finding:
    share = f"{row['recent']:,} of the {row['clients']:,} clients of {row['topic']} on {row['broker']}"
    most = f", most of the consumers in subscription {row['busiest']}" if row["busiest"] is not None else ""
    doubt = (
        "others are older, so it was not just loaded; a deployment would look the same"
        if row["settled"]
        else "none is older, as when it was just loaded or moved"
    )
    return Finding(
        check_id=CONNECTION_CHURN.check_id,
        severity=_RANKED[row["rank"]],
        subject=row["topic"],
        evidence=f"{share} connected in the last {recent_minutes} min{most}; {doubt}.",
        figures={"clients": row["clients"], "clients_connected_recently": row["recent"]},
    )


def _of_broker(row: Row) -> Finding:
    failed = f"; {row['failed']:,.0f} handshakes failed" if row["failed"] else ""
    return Finding(
        check_id=CONNECTION_CHURN.check_id,
        severity=Severity.WARNING,
        subject=row["broker"],
        evidence=(
            f"Broker {row['broker']} has {row['active']:,.0f} connections, and {row['replaced']:,.0f} others came and"
            f" went in the {duration(row['uptime_seconds'])} since it started: {row['replaced_per_minute']:,.0f} a"
            f" minute, all of them {row['turnovers_per_hour']:,.1f} times an hour{failed}."
        ),
        figures={
            "connections_active": int(row["active"]),
            "connections_failed": int(row["failed"]),
            "connections_replaced": int(row["replaced"]),
            "uptime_seconds": int(row["uptime_seconds"]),
        },
    )


CHECK = Check(CONNECTION_CHURN, _judge)
