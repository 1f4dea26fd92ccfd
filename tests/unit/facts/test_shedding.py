"""What the brokers' own shedding would take from a broker, by which rule, and which bundles."""

from __future__ import annotations

import msgspec
import pytest

from pulsar_steward.facts.load_manager import (
    USAGES_UNKNOWN,
    BrokerUsage,
    BundleMove,
    LoadManager,
    Traffic,
    load_manager_of,
)
from pulsar_steward.facts.shedding import Shed, Takes, may_exchange, sheds, sheds_from
from pulsar_steward.facts.unknown import Unknown
from tests.cases import row_by_row
from tests.unit.facts.test_load_manager import EXTENSIBLE, IMPL, MIB, MODULAR, manager, usages

AVG = {"loadBalancerLoadSheddingStrategy": f"{IMPL}AvgShedder", "maxUnloadPercentage": "0.5"}
UNIFORM = {"loadBalancerLoadSheddingStrategy": f"{IMPL}UniformLoadShedder", "maxUnloadPercentage": "0.2"}


def taken(found: LoadManager, there: tuple[BrokerUsage, ...], broker: str = "c") -> tuple[Shed, ...]:
    told = sheds_from(found, there, broker)
    assert not isinstance(told, Unknown)
    return told


def perhaps(found: LoadManager, there: tuple[BrokerUsage, ...], broker: str = "c") -> tuple[Shed, ...]:
    """What it might take by the worst figures."""
    told = sheds_from(found, there, broker, at_worst=True)
    assert not isinstance(told, Unknown)
    return told


def shed(found: LoadManager, there: tuple[BrokerUsage, ...], broker: str = "c") -> bool:
    """True if it would take from the broker."""
    return bool(taken(found, there, broker))


def pairs(found: LoadManager, there: tuple[BrokerUsage, ...]) -> list[tuple[str, str | None]]:
    told = sheds(found, there)
    assert not isinstance(told, Unknown)
    return [(each.source, each.target) for each in told]


def usage(broker: str, percent: float, mebibytes: float) -> BrokerUsage:
    return BrokerUsage(broker=broker, percent=percent, bytes=mebibytes * MIB, messages=0.0)


def loads(**figures: tuple[float, float]) -> tuple[BrokerUsage, ...]:
    """Brokers of these percents and messages a second, with a kilobyte a message."""
    return tuple(
        BrokerUsage(broker=name, percent=percent, messages=messages, bytes=1000 * messages)
        for name, (percent, messages) in figures.items()
    )


def bundles(**messages: float) -> dict[str, Traffic]:
    """Bundles of so many messages a second, with a kilobyte a message."""
    return {name: Traffic(messages=rate, bytes=1000 * rate) for name, rate in messages.items()}


def test_threshold_shedder() -> None:
    usual = manager()
    assert not shed(usual, usages(20.0, 20.0, 34.9, flow=1000 * MIB))
    assert shed(usual, usages(20.0, 20.0, 35.0, flow=1000 * MIB))  # the mean is 25, the threshold 10
    assert not shed(usual, usages(20.0, 20.0, 35.0, flow=100 * MIB))  # 5 % of which is less than 10 MB/s
    assert not shed(usual, usages(35.0, 20.0, 20.0, flow=1000 * MIB))
    (told,) = taken(usual, usages(20.0, 20.0, 35.0, flow=1000 * MIB))
    assert told.why == (
        "ThresholdShedder takes from a broker whose usage is 10.0 points or more above the mean"
        " (loadBalancerBrokerThresholdShedderPercentage), and c would be at 35.0 %, the mean 25.0 %"
    )


LOWER = {"lowerBoundarySheddingEnabled": "true"}


def test_threshold_shedder_with_a_lower_boundary() -> None:
    """Where a broker is far below the mean, the fullest one gives half the threshold, though it is not far above."""
    there = usages(4.0, 20.0, 19.0, 21.0, flow=1000 * MIB)  # the mean is 16
    assert not shed(manager(), there, "d")
    assert not shed(manager(lowerBoundarySheddingEnabled="false"), there, "d")
    (told,) = taken(manager(**LOWER), there, "d")
    assert (told.takes, told.amount) == (Takes.LARGEST, 50.0 * MIB)
    assert told.why == (
        "ThresholdShedder takes from the fullest broker while another is more than 10.0 points below the mean and"
        " lowerBoundarySheddingEnabled is on (loadBalancerBrokerThresholdShedderPercentage), and d would be at 21.0 %,"
        " the mean 16.0 %, a at 4.0 %"
    )
    assert not shed(manager(**LOWER), there, "b")
    assert not shed(manager(**LOWER), usages(7.0, 20.0, 19.0, 22.0, flow=1000 * MIB), "d")  # 10 points below
    assert not shed(manager(**LOWER), usages(4.0, 20.0, 19.0, 21.0, flow=100 * MIB), "d")  # 5 MB/s are too few
    assert [perhaps(manager(**LOWER), usages(9.0, 20.0, 19.0, fullest), "d") for fullest in (17.0, 22.0)] == [(), ()]
    assert perhaps(manager(**LOWER), usages(9.0, 20.0, 19.0, 22.0, flow=1000 * MIB), "d")


@row_by_row(
    "percents, flow, at_worst",
    ((20.0, 20.0, 30.9), 1000, False),
    ((20.0, 20.0, 31.0), 1000, True),  # with 2 points more there and 2 less elsewhere the mean is 23
    ((20.0, 20.0, 35.0), 118, False),
    ((20.0, 20.0, 35.0), 119, True),
)
def test_near_a_limit_of_threshold_shedder(percents: tuple[float, ...], flow: int, *, at_worst: bool) -> None:
    there = usages(*percents, flow=flow * MIB)
    assert not shed(manager(), there)
    assert bool(perhaps(manager(), there)) is at_worst


def test_near_a_limit_of_overload_shedder() -> None:
    strict = manager(loadBalancerLoadSheddingStrategy=f"{IMPL}OverloadShedder")
    assert not shed(strict, usages(90.0, 90.0, 83.0))
    assert perhaps(strict, usages(90.0, 90.0, 83.0))
    assert not perhaps(strict, usages(90.0, 90.0, 82.9))


@row_by_row(
    "percents, at_worst",
    ((40.0, 40.0, 88.7), False),  # 22.96 points of deviation, and 2 that it may be more
    ((40.0, 40.0, 88.9), True),
    ((10.0, 80.0, 44.0), True),
    ((10.0, 80.0, 41.0), False),  # at worst it is at the mean
)
def test_near_a_limit_of_transfer_shedder(percents: tuple[float, ...], *, at_worst: bool) -> None:
    found = load_manager_of(EXTENSIBLE | {"loadBalancerBrokerOverloadedThresholdPercentage": "100"})
    assert isinstance(found, LoadManager)
    assert not shed(found, usages(*percents))
    assert bool(perhaps(found, usages(*percents))) is at_worst


@row_by_row("apart, at_worst", (10.9, False), (11.1, True))
def test_near_the_distance_of_avg_shedder(apart: float, *, at_worst: bool) -> None:
    there = loads(a=(10, 0), b=(10 + apart / 2, 9000), c=(10 + apart, 4000))
    assert not shed(manager(**AVG), there)
    assert bool([each for each in perhaps(manager(**AVG), there) if each.target == "a"]) is at_worst


@row_by_row(
    "messages, units",
    (1700, ["bytes"]),  # half of which is below minUnloadMessage, with 10 % more too
    (1900, ["messages", "bytes"]),
    (2200, ["messages", "bytes"]),
    (2300, ["messages"]),
)
def test_near_a_limit_either_unit_may_be_the_one_of_avg_shedder(messages: float, units: list[str]) -> None:
    there = (
        BrokerUsage(broker="a", percent=10.0, messages=0.0, bytes=0.0),
        *loads(b=(35, 0)),
        BrokerUsage(broker="c", percent=60.0, messages=messages, bytes=9e6),
    )
    assert [each.unit for each in perhaps(manager(**AVG), there)] == units
    fits = Traffic(messages=9000.0, bytes=5.4e6)  # a tenth less fits into half of a tenth more than 9 MB/s
    assert any(each.may_take(fits) for each in perhaps(manager(**AVG), there)) is ("bytes" in units)


@row_by_row(
    "messages, units",
    (1200, ["bytes"]),
    (1300, ["messages", "bytes"]),
    (1800, ["messages", "bytes"]),
    (1900, ["messages"]),
)
def test_near_a_limit_either_unit_may_be_the_one_of_uniform_load_shedder(messages: float, units: list[str]) -> None:
    """1,500 messages are half more than the least, by 10 % each it is so from 1,228 on and sure from 1,834 on."""
    there = tuple(
        BrokerUsage(broker=name, percent=1.0, bytes=flow, messages=rate)
        for name, flow, rate in (("a", 1e6, 1000.0), ("b", 1e6, 1000.0), ("c", 9e6, messages))
    )
    assert [each.unit for each in perhaps(manager(**UNIFORM, minUnloadMessage="10"), there)] == units


def test_uniform_load_shedder_counts_no_least_above_an_integer() -> None:
    """Where every broker has more than 2,147 MB/s, it takes that for the least; nor does it take more than that."""
    by_bytes = manager(
        **UNIFORM | {"maxUnloadPercentage": "1.0"}, loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold="2"
    )
    there = tuple(
        BrokerUsage(broker=name, percent=1.0, bytes=flow, messages=100.0)
        for name, flow in (("a", 3e9), ("b", 3e9), ("c", 5e9))
    )
    (told,) = taken(by_bytes, there)
    assert told.amount == 2**31 - 1
    assert "c would have 5,000.0 MB/s, the least 2,147.5 MB/s" in told.why


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
    assert shed(found, (*usages(40.0, 40.0, 40.1)[:2], usage("c", 90.0, 100)))
    idle = usage("b", 29.0, 1)
    assert shed(found, (usages(30.0)[0], idle, usage("c", 31.0, 100)))
    assert not shed(found, (usages(31.0)[0], idle, usage("c", 30.0, 100)))


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
        return may_exchange(of, there, BundleMove(source="c", target="b", bytes=moved * MIB, messages=1.0))

    assert exchanged(10, 49) == "a"
    assert exchanged(10, 49, of=alone) is None  # it only takes away
    assert exchanged(10, 50) is None  # the pair would not be more even
    assert exchanged(74, 10) == "a"
    assert exchanged(75, 10) is None  # too large to be the smaller one
    assert exchanged(10, 49, (50.0, 45.0, 50.0)) is None  # nothing is shed
    assert exchanged(10, 49, (80.0, 20.0, 10.0)) is None  # it is the one between the two
    assert exchanged(10, 49, (10.0, 80.0, 20.0)) is None  # it is the fuller one
    modular = manager(loadBalancerLoadSheddingStrategy=f"{IMPL}OverloadShedder")
    assert (
        may_exchange(modular, usages(80.0, 10.0), BundleMove(source="a", target="b", bytes=1.0, messages=1.0)) is None
    )


def test_largest_first_until_it_is_enough() -> None:
    """`ThresholdShedder` and `OverloadShedder` take at least one bundle, `TransferShedder` any."""
    (told,) = taken(manager(), usages(20.0, 20.0, 35.0, flow=1000 * MIB))  # 5 % of its throughput
    owned = {name: Traffic(bytes=size * MIB, messages=1.0) for name, size in (("x", 40), ("y", 30), ("z", 20))}
    assert told.bundles(owned) == ("x", "y")
    assert told.may_take(owned["z"])
    assert told.bundles({}) == ()
    strict = manager(loadBalancerLoadSheddingStrategy=f"{IMPL}OverloadShedder")
    (told,) = taken(strict, usages(90.0, 90.0, 85.0, flow=1000 * MIB))
    assert told.bundles(owned) == ("x", "y")
    extensible = load_manager_of(EXTENSIBLE)
    assert isinstance(extensible, LoadManager)
    (told,) = taken(extensible, usages(10.0, 10.0, 80.0))
    assert told.bundles(owned) == ()


@row_by_row(
    "apart, rounds",
    (14.9, None),  # loadBalancerAvgShedderLowThreshold
    (15.0, 8),
    (39.9, 8),
    (40.0, 2),
)
def test_avg_shedder_acts_on_brokers_that_are_apart(apart: float, rounds: int | None) -> None:
    there = loads(a=(10, 0), b=(20, 9000), c=(10 + apart, 4000))
    assert [each.rounds for each in taken(manager(**AVG), there)] == ([rounds] if rounds else [])


@row_by_row(
    "messages, flow, unit, amount",
    (4000.0, 0.0, "messages", 2000.0),
    (2000.0, 8e6, "bytes", 4e6),  # half of 2,000 messages is not more than minUnloadMessage
    (2000.0, 2e6, None, 0.0),  # nor half of 2 MB more than minUnloadMessageThroughput
    (-4000.0, -8e6, None, 0.0),
)
def test_avg_shedder_moves_half_of_the_difference(
    messages: float, flow: float, unit: str | None, amount: float
) -> None:
    """Of messages if there are enough, else of bytes; nothing from a fuller broker with less traffic."""
    emptier = BrokerUsage(broker="a", percent=10.0, messages=5000.0, bytes=9e6)
    fuller = BrokerUsage(broker="c", percent=60.0, messages=5000.0 + messages, bytes=9e6 + flow)
    found = taken(manager(**AVG), (emptier, *loads(b=(35, 0)), fuller))
    assert [(each.unit, each.amount, each.target) for each in found] == ([(unit, amount, "a")] if unit else [])


def test_avg_shedder_takes_bundles_that_fit() -> None:
    """The largest first, each within what is left; none without traffic, and none that has more."""
    (told,) = taken(manager(**AVG), loads(a=(10, 0), b=(20, 0), c=(60, 4000)))
    owned = bundles(most=2001, large=1500, second=1000, small=400, least=100, idle=0)
    assert told.bundles(owned) == ("large", "small", "least")
    assert [name for name, each in owned.items() if told.may_take(each)] == ["large", "second", "small", "least"]
    assert told.why == (
        "AvgShedder takes from the fuller of two brokers that are 15.0 points or more apart"
        " (loadBalancerAvgShedderLowThreshold), and c would be at 60.0 %, a at 10.0 %;"
        " bundles of up to 2,000 messages/s go there after 1 to 2 rounds (1 min each)"
    )
    at_once = manager(**AVG, loadBalancerAvgShedderHitCountHighThreshold="1")
    (told,) = taken(at_once, loads(a=(10, 0), b=(20, 0), c=(60, 4000)))
    assert told.why.endswith("go there after 1 round (1 min each)")


def test_avg_shedder_pairs_the_fullest_with_the_emptiest() -> None:
    """One that is neither is not judged by the mean; the one in the middle has no partner."""
    found = manager(**AVG)
    there = loads(a=(10, 0), b=(20, 0), c=(40, 9000), d=(60, 9000), e=(90, 9000))
    assert pairs(found, there) == [("d", "b"), ("e", "a")]
    assert not shed(found, there, "c")


def test_avg_shedder_ranks_nearly_equal_brokers_in_any_order() -> None:
    """Which is the partner is then not known: a move is judged by either, the forecast by the exact order."""
    found = manager(**AVG)
    there = loads(a=(10.0, 0), b=(14.9, 5000), c=(60, 9000))
    assert [each.target for each in taken(found, there)] == ["a"]
    assert [each.target for each in perhaps(found, there)] == ["a", "b"]
    assert "b, which may be its partner, at 12.9 %" in perhaps(found, there)[1].why
    assert pairs(found, there) == [("c", "a")]
    apart = loads(a=(10.0, 0), b=(15.0, 5000), c=(60, 9000))  # 2 points each, and 1 that it does not tell apart
    assert [each.target for each in perhaps(found, apart)] == ["a"]


@row_by_row(
    "figures, unit, amount",
    ({"a": 6000, "b": 9000, "c": 9001}, "messages", 600.0),  # 50 % above the least, of which a fifth
    ({"a": 6000, "b": 8000, "c": 9000}, None, 0.0),
    ({"a": 0, "b": 8000, "c": 9000}, "messages", 1799.0),  # an idle broker is reckoned with 1
    ({"a": 0, "b": 9001, "c": 9000}, None, 0.0),  # b is the one
)
def test_uniform_load_shedder(figures: dict[str, float], unit: str | None, amount: float) -> None:
    """From the broker with most messages alone, whatever its usage."""
    there = loads(**{name: (1.0, rate) for name, rate in figures.items()})
    found = taken(manager(**UNIFORM, minUnloadMessage="500"), there)
    assert [(each.unit, each.amount, each.target) for each in found] == ([(unit, amount, None)] if unit else [])


@row_by_row("least, most, amount", (1e6, 9e6, 1.6e6), (1e6, 4e6, None), (2e6, 6e6, None), (1e6, 4.1e6, None))
def test_uniform_load_shedder_by_bytes(least: float, most: float, amount: float | None) -> None:
    """Where messages do not differ enough, four times the bytes count, if a fifth of them is a mebibyte."""
    there = tuple(
        BrokerUsage(broker=name, percent=1.0, bytes=flow, messages=100.0)
        for name, flow in (("a", least), ("b", least), ("c", most))
    )
    assert [(each.unit, each.amount) for each in taken(manager(**UNIFORM), there)] == (
        [("bytes", amount)] if amount else []
    )


def test_uniform_load_shedder_takes_bundles_that_fit() -> None:
    """Up to a thousand messages more than it should, idle ones too, and no more bundles than it may."""
    there = loads(a=(1, 0), b=(1, 5000), c=(1, 10_001))
    (told,) = taken(manager(**UNIFORM), there)
    owned = bundles(most=3001, large=2900, small=100, least=50, idle=0)
    assert told.bundles(owned) == ("large", "small", "idle")
    assert [told.may_take(each) for each in owned.values()] == [False, True, True, True, True]
    (told,) = taken(manager(**UNIFORM, maxUnloadBundleNumPerShedding="2"), there)
    assert told.bundles(owned) == ("large", "small")
    assert told.why == (
        "UniformLoadShedder takes from the broker of most traffic if that is 50 % above the least"
        " (loadBalancerMsgRateDifferenceShedderThreshold), and c would have 10,001 messages/s, the least 1 messages/s;"
        " bundles of up to 3,000 messages/s go wherever the placement strategy has them"
    )


def test_uniform_load_shedder_with_a_condition_that_is_off() -> None:
    off = {
        "loadBalancerMsgRateDifferenceShedderThreshold": "0",
        "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold": "0",
    }
    assert not shed(manager(**UNIFORM, **off), loads(a=(1, 1), b=(1, 1), c=(1, 90_000)))


@pytest.mark.parametrize("strategy", ["AvgShedder", "UniformLoadShedder"])
def test_a_share_that_is_not_told(strategy: str) -> None:
    """Releases differ in it, and 2.10 sheds by another rule and tells none."""
    found = load_manager_of(MODULAR | {"loadBalancerLoadSheddingStrategy": f"{IMPL}{strategy}"})
    assert isinstance(found, Unknown)
    assert found.reason.endswith("maxUnloadPercentage is not told")


def test_a_strategy_that_is_not_known() -> None:
    for name in (f"{IMPL}DeviationShedder", "org.acme.ThresholdShedder"):
        found = manager(loadBalancerLoadSheddingStrategy=name)
        for told in (sheds_from(found, usages(1.0, 1.0, 1.0), "c"), sheds(found, usages(1.0, 1.0, 1.0))):
            assert isinstance(told, Unknown), name
            assert name in told.reason
    assert sheds_from(manager(), usages(1.0), "elsewhere") == USAGES_UNKNOWN
