"""The labels of simulated faults: what is expected exists, and no check is left without trouble to find."""

import pytest

from lab.faults.fault import SimulatedFault
from lab.faults.simulated import FAULTS
from pulsar_steward.checks.registry import BY_ID

IDS = BY_ID.keys()
NOT_TO_BE_HAD_FOR_REAL = {
    *("backlog-growing", "bookie-thread-busy", "broker-load-skew", "bundle-flapping", "client-versions"),
    *("clock-skew", "cluster-placement", "connection-churn", "consumer-fanout", "cursor-not-persistable"),
    *("delayed-bucket-count", "delayed-holds-ledgers", "delayed-index-memory", "delayed-index-multiplied"),
    *("direct-memory-pressure", "failover-time", "gc-pressure", "hot-bundle", "io-threads-stuck"),
    *("ledger-switch-slow", "metadata-latency", "partition-ceiling", "publish-slow", "quota-stuck"),
    *("zookeeper-slow",),
}


@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.name) for fault in FAULTS])
def test_a_label_names_checks_that_exist(fault: SimulatedFault) -> None:
    expected = {each.check_id for each in fault.expected}
    assert expected | fault.allowed.keys() <= IDS
    assert not expected & fault.allowed.keys()
    assert fault.why
    assert all(fault.allowed.values())
    assert len(fault.specs) <= fault.observations
    assert len(fault.servers) <= fault.observations


def test_every_check_that_needs_a_made_up_cluster_has_one() -> None:
    """Simulated faults cover every check that real brokers on a small machine cannot be brought to."""
    assert {each.check_id for fault in FAULTS for each in fault.expected} >= NOT_TO_BE_HAD_FOR_REAL


def test_some_clusters_are_well() -> None:
    """At least three simulated clusters have nothing to find, so that a check that always finds something fails."""
    assert sum(not fault.expected for fault in FAULTS) >= 3
