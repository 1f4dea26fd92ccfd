"""Quotas, retention and time to live of each namespace: what it sets itself goes before the brokers' defaults.

Read off namespace documents of Pulsar 4.0.7: `backlog_quota_map` is `{}` where nothing is set, `retention_policies` and
`message_ttl_in_seconds` are absent then. A quota of one kind replaces the default of that kind only. Of a quota of kind
`destination_storage` the broker looks at `limitSize` alone, of `message_age` at `limitTime` alone. A size limit under 0
is none, and one of 0 is exceeded by an empty topic; an age limit of 0 or under is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

from steward_spark.checks.backlog._defaults import defaults_of
from steward_spark.frames import few_once

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from steward_spark.checks.backlog._defaults import Defaults
    from steward_spark.frames import Frames

_QUOTA = "struct<limit: bigint, limitSize: bigint, limitTime: bigint, policy: string>"
QUOTA_MAP = f"destination_storage {_QUOTA}, message_age {_QUOTA}"
RETENTION = "retentionTimeInMinutes bigint, retentionSizeInMB bigint"
_DOCUMENT = (
    f"backlog_quota_map struct<destination_storage: {_QUOTA}, message_age: {_QUOTA}>,"
    " retention_policies struct<retentionTimeInMinutes: bigint, retentionSizeInMB: bigint>,"
    " message_ttl_in_seconds bigint, offload_threshold bigint, offload_threshold_in_seconds bigint,"
    " offload_policies struct<managedLedgerOffloadDriver: string>"
)

NO_LIMIT = -1
"""As Pulsar writes it."""

PULSARS_OWN = "pulsar"
"""The tenant of heartbeats and system namespaces."""


def namespace_policies(namespaces: DataFrame, defaults: Defaults) -> DataFrame:
    """What is in force in each namespace that is not Pulsar's own.

    Returns:
        `namespace`; `limit_bytes` (under 0: none), `bytes_policy`, `limit_seconds` (0 or under: none),
        `seconds_policy`, `retention_minutes` and `retention_megabytes` (-1: unlimited, 0: nothing is retained),
        `ttl_seconds` (0: none), each null where it is not known; `bytes_own`, `seconds_own`, `retention_own` and
        `ttl_own`, whether the namespace sets it itself; `offloaded`, whether it is set to offload old ledgers.
    """
    read = namespaces.where(F.col("policies_json").isNotNull() & ~F.col("namespace").startswith(f"{PULSARS_OWN}/"))
    document = read.select("namespace", F.from_json("policies_json", _DOCUMENT).alias("own"))
    retention = F.col("own.retention_policies")
    size, age = F.col("own.backlog_quota_map.destination_storage"), F.col("own.backlog_quota_map.message_age")
    return document.select(
        "namespace",
        _own_or(size, size_limit(size), defaults.limit_bytes).alias("limit_bytes"),
        _own_or(size, size["policy"], defaults.policy, "string").alias("bytes_policy"),
        _own_or(age, age_limit(age), defaults.limit_seconds).alias("limit_seconds"),
        _own_or(age, age["policy"], defaults.policy, "string").alias("seconds_policy"),
        _own_or(retention, retention["retentionTimeInMinutes"], defaults.retention_minutes).alias("retention_minutes"),
        _own_or(retention, retention["retentionSizeInMB"], defaults.retention_megabytes).alias("retention_megabytes"),
        F.coalesce("own.message_ttl_in_seconds", F.lit(defaults.ttl_seconds).cast("bigint")).alias("ttl_seconds"),
        size.isNotNull().alias("bytes_own"),
        age.isNotNull().alias("seconds_own"),
        retention.isNotNull().alias("retention_own"),
        F.col("own.message_ttl_in_seconds").isNotNull().alias("ttl_own"),
        _offloaded().alias("offloaded"),
    )


@few_once
def policies_of(frames: Frames) -> DataFrame:
    """`namespace_policies` of a snapshot."""
    return namespace_policies(frames.namespaces, defaults_of(frames))


def size_limit(quota: Column) -> Column:
    """The bytes of a quota; brokers before 2.8 called them `limit`."""
    return F.coalesce(quota["limitSize"], quota["limit"], F.lit(NO_LIMIT))


def age_limit(quota: Column) -> Column:
    """The seconds of a quota."""
    return F.coalesce(quota["limitTime"], F.lit(NO_LIMIT))


def _own_or(owner: Column, value: Column, default: int | str | None, kind: str = "bigint") -> Column:
    return F.when(owner.isNotNull(), value).otherwise(F.lit(default).cast(kind))


def _offloaded() -> Column:
    by_size = F.coalesce(F.col("own.offload_threshold") >= 0, F.expr("false"))
    by_time = F.coalesce(F.col("own.offload_threshold_in_seconds") > 0, F.expr("false"))
    return by_size | by_time | F.col("own.offload_policies.managedLedgerOffloadDriver").isNotNull()
