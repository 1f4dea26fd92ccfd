"""Guards that look at the brokers' own load manager, at anti-affinity groups, and at other clusters."""

from __future__ import annotations

import pytest

from pulsar_steward.facts.backlogs import NOTHING_TAKEN
from pulsar_steward.facts.load_manager import AntiAffinityGroup, BrokerUsage, LoadManager, load_manager_of
from pulsar_steward.facts.unknown import Unknown, owner_unknown
from pulsar_steward.guards.evaluate import guards_of, objection_to
from pulsar_steward.guards.kinds import Objection
from pulsar_steward.guards.targets import Shedding
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from tests.builders import Seen, a_look, a_move, a_split, a_step, broker
from tests.unit.facts.test_load_manager import EXTENSIBLE, MODULAR

MIB = 1 << 20
BUSINESS = a_move(namespace="shop/orders")


def shedding(**settings: str) -> LoadManager:
    """The modular load manager with `ThresholdShedder` on."""
    found = load_manager_of(MODULAR | settings)
    assert isinstance(found, LoadManager)
    return found


def usages(*percents: float) -> tuple[BrokerUsage, ...]:
    """Brokers 0, 1, 2 of these usages, with a gigabyte a second each."""
    return tuple(
        BrokerUsage(broker=broker(number), percent=percent, bytes=1000 * MIB) for number, percent in enumerate(percents)
    )


LOOKS = {
    "shedding is off": (a_look(usages=None), None),
    "whether it is on is not known": (a_look(load_manager=None), "shedding: whether the brokers' own shedding is on"),
    "usages are not known": (
        a_look(load_manager=shedding(), throughput=0.0),
        "shedding: the usage that the brokers' own shedding compares is not known",
    ),
    "the bundle's throughput is not known": (
        a_look(load_manager=shedding(), usages=usages(20, 20, 20)),
        "shedding: the bundle's throughput is not known",
    ),
    "it would stay": (a_look(load_manager=shedding(), usages=usages(40, 20, 30), throughput=200.0 * MIB), None),
    "it would be undone": (
        a_look(load_manager=shedding(), usages=usages(40, 35, 10), throughput=200.0 * MIB),
        "shedding: the brokers' own shedding would undo it: ThresholdShedder takes from a broker whose usage is 10.0",
    ),
    "a strategy that is not known": (
        a_look(
            load_manager=shedding(loadBalancerLoadSheddingStrategy="org.acme.Shedder"),
            usages=usages(1, 1, 1),
            throughput=0.0,
        ),
        "shedding: by which rule the brokers' own shedding (org.acme.Shedder) goes is not known",
    ),
}


@pytest.mark.parametrize(("seen", "words"), LOOKS.values(), ids=LOOKS)
def test_a_move_that_shedding_would_undo(seen: Seen, words: str | None) -> None:
    found = objection_to(a_step(BUSINESS), *seen)
    assert (found is None) == (words is None)
    assert words is None or (found is not None and found[0] is Objection.REFUSED and found[1].startswith(words))


def test_who_might_get_the_bundle_in_exchange_is_named() -> None:
    """A permitted move to the emptiest broker names the fullest one, to which `TransferShedder` may hand it on."""
    manager = load_manager_of(EXTENSIBLE)
    assert isinstance(manager, LoadManager)
    percents, flows = (80, 10, 30), (1000, 100, 500)
    there = tuple(
        BrokerUsage(broker=broker(number), percent=percent, bytes=flow * MIB)
        for number, (percent, flow) in enumerate(zip(percents, flows, strict=True))
    )
    facts, policy = a_look(load_manager=manager, usages=there, throughput=50.0 * MIB)
    told = Shedding().check_target(BUSINESS, facts, policy)
    assert told.passed
    assert told.reason == (
        f"the brokers' own shedding (TransferShedder) would leave it on {BUSINESS.target},"
        f" unless it gives it to {broker(0)} for a larger one"
    )


def test_coordinators_are_never_shed() -> None:
    """The shedding guard needs no figures for moves of coordinators and for splits, and ignores rollbacks."""
    seen = a_look(load_manager=shedding())
    assert objection_to(a_step(a_move()), *seen) is None
    assert objection_to(a_step(a_split(namespace="shop/orders")), *seen) is None
    back = a_step(BUSINESS, undoes="plan/b1.s01")
    assert "shedding" not in {guard.name for guard in guards_of(back)}


def group(**others: int) -> AntiAffinityGroup:
    """A group whose other namespaces are on brokers 0, 1 and 2."""
    counts = [others.get(name, 0) for name in ("first", "second", "third")]
    return AntiAffinityGroup(group="apart", others={broker(number): count for number, count in enumerate(counts)})


GROUPS = {
    "none": (a_look(anti_affinity=None), None),
    "the target has none": (a_look(anti_affinity=group(first=1)), None),
    "the target has one, and another broker none": (
        a_look(anti_affinity=group(second=1)),
        (
            f"anti_affinity: {broker(1)} has bundles of 1 other namespace of the anti-affinity group apart, the broker"
            " with fewest 0"
        ),
    ),
    "all have one": (a_look(anti_affinity=group(first=1, second=1, third=1)), None),
    "the emptier ones may not have it": (
        a_look(anti_affinity=group(second=1), allowed_brokers=frozenset({broker(1)})),
        None,
    ),
    "not known at planning": (a_look(anti_affinity=Unknown("not in a snapshot"), planning=True), None),
    "not known before the call": (a_look(anti_affinity=Unknown("nobody tells")), "anti_affinity: nobody tells"),
}


@pytest.mark.parametrize(("seen", "words"), GROUPS.values(), ids=GROUPS)
def test_a_group_is_kept_apart(seen: Seen, words: str | None) -> None:
    """A move is refused if its target has more namespaces of the anti-affinity group than another allowed broker."""
    found = objection_to(a_step(BUSINESS), *seen)
    assert (found and found[1]) == words
    assert objection_to(a_step(a_split(namespace="shop/orders")), *seen) is None


def test_a_bundle_that_may_be_on_its_way_is_nobodys_to_move() -> None:
    change = a_move()
    found = objection_to(a_step(change), *a_look(owner=owner_unknown(change)))
    assert found is not None
    assert found[0] is Objection.DRIFTED
    assert found[1].startswith(
        "owner: no broker says that it owns pulsar/system/0x00000000_0x10000000: nobody does, or"
    )


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ((), None),
        (("east", "west"), "one_cluster: east, west would get it as well, as shop/orders is served there too"),
        (None, "one_cluster: which clusters serve shop/orders is not known"),
    ],
)
def test_a_setting_of_several_clusters_is_left_alone(others: tuple[str, ...] | None, words: str | None) -> None:
    kept = TimeToLive(seconds=60)
    change = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=None, after=kept)
    seen = a_look(other_clusters=others, delayed_messages=0, clock_difference=0, taken=NOTHING_TAKEN)
    found = objection_to(a_step(change), *seen)
    assert (found is None) == (words is None)
    assert words is None or (found is not None and found[1].startswith(words))
    topic = ChangeSetting(
        namespace="shop/orders", topic="persistent://shop/orders/t", name=SettingName.TTL, before=None, after=kept
    )
    assert objection_to(a_step(topic), *seen) is None
