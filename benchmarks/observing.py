"""One look at a cluster as Steward takes it, `collect` and then `diagnose`, in a Spark session that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import SecretStr

from pulsar_steward.admin.settings import AdminSettings
from steward_spark.checks.registry import CHECKS
from steward_spark.collecting import Order, collect
from steward_spark.diagnosing import diagnose

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lab.target import PulsarTarget
    from pulsar_steward.policy.schema import Policy

SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""A lab's tables are small: to compile a query takes longer than to interpret it (measured: 35 s of CPU against 21)."""


def for_small_tables(spark: SparkSession) -> SparkSession:
    """A session on the same Spark whose queries start sooner; the given one stays as it is."""
    session = spark.newSession()
    for key, value in SMALL.items():
        session.conf.set(key, value)
    return session


def settings_of(target: PulsarTarget, policy: Policy) -> AdminSettings:
    """How Steward reaches a cluster, with the token that it asks for."""
    token = SecretStr(target.token) if target.token else None
    return AdminSettings(urls=target.admin_urls, token=token, limits=policy.admin)


def observe(
    spark: SparkSession,
    target: PulsarTarget,
    policy: Policy,
    *,
    cluster: str,
    out: Path,
    taken_at: datetime,
    checks: Collection[str] = (),
) -> str:
    """Takes a snapshot, diagnoses it, and returns its URI.

    Args:
        spark: The session that both jobs run in.
        target: The cluster.
        policy: Thresholds and limits.
        cluster: Its name in Steward's connections; snapshots of that name are its past.
        out: The folder of snapshots.
        taken_at: When it counts as taken, with its time zone.
        checks: Ids of those to run; all of them by default.
    """
    chosen = [check for check in CHECKS if not checks or check.info.check_id in checks]
    order = Order(cluster=cluster, out=str(out), taken_at=taken_at, policy=policy.collect)
    return diagnose(spark, collect(spark, settings_of(target, policy), order), policy, chosen)
