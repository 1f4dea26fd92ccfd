"""Guards of isolation policies: room on both sides, now and after a loss; unknown loads; protected namespaces."""

from __future__ import annotations

from time import process_time
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.facts.isolation import Isolation, LoadOfBroker
from pulsar_steward.facts.room import Usage
from pulsar_steward.guards.every_change import Protected
from pulsar_steward.guards.isolation import GroupBrokers, GroupRoom, GroupUnclaimed
from pulsar_steward.model.isolation import Failover, FailoverLimits, IsolationPolicy
from pulsar_steward.model.step import SetIsolation
from tests.beside import yardstick
from tests.builders import a_look, a_policy, a_step
from tests.cases import cases

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.guards.kinds import Guard
    from pulsar_steward.model.step import GuardResult
    from pulsar_steward.policy.schema import Policy

A, B, C, D = BROKERS = tuple(f"10.0.0.{number}:8080" for number in (1, 2, 3, 4))
SHOP, NEWS = "shop/orders", "news/all"


def group_of(*hosts: int, name: str = "shop", **fields: Any) -> SetIsolation:
    """The change that makes a group for a tenant, on the hosts with these numbers; at least one has to run."""
    primary = tuple(rf"10\.0\.0\.{number}" for number in hosts)
    usual = IsolationPolicy((f"{name}/.*",), primary, (), Failover(FailoverLimits("1", "80")))
    policy = msgspec.structs.replace(usual, **fields)
    return SetIsolation(pulsar_cluster="local", policy=name, before=None, after=policy)


def load(
    shop: int = 0,
    news: int = 0,
    cpu: float | None = 10.0,
    memory: float | None = 5.0,
    flow: tuple[int, int] | None = None,
) -> LoadOfBroker:
    """A broker with so many topics of each namespace; each topic carries the same unless a `flow` of both is said."""
    rates = (shop, news) if flow is None else flow
    return LoadOfBroker(
        topics={SHOP: shop, NEWS: news},
        bytes={SHOP: float(rates[0]), NEWS: float(rates[1])},
        used=Usage(cpu=cpu, direct_memory=memory),
    )


EVEN = load(10, 10)


def cluster(*loads: LoadOfBroker, **fields: Any) -> Isolation:
    """Four brokers; those without a load have the usual one: ten topics of both namespaces, at 10 % CPU."""
    every = dict(zip(BROKERS, (*loads, *[EVEN] * (4 - len(loads))), strict=True))
    return Isolation(**{"loads": every, "namespaces": (NEWS, SHOP), **fields})


def judged(
    isolation: Isolation, change: SetIsolation | None = None, policy: Policy | None = None, guard: Guard | None = None
) -> GuardResult:
    """What a guard, `group_room` by default, says of a group of the first two brokers by default."""
    return (guard or GroupRoom()).check(a_step(change or group_of(1, 2)), *a_look(policy, isolation=isolation))


def refused(*words: str, **about: Any) -> None:
    """Asserts that the guard vetoes it with these words."""
    result = judged(**about)
    assert not result.passed
    for each in words:
        assert each in result.reason


def test_figures_of_both_sides_are_told() -> None:
    """Each side has the bundles that come to it and all that is there; after a loss those that stay share it."""
    result = judged(cluster())
    assert result.passed
    assert result.reason.split("; ") == [
        f"2 brokers ({A}, {B}) would have 30 topics (50,000 at most), 15 % CPU and 8 % direct memory (80 %)",
        f"2 brokers ({C}, {D}) would have 30 topics (50,000 at most), 15 % CPU and 8 % direct memory (80 %)",
        f"after the loss of {A}, 1 broker ({B}) would have 50 topics (50,000 at most), 25 % CPU (85 %)",
        f"after the loss of {C}, 1 broker ({D}) would have 50 topics (50,000 at most), 25 % CPU (85 %)",
    ]


def limited(**sections: dict[str, int]) -> Policy:
    return a_policy(**sections)


BUSY_NEWS = [load(10, 0, cpu=20.0), load(10, 0, cpu=20.0), load(0, 10, cpu=70.0), load(0, 10, cpu=70.0)]
SPILLED = [load(0, 10, cpu=90.0), load(0, 10, cpu=90.0), EVEN, EVEN]
"""The group's brokers are busy with the news, which the others come to carry."""


@cases(
    "isolation, policy, words",
    (
        "topics of the group",
        cluster(),
        limited(broker_drain_remedy={"most_topics": 29}),
        f"2 brokers ({A}, {B}) would have 30 topics each, more than 29 (broker_drain_remedy.most_topics)",
    ),
    (
        "CPU that comes to the others",
        cluster(*SPILLED),
        None,
        f"2 brokers ({C}, {D}) would be at 100 % CPU on average, more than 80 %",
    ),
    (
        "direct memory of the others",
        cluster(*[load(10, 10, memory=60.0)] * 4),
        None,
        f"2 brokers ({C}, {D}) would be at 90 % direct memory on average, more than 80 %",
    ),
    (
        "the loss of one of the others",
        cluster(*BUSY_NEWS),
        None,
        f"after the loss of {C}, 1 broker ({D}) would be at 140 % CPU on average, more than 85 %",
    ),
    (
        "topics after a loss",
        cluster(),
        limited(partition_ceiling={"warning_topics_per_broker": 5, "critical_topics_per_broker": 49}),
        f"after the loss of {A}, 1 broker ({B}) would have 50 topics, more than 49",
    ),
)
def test_either_side_needs_room(isolation: Isolation, policy: Policy | None, words: str) -> None:
    refused(words, isolation=isolation, policy=policy)


@cases(
    "silent, words",
    ("topics", LoadOfBroker(used=Usage(cpu=1.0, direct_memory=1.0)), "did not report their loaded topics"),
    ("CPU", load(1, 1, cpu=None), "did not report CPU, so that nobody knows what there is room for"),
    ("direct memory", load(1, 1, memory=None), "did not report direct memory"),
)
def test_a_broker_that_tells_nothing_is_not_empty(silent: LoadOfBroker, words: str) -> None:
    """Of each side: what a broker does not report stops the policy, and the reason names broker and figure."""
    refused(f"{A} {words}", isolation=cluster(silent))
    refused(f"{D} {words}", isolation=cluster(EVEN, EVEN, EVEN, silent))


@cases(
    "from_c, percent, by_topics",
    ("by throughput", load(1, 99, cpu=50.0, flow=(90, 10)), 35, False),
    ("by topics where nothing flows", load(1, 99, cpu=50.0, flow=(0, 0)), 13, True),
    ("by topics where none is told", msgspec.structs.replace(load(1, 99, cpu=50.0), bytes=None), 13, True),
)
def test_usage_comes_with_throughput(from_c: LoadOfBroker, percent: int, by_topics: bool) -> None:
    """Nine tenths of a broker's CPU come with nine tenths of its throughput, however few topics carry it."""
    reason = judged(cluster(EVEN, EVEN, from_c)).reason
    assert f"2 brokers ({A}, {B}) would have 26 topics (50,000 at most), {percent} % CPU" in reason
    assert (f"no throughput was reported by {C}: usage is divided by topics there" in reason) is by_topics


def test_a_namespace_that_is_idle_now_makes_usage_a_lower_bound() -> None:
    """Its topics come, and no CPU with them: that is said, of the side to which they come."""
    resting = load(9, 10, cpu=50.0, flow=(0, 10))
    reason = judged(cluster(EVEN, EVEN, resting)).reason
    assert reason.endswith("9 topics come without throughput now: usage is a lower bound")
    assert "lower bound" not in judged(cluster()).reason


def test_what_a_draining_broker_has_is_to_be_carried() -> None:
    """It is nobody's broker, but its load comes to the others."""
    policy = a_policy(brokers={"draining": [D]}, broker_drain_remedy={"most_usage_percent": 44})
    busy = cluster(EVEN, EVEN, EVEN, load(0, 10, cpu=30.0))
    refused(f"1 broker ({C}) would be at 50 % CPU on average, more than 44 %", isolation=busy, policy=policy)


def test_secondary_brokers_help_after_a_loss() -> None:
    """The group of two that has to hold two gets its third broker once one is lost, and shares it with the others."""
    change = group_of(1, 2, secondary=(r"10\.0\.0\.3",), auto_failover_policy=Failover(FailoverLimits("2", "80")))
    reason = judged(cluster(), change).reason
    assert f"after the loss of {A}, 2 brokers ({B}, {C}) would have" in reason
    assert f"after the loss of {A}, 3 brokers ({B}, {C}, {D}) would have 27 topics" in reason


def test_another_group_that_nothing_is_taken_from_is_not_judged() -> None:
    """A group that is too full already stops no other one that leaves it as it is."""
    full = group_of(3, name="news").after
    assert full is not None
    isolation = cluster(load(10, 0), load(10, 0), load(0, 10, cpu=99.0), load(10, 0), policies={"news": full})
    assert judged(isolation, policy=a_policy(guards={"least_brokers": 1})).passed


def test_a_group_that_goes_needs_no_room() -> None:
    """Every namespace is left more brokers than before."""
    there = group_of(1, 2)
    assert there.after is not None
    assert judged(cluster(*SPILLED, policies={"shop": there.after}), there.inverse).passed


def test_a_namespace_that_leaves_the_group_needs_room_elsewhere() -> None:
    """Where the group gives up a namespace, the brokers of all others come to carry it."""
    wide = group_of(1, 2, namespaces=("shop/.*", "news/.*"))
    change = SetIsolation(pulsar_cluster="local", policy="shop", before=wide.after, after=group_of(1, 2).after)
    assert wide.after is not None
    isolation = cluster(*SPILLED, policies={"shop": wide.after})
    refused(f"2 brokers ({C}, {D}) would be at 100 % CPU", isolation=isolation, change=change)


PROTECTING = a_policy(apply={"protected_namespaces": [NEWS]})


def test_a_protected_namespace_loses_no_broker() -> None:
    """It is not of the group, and could not be on the group's brokers any more."""
    words = f"{NEWS}, which could not be on {A}, {B} any more, is protected"
    refused(words, isolation=cluster(), policy=PROTECTING, guard=Protected())


@cases(
    "change",
    ("a group of brokers that run nowhere", group_of(9)),
    ("a group that goes", group_of(1, 2).inverse),
)
def test_a_protected_namespace_that_loses_nothing_is_no_obstacle(change: SetIsolation) -> None:
    policies = {} if change.before is None else {"shop": change.before}
    assert judged(cluster(policies=policies), change, PROTECTING, Protected()).passed


HEARTBEATS = ("pulsar/10.0.0.3:8080", "pulsar/local/10.0.0.3:8080", "sla-monitor/local/10.0.0.3:8080")


def test_heartbeats_are_of_no_group() -> None:
    """A group of `.*` is about none of them, and they lose no broker to it; each stays with its own."""
    everything = group_of(1, 2, namespaces=(".*",))
    isolation = cluster(namespaces=(NEWS, SHOP, *HEARTBEATS))
    assert isolation.claimed(everything.after) == (NEWS, SHOP)
    then = isolation.after(everything)
    assert [then.allowed(name) for name in HEARTBEATS] == [None] * 3
    assert isolation.losing(isolation.after(group_of(1, 2))).keys() == {NEWS, SHOP}


CHECKS: dict[str, Callable[[], Guard]] = {
    each.name: each for each in (GroupUnclaimed, GroupBrokers, GroupRoom, Protected)
}


def test_ten_thousand_namespaces_take_no_minute() -> None:
    """Twenty policies and a hundred brokers: namespaces that the same policies are about are worked out once."""
    hosts = {number: [f"10.0.{number}.{each}:8080" for each in range(5)] for number in range(20)}
    brokers = [broker for each in hosts.values() for broker in each]
    spaces = tuple(sorted(f"t{number % 200}/ns{number}" for number in range(10_000)))
    groups = {
        f"t{number}": IsolationPolicy((f"t{number}/.*",), (rf"10\.0\.{number}\..*",), (), Failover())
        for number in range(1, 20)
    }
    change = group_of(0, name="t0", primary=(r"10\.0\.0\..*",))
    loads = {
        broker: LoadOfBroker(topics=dict.fromkeys(spaces[at::100], 1), used=Usage(cpu=0.1, direct_memory=0.1))
        for at, broker in enumerate(brokers)
    }
    isolation = Isolation(policies=groups, loads=loads, namespaces=spaces)
    policy = a_policy(apply={"protected_namespaces": ["no/one"]}, guards={"least_brokers": 1})
    for name, guard in CHECKS.items():
        began = process_time()
        judged(isolation, change, policy, guard())
        # Worked out for each namespace it would be hundreds; a busy machine was seen to make five of what takes two.
        assert process_time() - began < 20 * yardstick(), name
