"""Real brokers with either load manager, with its own shedding off and on, and watched at it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from lab import placement
from lab.faults.real.ground import COMMON_SETTINGS, Ground
from lab.faults.real.operator import operator_of, operators_of, shown_topics
from lab.waiting import wait_until
from pulsar_steward.model.step import UnloadBundle
from tests.live.healing import Healer, found
from tests.live.plots import owners, plot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from lab.cluster import Lab
    from lab.pool import LabPool

pytestmark = [pytest.mark.live, pytest.mark.extended("tests/apply/test_load_managers.py")]

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
WATCHED_MODES = {
    "modular": {
        **WATCHED,
        "loadBalancerLoadSheddingStrategy": f"{IMPL}ThresholdShedder",
        "loadBalancerBundleUnloadMinThroughputThreshold": "0",
    },
    "extensible": {
        **EXTENSIBLE,
        **WATCHED,
        "loadBalancerBrokerLoadTargetStd": "0.05",
        "loadBalancerSheddingConditionHitCountThreshold": "0",
        "loadBalanceSheddingDelayInSeconds": "1",
    },
}
BALLAST_MESSAGES, BALLAST_BYTES = 100, 1_000_000
"""Of 256 MiB of direct memory that a broker of a lab has."""

MEMORY = "pulsar_lb_directMemory_usage"
BALLAST_PERCENT = 25.0
SHED_WITHIN_S = 300.0
"""Every minute the leader looks at what brokers report once a minute at least."""

SHOWN_WITHIN_S = 60.0
BUNDLES, TOPICS = 3, 30


@pytest.fixture(scope="module", params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """The load manager, and whether it sheds."""
    return str(request.param)


@pytest.fixture(scope="module", params=WATCHED_MODES)
def shedding_lab(request: pytest.FixtureRequest, labs: LabPool) -> Iterator[Lab]:
    """Three brokers that shed every minute, by what each of them has in its direct memory."""
    lab = labs.lab(broker_settings=dict(COMMON_SETTINGS) | WATCHED_MODES[request.param])
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
        put(here, bundle, next(topic for topic in topics if placement.holds(bundle, topic)), broker)
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


def test_what_shedding_would_undo_it_undoes(shedding_lab: Lab, tmp_path: Path) -> None:
    """Shedding takes back some moves that the guard refused and that were made by hand, and leaves a permitted one.

    One broker uses more of its memory than the others, which no move takes from it. `TransferShedder` takes any of a
    broker's bundles but one that has a large part of its throughput, so the test uses several bundles. Such a one it
    exchanges for smaller ones of the emptiest broker, so the bundle that is to be left there has the most throughput.
    """
    lab = shedding_lab
    idle, full, other = (broker.broker_id for broker in lab.brokers)
    with (
        plot(lab, "shedding-watched", 5) as here,
        Healer.on(lab, tmp_path, checks=()) as healer,
        closing(Ground(lab, f"pulsar/{full}", None, operator_of(lab))) as pinned,
    ):
        left, *undone = busy(here, idle)
        weigh_down(pinned, full)

        permitted = UnloadBundle(namespace=here.namespace, bundle=left, source=idle, target=other)
        healer.heal(healer.plan_of(permitted))
        for bundle in undone:
            refused = UnloadBundle(namespace=here.namespace, bundle=bundle, source=idle, target=full)
            healer.refused_by("shedding", refused)
        assert owners(here) == dict.fromkeys(undone, idle) | {left: other}

        for bundle in undone:
            here.admin.unload(here.namespace, bundle, full)
        there = dict.fromkeys(undone, full) | {left: other}
        wait_until(lambda: owners(here) == there, "they are there all the same", SHOWN_WITHIN_S, 0.5)
        wait_until(lambda: taken(here, undone, full), "some are taken back", SHED_WITHIN_S, 1)
        assert owners(here)[left] == other


def taken(here: Ground, bundles: Sequence[str], broker: str) -> bool:
    """True once any of these bundles is another broker's."""
    return any(owner != broker for bundle, owner in owners(here).items() if bundle in bundles)


def busy(here: Ground, broker: str) -> list[str]:
    """Has each bundle of a ground on a broker, with twice as much in and out of the first; returns the bundles."""
    bundles = here.admin.bundles(here.namespace)
    names = [f"t{number}" for number in range(TOPICS)]
    for bundle in bundles:
        topic = next(topic for topic in map(here.topic, names) if placement.holds(bundle, topic))
        here.take(topic)
        put(here, bundle, topic, broker)
        here.flow(topic, 80 if bundle == bundles[0] else 40, 1000)
        here.until(topic, lambda shown: shown["msgThroughputIn"] > 0, "something goes in")
    return list(bundles)


def weigh_down(pinned: Ground, broker: str) -> None:
    """Fills a broker's memory by a topic beside its heartbeat's: nobody else may have that, and no shedder takes it."""
    ballast = pinned.topic("ballast")
    pinned.shared(ballast, receiver_queue_size=1)
    producer = pinned.producer(ballast, batched=False)
    for _ in range(BALLAST_MESSAGES):
        producer.send(b"x" * BALLAST_BYTES)
    names = [each.broker_id for each in pinned.lab.brokers]
    operator = operators_of(pinned.lab)[names.index(broker)]
    wait_until(
        lambda: any(name.startswith(MEMORY) and value > BALLAST_PERCENT for name, value in operator.metrics()),
        f"{broker} has more in its memory than the others",
        SHOWN_WITHIN_S,
        1,
    )
