"""Defaults of brokers for quota, retention, expiry, delays and ledgers, read from the keys of their configuration.

The checks read the same keys in SQL (`pulsar_steward.checks.backlog.policies`), by the constants here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.units import GIB

if TYPE_CHECKING:
    from collections.abc import Mapping

QUOTA_GIGABYTES = "backlogQuotaDefaultLimitGB"
"""The size quota in GiB; above 0 it goes before `QUOTA_BYTES`."""
QUOTA_BYTES = "backlogQuotaDefaultLimitBytes"
QUOTA_SECONDS = "backlogQuotaDefaultLimitSecond"
QUOTA_POLICY = "backlogQuotaDefaultRetentionPolicy"
RETENTION_MINUTES = "defaultRetentionTimeInMinutes"
RETENTION_MEGABYTES = "defaultRetentionSizeInMB"
TTL_SECONDS = "ttlDurationDefaultInSeconds"
DELAYS_MESSAGES = "delayedDeliveryEnabled"
DELAY_TICK = "delayedDeliveryTickTimeMillis"
LONGEST_DELAY = "delayedDeliveryMaxDelayInMillis"
COMPACTION_BYTES = "brokerServiceCompactionThresholdInBytes"
DEDUPLICATED = "brokerDeduplicationEnabled"
OFFLOAD_DRIVER = "managedLedgerOffloadDriver"
ENSEMBLE = "managedLedgerDefaultEnsembleSize"
WRITE_QUORUM = "managedLedgerDefaultWriteQuorum"
ACK_QUORUM = "managedLedgerDefaultAckQuorum"
CURSOR_WRITES = "managedLedgerDefaultMarkDeleteRateLimit"

KEYS = (
    QUOTA_GIGABYTES,
    QUOTA_BYTES,
    QUOTA_SECONDS,
    QUOTA_POLICY,
    RETENTION_MINUTES,
    RETENTION_MEGABYTES,
    TTL_SECONDS,
    DELAYS_MESSAGES,
    DELAY_TICK,
    LONGEST_DELAY,
    COMPACTION_BYTES,
    ENSEMBLE,
    WRITE_QUORUM,
    ACK_QUORUM,
    CURSOR_WRITES,
)

_TRUTHS = {"true": True, "false": False}
_MOST = 1 << 62
"""Largest number that is accepted: Pulsar stores a long, and could not use a larger one."""


class BrokerDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Defaults of a broker if nothing is set; None: not reported, or not a number.

    Attributes:
        limit_bytes: Size quota; under 0: none.
        limit_seconds: Age quota; 0 or under: none.
        policy: Effect of exceeding a quota, as the broker writes it.
        retention_minutes: Retention in time; -1: unlimited.
        retention_megabytes: Retention in size; -1: unlimited. Both 0: nothing is retained.
        ttl_seconds: Time to live; 0: none.
        delays_messages: True if a delayed message waits until it is due.
        delay_tick_milliseconds: Precision of the delivery time.
        longest_delay_milliseconds: Maximum delay that is accepted; 0: any.
        compaction_bytes: Backlog of a topic from which it is compacted; 0: never.
        ensemble: Bookies that a new ledger is spread over.
        write_quorum: Copies of each entry.
        ack_quorum: Copies that have to be written before an entry counts as stored.
        cursor_writes_per_second: Most writes of a cursor; 0 or under: each acknowledgement.
    """

    limit_bytes: int | None = None
    limit_seconds: int | None = None
    policy: str | None = None
    retention_minutes: int | None = None
    retention_megabytes: int | None = None
    ttl_seconds: int | None = None
    delays_messages: bool | None = None
    delay_tick_milliseconds: int | None = None
    longest_delay_milliseconds: int | None = None
    compaction_bytes: int | None = None
    ensemble: int | None = None
    write_quorum: int | None = None
    ack_quorum: int | None = None
    cursor_writes_per_second: float | None = None


def broker_defaults(configuration: Mapping[str, str]) -> BrokerDefaults:
    """The defaults of a broker with this configuration."""
    gigabytes = _number(configuration, QUOTA_GIGABYTES) or 0
    return BrokerDefaults(
        limit_bytes=_whole(gigabytes * GIB if gigabytes > 0 else _number(configuration, QUOTA_BYTES)),
        limit_seconds=_whole(_number(configuration, QUOTA_SECONDS)),
        policy=configuration.get(QUOTA_POLICY),
        retention_minutes=_whole(_number(configuration, RETENTION_MINUTES)),
        retention_megabytes=_whole(_number(configuration, RETENTION_MEGABYTES)),
        ttl_seconds=_whole(_number(configuration, TTL_SECONDS)),
        delays_messages=_TRUTHS.get(configuration.get(DELAYS_MESSAGES, "")),
        delay_tick_milliseconds=_whole(_number(configuration, DELAY_TICK)),
        longest_delay_milliseconds=_whole(_number(configuration, LONGEST_DELAY)),
        compaction_bytes=_whole(_number(configuration, COMPACTION_BYTES)),
        ensemble=_whole(_number(configuration, ENSEMBLE)),
        write_quorum=_whole(_number(configuration, WRITE_QUORUM)),
        ack_quorum=_whole(_number(configuration, ACK_QUORUM)),
        cursor_writes_per_second=_usable(_number(configuration, CURSOR_WRITES)),
    )


def _number(configuration: Mapping[str, str], key: str) -> float | None:
    try:
        return float(configuration[key])
    except (KeyError, ValueError):
        return None


def _usable(number: float | None) -> float | None:
    return number if number is not None and abs(number) <= _MOST else None


def _whole(number: float | None) -> int | None:
    usable = _usable(number)
    return None if usable is None else int(usable)


EXTENSIBLE = "ExtensibleLoadManagerImpl"
HISTORY = "pulsar_lb_resource_usage"
"""Metric that `ExtensibleLoadManagerImpl` compares: with the label ``feature="max_ema"``, averaged over time."""

CPU = "pulsar_lb_cpu_usage"
"""Metric of a broker's CPU usage, in percent."""

DIRECT_MEMORY = "pulsar_lb_directMemory_usage"
"""Metric of a broker's usage of direct memory, in percent."""

RESOURCES = {
    CPU: "loadBalancerCPUResourceWeight",
    "pulsar_lb_memory_usage": "loadBalancerMemoryResourceWeight",
    DIRECT_MEMORY: "loadBalancerDirectMemoryResourceWeight",
    "pulsar_lb_bandwidth_in_usage": "loadBalancerBandwidthInResourceWeight",
    "pulsar_lb_bandwidth_out_usage": "loadBalancerBandwidthOutResourceWeight",
}
"""Metrics of a broker's resources, in percent, and the settings of their weights."""

THROUGHPUT = ("pulsar_broker_throughput_in", "pulsar_broker_throughput_out")

SERIES = (*RESOURCES, HISTORY, *THROUGHPUT)
"""Metrics from which a broker's usage is read."""

WEIGHTS = {
    "loadBalancerCPUResourceWeight": 1.0,
    "loadBalancerMemoryResourceWeight": 0.0,
    "loadBalancerDirectMemoryResourceWeight": 0.0,
    "loadBalancerBandwidthInResourceWeight": 1.0,
    "loadBalancerBandwidthOutResourceWeight": 1.0,
}
LIMITS = {
    "loadBalancerBrokerThresholdShedderPercentage": 10.0,
    "loadBalancerBundleUnloadMinThroughputThreshold": 10.0,
    "loadBalancerBrokerOverloadedThresholdPercentage": 85.0,
    "loadBalancerBrokerLoadTargetStd": 0.25,
}
SETTINGS = (
    "loadManagerClassName",
    "loadBalancerEnabled",
    "loadBalancerSheddingEnabled",
    "loadBalancerLoadSheddingStrategy",
    "loadBalancerSheddingExcludedNamespaces",
    "loadBalancerTransferEnabled",
    *WEIGHTS,
    *LIMITS,
)
"""Settings of brokers from which the load manager is read."""


def is_extensible(settings: Mapping[str, str]) -> bool:
    """True if a broker with these settings runs `ExtensibleLoadManagerImpl`."""
    return settings.get("loadManagerClassName", "").endswith(f".{EXTENSIBLE}")
