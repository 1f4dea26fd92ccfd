"""Brokers' defaults where nothing is set: one reading for the planners, the guards and the check-up."""

from __future__ import annotations

import pytest

from pulsar_steward.model.broker_defaults import KEYS, BrokerDefaults, broker_defaults
from pulsar_steward.model.setting import (
    BacklogQuota,
    DelayedDelivery,
    Persistence,
    QuotaPolicy,
    Retention,
    SettingName,
    TimeToLive,
)
from pulsar_steward.pulsar.own_settings import defaults_in

TOLD = {
    "backlogQuotaDefaultLimitGB": "2.5",
    "backlogQuotaDefaultLimitBytes": "700",
    "backlogQuotaDefaultLimitSecond": "60",
    "backlogQuotaDefaultRetentionPolicy": "producer_exception",
    "defaultRetentionTimeInMinutes": "-1",
    "defaultRetentionSizeInMB": "10",
    "ttlDurationDefaultInSeconds": " 3600 ",
    "delayedDeliveryEnabled": "true",
    "delayedDeliveryTickTimeMillis": "1000",
    "delayedDeliveryMaxDelayInMillis": "60000",
    "brokerServiceCompactionThresholdInBytes": "4096",
    "managedLedgerDefaultEnsembleSize": "3",
    "managedLedgerDefaultWriteQuorum": "2",
    "managedLedgerDefaultAckQuorum": "2",
    "managedLedgerDefaultMarkDeleteRateLimit": "0.1",
}


def test_what_is_told() -> None:
    """All defaults are read, and a size in gigabytes above 0 takes precedence over the one in bytes."""
    assert set(TOLD) == set(KEYS)
    assert broker_defaults(TOLD) == BrokerDefaults(
        limit_bytes=5 << 29,
        limit_seconds=60,
        policy="producer_exception",
        retention_minutes=-1,
        retention_megabytes=10,
        ttl_seconds=3600,
        delays_messages=True,
        delay_tick_milliseconds=1000,
        longest_delay_milliseconds=60_000,
        compaction_bytes=4096,
        ensemble=3,
        write_quorum=2,
        ack_quorum=2,
        cursor_writes_per_second=0.1,
    )
    assert broker_defaults({**TOLD, "backlogQuotaDefaultLimitGB": "0"}).limit_bytes == 700


@pytest.mark.parametrize("value", ["", "much", "nan", "inf", "1e300", str(1 << 63)])
def test_what_is_no_number_is_not_known(value: str) -> None:
    """A default that is not a usable number is read as if the broker did not report it."""
    numbers = [key for key in KEYS if key != "backlogQuotaDefaultRetentionPolicy"]
    assert broker_defaults(dict.fromkeys(numbers, value)) == BrokerDefaults() == broker_defaults({})


def test_as_settings() -> None:
    """Brokers' defaults are returned as settings, and those that mean no limit are left out."""
    policy = QuotaPolicy.REFUSE
    assert defaults_in(TOLD) == {
        SettingName.SIZE_QUOTA: BacklogQuota(limit_bytes=5 << 29, policy=policy),
        SettingName.AGE_QUOTA: BacklogQuota(limit_seconds=60, policy=policy),
        SettingName.RETENTION: Retention(minutes=-1, megabytes=10),
        SettingName.TTL: TimeToLive(seconds=3600),
        SettingName.DELAYED_DELIVERY: DelayedDelivery(active=True, tick_milliseconds=1000, longest_milliseconds=60_000),
        SettingName.PERSISTENCE: Persistence.of((3, 2, 2), 0.1),
    }
    assert defaults_in({**dict.fromkeys(KEYS, "0"), "backlogQuotaDefaultRetentionPolicy": policy}) == {}
