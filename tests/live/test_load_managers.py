"""Real brokers with either load manager, with its own shedding off and on, and watched at it."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from lab import placement
from lab.faults.real.ground import COMMON_SETTINGS, Ground
from lab.faults.real.operator import operator_of, operators_of, shown_topics
from lab.waiting import wait_until
from pulsar_steward.facts.load_manager import after_move, move_of
from pulsar_steward.facts.shedding import sheds
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.step import UnloadBundle
from pulsar_steward.planners.from_snapshot import load_manager_in, traffic_in, usages_in
from tests.live.healing import Healer, found
from tests.live.plots import owners, plot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from lab.cluster import Lab
    from lab.pool import LabPool
    from pulsar_steward.snapshots.read import Snapshot

pytestmark = [pytest.mark.live, pytest.mark.extended("tests/apply/test_guards_before_calls.py")]

IMPL = "org.apache.pulsar.broker.loadbalance.impl."
EXTENSIBLE = {"loadManagerClassName": "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"}
SHEDDING = {
    "loadBalancerSheddingEnabled": "true",
    "loadBalancerSheddingIntervalMinutes": "600",  # it is asked what it would do; nothing else moves a bundle meanwhile
    "loadBalancerReportUpdateMinIntervalMillis": "1000",
}
OVERLOADED = {
    "loadBalancerLoadSheddingStrategy": f"{IMPL}OverloadShedder",
    "loadBalancerBrokerOverloadedThresholdPercentage": "1",
}
NEVER_EVEN = {"loadBalancerBrokerLoadTargetStd": "0.0"}
MODES = {
    "modular": {},
    "modular, shedding": SHEDDING | OVERLOADED,
    "extensible": EXTENSIBLE,
    "extensible, shedding": EXTENSIBLE | SHEDDING | NEVER_EVEN,
}
WATCHED = {
    **SHEDDING,
    "loadBalancerSheddingIntervalMinutes": "1",
    "loadBalancerReportUpdateThresholdPercentage": "1",
    "loadBalancerHistoryResourcePercentage": "0.0",
    # All brokers of one machine report its processor and network; direct memory is each one's own.
    "loadBalancerCPUResourceWeight": "0",
    "loadBalancerBandwidthInResourceWeight": "0",
    "loadBalancerBandwidthOutResourceWeight": "0",
    "loadBalancerDirectMemoryResourceWeight": "1",
    # What is not acknowledged stays in the cache of the broker that has its topic.
    "cacheEvictionByMarkDeletedPosition": "true",
    "managedLedgerCacheEvictionTimeThresholdMillis": "36000000",
    "managedLedgerCacheSizeMB": "160",
}


@dataclass(frozen=True, kw_only=True)
class Watched:
    """A lab whose brokers shed every minute, with what is foretold there; brokers and bundles by number.

    Attributes:
        settings: Settings of the brokers.
        bundles: Broker and rate of each bundle: so many messages a second go in and out.
        ballast: Megabytes that brokers have in their direct memory, which no move takes from them.
        left: Moves that shedding leaves, by bundle and target.
        undone: Moves that it undoes.
        named: True if the model also names the bundles that are taken.
    """

    settings: dict[str, str]
    bundles: tuple[tuple[int, int], ...]
    ballast: dict[int, int]
    left: dict[int, int]
    undone: dict[int, int]
    named: bool = False


BY_USAGE: Any = {
    # Broker 1 uses more of its memory. `TransferShedder` takes any of a broker's bundles but one that has a large part
    # of its throughput, so it gets several. Such a one it exchanges for smaller ones of the emptiest broker, so the
    # bundle that is to be left there has the most throughput.
    "bundles": ((0, 80), *((0, 40),) * 4),
    "ballast": {1: 100},
    "left": {0: 2},
    "undone": dict.fromkeys(range(1, 5), 1),
}
WATCHED_MODES = {
    "threshold": Watched(
        settings={
            **WATCHED,
            "loadBalancerLoadSheddingStrategy": f"{IMPL}ThresholdShedder",
            "loadBalancerBundleUnloadMinThroughputThreshold": "0",
        },
        **BY_USAGE,
    ),
    "transfer": Watched(
        settings={
            **EXTENSIBLE,
            **WATCHED,
            "loadBalancerBrokerLoadTargetStd": "0.05",
            "loadBalancerSheddingConditionHitCountThreshold": "0",
            "loadBalanceSheddingDelayInSeconds": "1",
        },
        **BY_USAGE,
    ),
    "average": Watched(
        settings={
            **WATCHED,
            "loadBalancerLoadSheddingStrategy": f"{IMPL}AvgShedder",
            "loadBalancerLoadPlacementStrategy": f"{IMPL}AvgShedder",
            "loadBalancerDistributeBundlesEvenlyEnabled": "false",
            "loadBalancerAvgShedderLowThreshold": "10",
            "loadBalancerAvgShedderHighThreshold": "20",
            "loadBalancerAvgShedderHitCountHighThreshold": "1",
            "loadBalancerAvgShedderHitCountLowThreshold": "2",
            "maxUnloadPercentage": "0.5",
            "minUnloadMessage": "10",
        },
        # Broker 1 is the fullest, 0 the emptiest. The first bundle has more than half of what the two then differ by,
        # the second has less.
        bundles=((0, 120), (0, 30), (0, 60), (2, 30), (2, 30)),
        ballast={1: 100, 2: 40},
        left={0: 1},
        undone={1: 1},
        named=True,
    ),
    "uniform": Watched(
        settings={
            **WATCHED,
            "loadBalancerLoadSheddingStrategy": f"{IMPL}UniformLoadShedder",
            "loadBalancerMsgRateDifferenceShedderThreshold": "1000",
            "maxUnloadPercentage": "0.5",
            "minUnloadMessage": "100",
        },
        # The second move alone makes broker 1 the busiest beside one without traffic.
        bundles=((2, 40), (0, 40), (0, 40), *((1, 40),) * 3),
        ballast={},
        left={1: 2},
        undone={2: 1},
        named=True,
    ),
}
BALLAST_BYTES = 1_000_000
DIRECT_BYTES = 256 << 20
"""Direct memory that a broker of a lab has."""

MEMORY = "pulsar_lb_directMemory_usage"
SHED_WITHIN_S = 300.0
"""Every minute the leader looks at what brokers report once a minute at least."""

SHOWN_WITHIN_S = 60.0
BUNDLES, TOPICS = 3, 30


@pytest.fixture(scope="module", params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=WATCHED_MODES)
def watched(request: pytest.FixtureRequest) -> Watched:
    return WATCHED_MODES[request.param]


@pytest.fixture(scope="module")
def shedding_lab(watched: Watched, labs: LabPool) -> Iterator[Lab]:
    """Three brokers that shed every minute."""
    lab = labs.lab(broker_settings=dict(COMMON_SETTINGS) | watched.settings)
    yield lab
    labs.discard(lab)


@pytest.fixture(scope="module")
def lab(labs: LabPool, mode: str) -> Iterator[Lab]:
    """Three brokers with that load manager."""
    lab = labs.lab(broker_settings=dict(COMMON_SETTINGS) | MODES[mode])
    yield lab
    labs.discard(lab)


def test_piled_up_coordinators_are_found_and_spread(lab: Lab, tmp_path: Path) -> None:
    full = lab.pile_up_tcs()
    with Healer.on(lab, tmp_path, checks=("tc-skew",)) as healer:
        snapshot = healer.observe()
        assert not snapshot.meta().unread
        assert ("tc-skew", healer.cluster) in found(snapshot)
        assert all(row.cpu_percent is not None for row in snapshot.brokers())
        plan = healer.plan(snapshot)
        (batch,) = plan.batches
        healer.heal(plan)
        counts = lab.tc_placement()
        assert max(counts.values()) - min(counts.values()) <= 2, counts
        healer.until_gone(("tc-skew", healer.cluster))
        healer.heal(healer.rollback_plan(plan, batch))
        assert lab.tc_placement()[full] == sum(counts.values())


def test_a_move_is_proposed_where_shedding_would_leave_it(lab: Lab, mode: str, tmp_path: Path) -> None:
    policy = {"broker_load_skew": {"minimum_topics": TOPICS // 2}, "bundle_balance_remedy": {"least_snapshots": 1}}
    with (
        plot(lab, "one-full-broker", BUNDLES) as here,
        Healer.on(lab, tmp_path, policy, checks=("broker-load-skew",)) as healer,
    ):
        full = lab.brokers[0].broker_id
        fill(here, full)
        snapshot = healer.observe()
        assert ("broker-load-skew", full) in found(snapshot)
        plan = healer.plan(snapshot)
        if "shedding" not in mode:
            healer.heal(plan)
            assert full in (owned := set(owners(here).values()))
            assert len(owned) > 1
            return
        assert plan.batches == ()
        strategy = "TransferShedder" if "extensible" in mode else "OverloadShedder"
        assert f"the brokers' own shedding would undo it: {strategy} takes from" in " ".join(plan.notes)
        bundle, other = next(iter(owners(here))), lab.brokers[1].broker_id
        move = UnloadBundle(namespace=here.namespace, bundle=bundle, source=full, target=other)
        healer.refused_by("shedding", move)
        assert set(owners(here).values()) == {full}


def fill(here: Ground, broker: str) -> None:
    """Has all topics of a ground on one broker, with something going in and out of each."""
    topics = [here.topic(f"t{number}") for number in range(TOPICS)]
    for bundle in here.admin.bundles(here.namespace):
        put(here, bundle, topic_in(here, bundle), broker)
    for topic in topics:
        here.shared(topic, receiver_queue_size=100)
        here.flow(topic, 20, 1000)
    wait_until(lambda: set(topics) <= shown_topics(here.lab).keys(), "all topics are shown", SHOWN_WITHIN_S, 0.5)
    here.until(topics[0], lambda shown: shown["msgThroughputIn"] > 0, "something goes in")
    assert set(owners(here).values()) == {broker}


def put(here: Ground, bundle: str, topic: str, broker: str) -> None:
    """Has a bundle on a broker, by a topic in it; the extensible load manager refuses what is there already."""

    def there() -> bool:
        here.admin.look_up(topic)
        if owners(here).get(bundle) == broker:
            return True
        here.admin.unload(here.namespace, bundle, broker)
        return False

    wait_until(there, f"{here.namespace}/{bundle} is on {broker}", SHOWN_WITHIN_S, 0.5)


def test_namespaces_of_a_group_are_kept_apart(lab: Lab, tmp_path: Path) -> None:
    policy = {"tc_skew": {"cooldown_minutes": 0}}
    with (
        plot(lab, "apart-1", 1) as one,
        plot(lab, "apart-2", 1) as two,
        Healer.on(lab, tmp_path, policy, checks=()) as healer,
    ):
        first, second, _ = (broker.broker_id for broker in lab.brokers)
        for here, broker in ((one, first), (two, second)):
            here.shared(here.topic()).close()
            here.admin.set_anti_affinity(here.namespace, "apart")
            (bundle,) = here.admin.bundles(here.namespace)
            put(here, bundle, here.topic(), broker)
        (bundle,) = owners(one)
        move = UnloadBundle(namespace=one.namespace, bundle=bundle, source=first, target=second)
        healer.refused_by("anti_affinity", move)
        assert owners(one) == {bundle: first}


def test_what_shedding_would_undo_it_undoes(shedding_lab: Lab, watched: Watched, tmp_path: Path) -> None:
    """Shedding takes back some moves that the guard refused and that were made by hand, and leaves a permitted one."""
    lab, brokers = shedding_lab, [broker.broker_id for broker in shedding_lab.brokers]
    with (
        plot(lab, "shedding-watched", len(watched.bundles)) as here,
        Healer.on(lab, tmp_path, checks=()) as healer,
        ExitStack() as pinned,
    ):
        bundles = busy(here, [(brokers[number], rate) for number, rate in watched.bundles])
        for number, megabytes in watched.ballast.items():
            ground = Ground(lab, f"pulsar/{brokers[number]}", None, operator_of(lab))
            weigh_down(pinned.enter_context(closing(ground)), brokers[number], megabytes)

        def move(number: int, target: int) -> UnloadBundle:
            source, bundle = brokers[watched.bundles[number][0]], bundles[number]
            return UnloadBundle(namespace=here.namespace, bundle=bundle, source=source, target=brokers[target])

        for number, target in watched.left.items():
            healer.heal(healer.plan_of(move(number, target)))
            until_it_flows(here, bundles[number], watched.bundles[number][1])
        undone = [move(*each) for each in watched.undone.items()]
        for each in undone:
            healer.refused_by("shedding", each)
        there = dict(zip(bundles, (brokers[number] for number, _ in watched.bundles), strict=True))
        there |= {bundles[number]: brokers[target] for number, target in watched.left.items()}
        assert owners(here) == there

        foretold = next_moves(healer.observe(), undone) if watched.named else set()
        for each in undone:
            here.admin.unload(here.namespace, each.bundle, each.target)
        there |= {each.bundle: each.target for each in undone}
        wait_until(lambda: owners(here) == there, "they are there all the same", SHOWN_WITHIN_S, 0.5)
        wait_until(lambda: taken(here, undone), "some are taken back", SHED_WITHIN_S, 1)
        now = owners(here)
        for number, target in watched.left.items():
            assert now[bundles[number]] == brokers[target]
        if watched.named:
            moved = {f"{here.namespace}/{bundle}" for bundle, owner in now.items() if owner != there[bundle]}
            assert moved <= foretold  # not to whom: usages change while brokers look


def next_moves(snapshot: Snapshot, moves: Sequence[UnloadBundle]) -> set[str]:
    """The bundles that would be shed next, by the figures of a snapshot, after moves."""
    manager = load_manager_in(snapshot)
    usages, owned = usages_in(snapshot, manager), traffic_in(snapshot)
    assert not isinstance(manager, Unknown)
    assert not isinstance(usages, Unknown)
    for move in moves:
        name = f"{move.namespace}/{move.bundle}"
        traffic = owned[move.source].pop(name)
        owned[move.target][name] = traffic
        usages = after_move(usages, move_of(move, traffic))
    found = sheds(manager, usages)
    assert not isinstance(found, Unknown)
    return {bundle for shed in found for bundle in shed.bundles(owned[shed.source])}


def taken(here: Ground, moves: Sequence[UnloadBundle]) -> bool:
    """True once any of these bundles is not where it was moved to, and has an owner."""
    now = owners(here)
    return any(now.get(each.bundle, each.target) != each.target for each in moves)


def topic_in(here: Ground, bundle: str) -> str:
    """A topic of a bundle."""
    names = (here.topic(f"t{number}") for number in range(TOPICS))
    return next(topic for topic in names if placement.holds(bundle, topic))


def busy(here: Ground, bundles: Sequence[tuple[str, int]]) -> list[str]:
    """Has each bundle of a ground on a broker, with so many messages a second in and out; returns the bundles."""
    found = list(here.admin.bundles(here.namespace))
    for bundle, (broker, rate) in zip(found, bundles, strict=True):
        topic = topic_in(here, bundle)
        here.take(topic)
        put(here, bundle, topic, broker)
        here.flow(topic, rate, 1000)
        until_it_flows(here, bundle, rate)
    return found


def until_it_flows(here: Ground, bundle: str, rate: int) -> None:
    """Waits until brokers show most of a bundle's traffic."""
    topic = topic_in(here, bundle)
    here.until(topic, lambda shown: min(shown["msgRateIn"], shown["msgRateOut"]) > rate / 2, "it flows")


def weigh_down(pinned: Ground, broker: str, megabytes: int) -> None:
    """Fills a broker's memory by a topic beside its heartbeat's: nobody else may have that, and no shedder takes it."""
    ballast = pinned.topic("ballast")
    pinned.shared(ballast, receiver_queue_size=1)
    producer = pinned.producer(ballast, batched=False)
    for _ in range(megabytes):
        producer.send(b"x" * BALLAST_BYTES)
    names = [each.broker_id for each in pinned.lab.brokers]
    operator = operators_of(pinned.lab)[names.index(broker)]
    percent = 60 * megabytes * BALLAST_BYTES / DIRECT_BYTES
    wait_until(
        lambda: any(name.startswith(MEMORY) and value > percent for name, value in operator.metrics()),
        f"{broker} has more in its memory than the others",
        SHOWN_WITHIN_S,
        1,
    )
