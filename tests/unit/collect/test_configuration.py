"""Which settings of brokers are kept."""

from __future__ import annotations

import re

import pytest

from lab.simulator.brokers import default_configuration
from pulsar_steward.collect.configuration import KEPT, kept

SECRET = re.compile(r"(?i)pass|token|secret|credential|auth|param|key(store|file|path)|private|sasl|url|path|file")


def test_no_setting_that_may_hold_a_secret_is_kept() -> None:
    """None of them is named like one."""
    assert [key for key in KEPT if SECRET.search(key)] == []


def test_of_a_broker_that_tells_its_passwords_none_is_kept() -> None:
    """Whatever a real broker tells, with a secret in every setting that is not on the list."""
    told = {key: value if key in KEPT else "s3cr3t" for key, value in default_configuration().items()}
    told |= {"brokerClientAuthenticationParameters": "token:s3cr3t", "managedLedgerPassword": "s3cr3t"}

    found = kept(told)

    assert not [value for value in found.values() if "s3cr3t" in value]
    assert found.keys() <= KEPT


@pytest.mark.parametrize(
    "key",
    [
        "backlogQuotaDefaultRetentionPolicy",
        "delayedDeliveryTrackerFactoryClassName",
        "managedLedgerMaxUnackedRangesToPersist",
        "maxUnackedMessagesPerConsumer",
        "metadataStoreSessionTimeoutMillis",
        "numIOThreads",
    ],
)
def test_what_checks_look_at_is_kept(key: str) -> None:
    """The names are those of a real 4.0.7 broker."""
    assert kept(default_configuration())[key] == default_configuration()[key]
