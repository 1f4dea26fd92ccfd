"""Which settings of brokers are kept."""

from __future__ import annotations

import re

from lab.simulator.brokers import default_configuration
from pulsar_steward.collect.broker_responses import KEPT, kept

SINCE_4_2 = {"loadBalancerSheddingExcludedNamespaces"}
SECRET = re.compile(r"(?i)pass|token|secret|credential|auth|param|key(store|file|path)|private|sasl|url|path|file")


def test_no_setting_that_may_hold_a_secret_is_kept() -> None:
    """Settings whose name suggests a secret are not kept."""
    assert [key for key in KEPT if SECRET.search(key)] == []


def test_of_a_broker_that_tells_its_passwords_none_is_kept() -> None:
    """The kept settings hold no secret, although every setting that is not on the list contains one."""
    told = {key: value if key in KEPT else "s3cr3t" for key, value in default_configuration().items()}
    told |= {"brokerClientAuthenticationParameters": "token:s3cr3t", "managedLedgerPassword": "s3cr3t"}

    found = kept(told)

    assert not [value for value in found.values() if "s3cr3t" in value]
    assert found.keys() <= KEPT


def test_the_names_are_those_of_a_real_broker() -> None:
    """Every kept setting is one that a broker of 4.0.7 has, except for a setting that was added in 4.2."""
    assert kept(default_configuration()) == {key: default_configuration()[key] for key in sorted(KEPT - SINCE_4_2)}
