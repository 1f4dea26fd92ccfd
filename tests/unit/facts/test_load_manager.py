"""The brokers' own load manager, the figures that its shedding compares, and a broker's load by its metrics."""

from __future__ import annotations

import msgspec
import pytest

from pulsar_steward.facts.isolation import Isolation, LoadOfBroker, load_of
from pulsar_steward.facts.load_manager import (
    MANAGER_UNKNOWN,
    BrokerUsage,
    BundleMove,
    LoadManager,
    after_move,
    load_manager_of,
    one_load_manager,
    usage_of,
)
from pulsar_steward.facts.room import Usage
from pulsar_steward.facts.unknown import Unknown
from tests.cases import cases, row_by_row

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


def usages(*percents: float, flow: float = 100 * MIB, messages: float = 1000.0) -> tuple[BrokerUsage, ...]:
    """Brokers a, b, c ... of these usages, all with the same traffic."""
    return tuple(
        BrokerUsage(broker=name, percent=percent, bytes=flow, messages=messages)
        for name, percent in zip("abcde", percents, strict=False)
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
    assert found.limits["loadBalancerBundleUnloadMinThroughputThreshold"] == 10
    unreadable = load_manager_of(MODULAR | {"loadBalancerBrokerThresholdShedderPercentage": "much"})
    assert isinstance(unreadable, Unknown)


def test_the_extensible_manager_sheds_by_a_strategy_of_its_own() -> None:
    found = load_manager_of(EXTENSIBLE)
    assert isinstance(found, LoadManager)
    assert found.strategy.endswith(".TransferShedder")


def test_bundles_that_are_never_shed() -> None:
    assert manager().sheds_from("pulsar/system")
    assert manager().sheds_from("shop/orders")
    excluded = load_manager_of(EXTENSIBLE | {"loadBalancerSheddingExcludedNamespaces": "[shop/orders, shop/bills]"})
    assert isinstance(excluded, LoadManager)
    assert [excluded.sheds_from(each) for each in ("shop/orders", "shop/bills", "shop/carts")] == [False, False, True]
    assert not excluded.sheds_from("pulsar/system")
    assert manager().leaves_idle
    for strategy in ("org.acme.Shedder", f"{IMPL}UniformLoadShedder"):  # which also takes bundles without traffic
        found = manager(loadBalancerLoadSheddingStrategy=strategy, maxUnloadPercentage="0.2")
        assert found.sheds_from("pulsar/system"), strategy
        assert not found.leaves_idle


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
FLOW = [
    ("pulsar_broker_throughput_in", "", 1000.0),
    ("pulsar_broker_throughput_out", "", 2000.0),
    ("pulsar_broker_rate_in", "", 10.0),
    ("pulsar_broker_rate_out", "", 20.0),
]
HISTORY = [("pulsar_lb_resource_usage", "max", 0.9), ("pulsar_lb_resource_usage", "max_ema", 0.35)]


def usage(percent: float) -> BrokerUsage:
    return BrokerUsage(broker="a", percent=percent, bytes=3000.0, messages=30.0)


def test_usage_is_the_most_used_resource_by_its_weight() -> None:
    assert usage_of("a", RESOURCES + FLOW, manager()) == BrokerUsage(
        broker="a", percent=50.0, bytes=3000.0, messages=30.0
    )
    heavy = manager(loadBalancerMemoryResourceWeight="1.0")
    assert usage_of("a", RESOURCES + FLOW, heavy) == usage(90.0)
    avg = manager(
        loadBalancerLoadSheddingStrategy=f"{IMPL}AvgShedder",
        loadBalancerMemoryResourceWeight="1.0",
        maxUnloadPercentage="0.5",
    )
    assert usage_of("a", RESOURCES + FLOW, avg) == usage(50.0)
    overload = manager(loadBalancerLoadSheddingStrategy=f"{IMPL}OverloadShedder")
    assert usage_of("a", RESOURCES + FLOW, overload) == BrokerUsage(
        broker="a", percent=70.0, bytes=3000.0, messages=30.0
    )


@pytest.mark.parametrize("told", [{"In": "0.5"}, {"": "0.5", "In": "1.0"}])
def test_a_weight_has_two_names(told: dict[str, str]) -> None:
    """Before 4.0 bandwidths have another one, which later brokers heed where the new one is the default."""
    names = {"In": "loadBalancerBandwithInResourceWeight", "": "loadBalancerBandwidthInResourceWeight"}
    found = manager(**{names[key]: value for key, value in told.items()})
    assert found.weights["pulsar_lb_bandwidth_in_usage"] == 0.5


def test_the_extensible_manager_compares_its_own_average() -> None:
    found = load_manager_of(EXTENSIBLE)
    assert isinstance(found, LoadManager)
    assert usage_of("a", RESOURCES + FLOW + HISTORY, found) == BrokerUsage(
        broker="a", percent=35.0, bytes=3000.0, messages=30.0
    )
    assert usage_of("a", RESOURCES + FLOW, found) is None


@pytest.mark.parametrize("missing", [RESOURCES[1:] + FLOW, RESOURCES + FLOW[1:], []])
def test_a_broker_that_tells_too_little(missing: list[tuple[str, str, float]]) -> None:
    assert usage_of("a", missing, manager()) is None


def test_a_resource_that_is_used_up() -> None:
    """It counts if the strategy weighs it, whatever the weight."""
    busy = [("pulsar_lb_cpu_usage", "", 98.0), *RESOURCES[1:], *FLOW]
    half, none = (manager(loadBalancerCPUResourceWeight=weight) for weight in ("0.5", "0.0"))
    for of, full in ((manager(), True), (half, True), (none, False)):
        told = usage_of("a", busy, of)
        assert told is not None
        assert told.full is full
    calm = usage_of("a", RESOURCES + FLOW, manager())
    assert calm is not None
    assert not calm.full


def test_a_move_carries_usage_along() -> None:
    before = usages(60.0, 10.0, 20.0)
    half = BundleMove(source="a", target="b", bytes=50 * MIB, messages=500.0)
    assert [each.percent for each in after_move(before, half)] == [30.0, 40.0, 20.0]
    assert [each.bytes // MIB for each in after_move(before, half)] == [50, 150, 100]
    assert [each.messages for each in after_move(before, half)] == [500, 1500, 1000]
    assert {(each.below, each.above) for each in after_move(before, half)} == {(0.0, 0.0)}
    idle = after_move(usages(60.0, 10.0, flow=0.0), BundleMove(source="a", target="b", bytes=0.0, messages=0.0))
    assert [each.percent for each in idle] == [60.0, 10.0]
    gone = BundleMove(source="e", target="b", bytes=0.0, messages=0.0)
    assert after_move(before, gone) == before


def test_a_move_from_a_broker_that_tells_no_usage_may_fill_its_target() -> None:
    """Its traffic is known, and no share of any usage: the target's may be up to 100 points more."""
    source, target = after_move(usages(60.0, 10.0), BundleMove(source="e", target="b", bytes=50 * MIB, messages=500.0))
    assert source == usages(60.0)[0]
    assert (target.percent, target.above, target.bytes, target.messages) == (10.0, 100.0, 150 * MIB, 1500.0)


@row_by_row("flow, messages", (10, 500.0), (50, 100.0))
def test_a_move_carries_the_larger_of_its_shares(flow: int, messages: float) -> None:
    """A bundle of few bytes and many messages costs more than its bytes say, and perhaps less than its messages do."""
    source, target, other = after_move(
        usages(60.0, 10.0, 20.0), BundleMove(source="a", target="b", bytes=flow * MIB, messages=messages)
    )
    assert (source.percent, source.below, source.above) == (30.0, 0.0, 24.0)
    assert (target.percent, target.below, target.above) == (40.0, 24.0, 0.0)
    assert (other.percent, other.below, other.above) == (20.0, 0.0, 0.0)


def test_a_move_from_a_full_broker_carries_perhaps_more() -> None:
    """What waits for a resource that is used up is in no figure: the target may be as full afterwards."""
    full, other = usages(100.0, 20.0)
    half = BundleMove(source="a", target="b", bytes=10 * MIB, messages=100.0)
    source, target = after_move((msgspec.structs.replace(full, full=True), other), half)
    assert (source.percent, source.above, target.percent, target.above) == (90.0, 10.0, 30.0, 70.0)
    nothing = BundleMove(source="a", target="b", bytes=0.0, messages=0.0)
    assert after_move((msgspec.structs.replace(full, full=True), other), nothing)[1] == other


def test_a_target_shows_no_more_than_there_is() -> None:
    """A usage that a move would bring over 100 % shows 100 % perhaps; one that shows more does so already."""
    half = BundleMove(source="a", target="b", bytes=50 * MIB, messages=500.0)
    assert [(each.percent, each.below) for each in after_move(usages(80.0, 90.0), half)] == [(40.0, 0.0), (130.0, 30.0)]
    assert after_move(usages(80.0, 110.0), half)[1].below == 40.0


NAN = float("nan")
TOPICS, IN, OUT = "pulsar_topics_count", "pulsar_throughput_in", "pulsar_throughput_out"
CPU, MEMORY = ("pulsar_lb_cpu_usage", "", 20.0), ("pulsar_lb_directMemory_usage", "", 5.0)
BUSY = [
    (TOPICS, "a/b", 3.0),
    (TOPICS, "pulsar/10.0.0.1:8080", 1.0),
    (IN, "a/b", 10.0),
    (IN, "a/b", 20.0),
    (OUT, "a/b", 5.0),
    (OUT, "pulsar/10.0.0.1:8080", 1000.0),
    CPU,
    MEMORY,
]
USED = Usage(cpu=20.0, direct_memory=5.0)


@cases(
    "samples, load",
    ("all of it", BUSY, LoadOfBroker(topics={"a/b": 3}, bytes={"a/b": 35.0}, used=USED)),
    (
        "an idle broker",
        [("pulsar_broker_topics_count", "", 0.0), CPU, MEMORY],
        LoadOfBroker(topics={}, used=USED),
    ),
    ("nothing", [], LoadOfBroker()),
    ("no topics", [each for each in BUSY if each[0] != TOPICS], LoadOfBroker(bytes={"a/b": 35.0}, used=USED)),
    ("no throughput out", [each for each in BUSY if each[0] != OUT], LoadOfBroker(topics={"a/b": 3}, used=USED)),
    (
        "no numbers",
        [(TOPICS, "a/b", NAN), (IN, "a/b", NAN), (OUT, "a/b", 1.0), ("pulsar_lb_cpu_usage", "", NAN), MEMORY],
        LoadOfBroker(used=Usage(direct_memory=5.0)),
    ),
)
def test_load_of_a_broker(samples: list[tuple[str, str, float]], load: LoadOfBroker) -> None:
    """Figures that a broker does not export, or that are no numbers, are not reported; 0 is what it says is 0."""
    assert load_of(samples) == load


def test_a_broker_that_does_not_report_its_cpu_may_be_the_busiest() -> None:
    """Unknown is not zero: its loss is looked at."""
    loads = {"a": LoadOfBroker(topics={"a/b": 3}, used=USED), "b": LoadOfBroker(topics={"a/b": 1})}
    assert Isolation(loads=loads).busiest(loads) == "b"
    loads["b"] = LoadOfBroker(topics={"a/b": 1}, used=Usage(cpu=19.0))
    assert Isolation(loads=loads).busiest(loads) == "a"
