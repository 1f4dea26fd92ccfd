"""The brokers' own load manager: what its settings say, what it compares, and when it would shed."""

from __future__ import annotations

import msgspec
import pytest

from pulsar_steward.facts.load_manager import (
    MANAGER_UNKNOWN,
    USAGES_UNKNOWN,
    BrokerUsage,
    BundleMove,
    LoadManager,
    after_move,
    load_manager_of,
    may_exchange,
    one_load_manager,
    usage_of,
    why_shed,
)
from pulsar_steward.facts.unknown import Unknown

IMPL = "org.apache.pulsar.broker.loadbalance.impl."
EXTENSIONS = "org.apache.pulsar.broker.loadbalance.extensions."
MODULAR = {
    "loadManagerClassName": f"{IMPL}ModularLoadManagerImpl",
    "loadBalancerEnabled": "true",
    "loadBalancerSheddingEnabled": "true",
    "loadBalancerLoadSheddingStrategy": f"{IMPL}ThresholdShedder",
}
EXTENSIBLE = MODULAR | {"loadManagerClassName": f"{EXTENSIONS}ExtensibleLoadManagerImpl"}
MIB = 1 << 20


def manager(**settings: str) -> LoadManager:
    found = load_manager_of(MODULAR | settings)
    assert isinstance(found, LoadManager)
    return found


def usages(*percents: float, flow: float = 100 * MIB) -> tuple[BrokerUsage, ...]:
    """Brokers a, b, c ... of these usages, all with the same throughput."""
    return tuple(
        BrokerUsage(broker=name, percent=percent, bytes=flow) for name, percent in zip("abc", percents, strict=False)
    )


def test_shedding_is_on_or_off() -> None:
    """Shedding is on only if both switches are on, and unknown if a broker reports no or invalid switches."""
    assert manager().sheds
    assert not manager(loadBalancerSheddingEnabled="false").sheds
    assert not manager(loadBalancerEnabled="false").sheds
    assert load_manager_of({}) == MANAGER_UNKNOWN
    assert load_manager_of(MODULAR | {"loadBalancerSheddingEnabled": "maybe"}) == MANAGER_UNKNOWN


def test_thresholds_are_the_brokers_own() -> None:
    """Thresholds come from the brokers' settings or Pulsar's defaults, and are unknown when one is no number."""
    found = manager(loadBalancerBrokerThresholdShedderPercentage="25")
    assert found.limits["loadBalancerBrokerThresholdShedderPercentage"] == 25
    assert found.limits["loadBalancerBrokerOverloadedThresholdPercentage"] == 85
    unreadable = load_manager_of(MODULAR | {"loadBalancerBrokerThresholdShedderPercentage": "much"})
    assert isinstance(unreadable, Unknown)


def test_the_extensible_manager_sheds_by_a_strategy_of_its_own() -> None:
    found = load_manager_of(EXTENSIBLE)
    assert isinstance(found, LoadManager)
    assert found.strategy.endswith(".TransferShedder")


def test_bundles_that_are_never_shed() -> None:
    assert not manager().sheds_from("pulsar/system")
    assert manager().sheds_from("shop/orders")
    excluded = load_manager_of(EXTENSIBLE | {"loadBalancerSheddingExcludedNamespaces": "[shop/orders, shop/bills]"})
    assert isinstance(excluded, LoadManager)
    assert [excluded.sheds_from(each) for each in ("shop/orders", "shop/bills", "shop/carts")] == [False, False, True]
    assert manager(loadBalancerLoadSheddingStrategy="org.acme.Shedder").sheds_from("pulsar/system")


def test_brokers_that_are_set_differently() -> None:
    assert one_load_manager([MODULAR, MODULAR]) == manager()
    assert isinstance(one_load_manager([MODULAR, MODULAR | {"loadBalancerSheddingEnabled": "false"}]), Unknown)
    assert one_load_manager([MODULAR, {}]) == MANAGER_UNKNOWN
    assert one_load_manager([]) == MANAGER_UNKNOWN


RESOURCES = [
    ("pulsar_lb_cpu_usage", "", 40.0),
    ("pulsar_lb_memory_usage", "", 90.0),
    ("pulsar_lb_directMemory_usage", "", 70.0),
    ("pulsar_lb_bandwidth_in_usage", "", 50.0),
    ("pulsar_lb_bandwidth_out_usage", "", -1.0),
]
FLOW = [("pulsar_broker_throughput_in", "", 1000.0), ("pulsar_broker_throughput_out", "", 2000.0)]
HISTORY = [("pulsar_lb_resource_usage", "max", 0.9), ("pulsar_lb_resource_usage", "max_ema", 0.35)]


def test_usage_is_the_most_used_resource_by_its_weight() -> None:
    assert usage_of("a", RESOURCES + FLOW, manager()) == BrokerUsage(broker="a", percent=50.0, bytes=3000.0)
    heavy = manager(loadBalancerMemoryResourceWeight="1.0")
    assert usage_of("a", RESOURCES + FLOW, heavy) == BrokerUsage(broker="a", percent=90.0, bytes=3000.0)
    overload = manager(loadBalancerLoadSheddingStrategy=f"{IMPL}OverloadShedder")
    assert usage_of("a", RESOURCES + FLOW, overload) == BrokerUsage(broker="a", percent=70.0, bytes=3000.0)


def test_the_extensible_manager_compares_its_own_average() -> None:
    found = load_manager_of(EXTENSIBLE)
    assert isinstance(found, LoadManager)
    assert usage_of("a", RESOURCES + FLOW + HISTORY, found) == BrokerUsage(broker="a", percent=35.0, bytes=3000.0)
    assert usage_of("a", RESOURCES + FLOW, found) is None


@pytest.mark.parametrize("missing", [RESOURCES[1:] + FLOW, RESOURCES + FLOW[1:], []])
def test_a_broker_that_tells_too_little(missing: list[tuple[str, str, float]]) -> None:
    assert usage_of("a", missing, manager()) is None


def test_a_move_carries_usage_along() -> None:
    before = usages(60.0, 10.0, 20.0)
    half = BundleMove(source="a", target="b", bytes=50 * MIB)
    assert [each.percent for each in after_move(before, half)] == [30.0, 40.0, 20.0]
    assert [each.bytes // MIB for each in after_move(before, half)] == [50, 150, 100]
    idle = after_move(usages(60.0, 10.0, flow=0.0), BundleMove(source="a", target="b", bytes=0.0))
    assert [each.percent for each in idle] == [60.0, 10.0]


def shed(found: LoadManager, there: tuple[BrokerUsage, ...], target: str = "c") -> bool:
    """True if it would take from the target."""
    why = why_shed(found, there, target)
    assert not isinstance(why, Unknown)
    return why is not None


def test_threshold_shedder() -> None:
    usual = manager()
    assert not shed(usual, usages(20.0, 20.0, 34.9, flow=1000 * MIB))
    assert shed(usual, usages(20.0, 20.0, 35.0, flow=1000 * MIB))  # the mean is 25, the threshold 10
    assert not shed(usual, usages(20.0, 20.0, 35.0, flow=100 * MIB))  # 5 % of which is less than 10 MB/s
    assert not shed(usual, usages(35.0, 20.0, 20.0, flow=1000 * MIB))
    told = why_shed(usual, usages(20.0, 20.0, 35.0, flow=1000 * MIB), "c")
    assert told == (
        "ThresholdShedder takes from a broker whose usage is 10.0 points or more above the mean"
        " (loadBalancerBrokerThresholdShedderPercentage), and c would be at 35.0 %, the mean 25.0 %"
    )


def test_overload_shedder() -> None:
    """`OverloadShedder` sheds from a broker at or above the threshold, regardless of the other brokers."""
    strict = manager(loadBalancerLoadSheddingStrategy=f"{IMPL}OverloadShedder")
    assert shed(strict, usages(90.0, 90.0, 85.0))
    assert not shed(strict, usages(90.0, 90.0, 84.9))


def test_transfer_shedder() -> None:
    found = load_manager_of(EXTENSIBLE)
    assert isinstance(found, LoadManager)
    assert shed(found, usages(10.0, 10.0, 80.0))  # they deviate by 33 points
    assert not shed(found, usages(10.0, 80.0, 10.0))
    assert not shed(found, usages(40.0, 40.0, 60.0))
    assert shed(found, (*usages(40.0, 40.0, 40.1)[:2], BrokerUsage(broker="c", percent=90.0, bytes=100 * MIB)))
    idle = BrokerUsage(broker="b", percent=29.0, bytes=MIB)
    assert shed(found, (usages(30.0)[0], idle, BrokerUsage(broker="c", percent=31.0, bytes=100 * MIB)))
    assert not shed(found, (usages(31.0)[0], idle, BrokerUsage(broker="c", percent=30.0, bytes=100 * MIB)))


def test_transfer_shedder_exchanges_a_bundle_for_a_larger_one() -> None:
    found = load_manager_of(EXTENSIBLE)
    alone = load_manager_of(EXTENSIBLE | {"loadBalancerTransferEnabled": "false"})
    assert isinstance(found, LoadManager)
    assert isinstance(alone, LoadManager)

    def exchanged(
        moved: int, flow: int, percents: tuple[float, ...] = (80.0, 10.0, 20.0), of: LoadManager = found
    ) -> str | None:
        before = usages(*percents)
        there = (before[0], msgspec.structs.replace(before[1], bytes=flow * MIB), *before[2:])
        return may_exchange(of, there, BundleMove(source="c", target="b", bytes=moved * MIB))

    assert exchanged(10, 49) == "a"
    assert exchanged(10, 49, of=alone) is None  # it only takes away
    assert exchanged(10, 50) is None  # the pair would not be more even
    assert exchanged(74, 10) == "a"
    assert exchanged(75, 10) is None  # too large to be the smaller one
    assert exchanged(10, 49, (50.0, 45.0, 50.0)) is None  # nothing is shed
    assert exchanged(10, 49, (80.0, 20.0, 10.0)) is None  # it is the one between the two
    assert exchanged(10, 49, (10.0, 80.0, 20.0)) is None  # it is the fuller one
    modular = manager(loadBalancerLoadSheddingStrategy=f"{IMPL}OverloadShedder")
    assert may_exchange(modular, usages(80.0, 10.0), BundleMove(source="a", target="b", bytes=1.0)) is None


def test_a_strategy_that_is_not_known() -> None:
    for name in (f"{IMPL}UniformLoadShedder", "org.acme.ThresholdShedder"):
        found = why_shed(manager(loadBalancerLoadSheddingStrategy=name), usages(1.0, 1.0, 1.0), "c")
        assert isinstance(found, Unknown), name
        assert name in found.reason
    assert why_shed(manager(), usages(1.0), "elsewhere") == USAGES_UNKNOWN
