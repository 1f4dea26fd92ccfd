"""Moves of business bundles: which, where to, when to stop, and why not."""

from __future__ import annotations

from fractions import Fraction
from time import process_time
from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from pulsar_steward.facts.load_manager import BrokerUsage, load_manager_of
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.plan import Placement
from pulsar_steward.model.units import MEGABYTE
from pulsar_steward.planners.bundles.balance import PLANNER
from pulsar_steward.planners.bundles.facts import Load, PlacedBundle
from tests.beside import yardstick
from tests.builders import NOW, a_policy, broker
from tests.cases import row_by_row
from tests.unit.facts.test_load_manager import MODULAR
from tests.unit.planners.bundles.scenes import (
    FIELDS,
    FULL_BROKER,
    LOADS,
    NAMESPACE,
    a_stay,
    assert_undoable,
    finding,
    over_quota,
    uneven_scene,
    ways,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.golden import Golden

SKEW = finding("broker-load-skew", broker(0))
ON_ONE = [a_stay(0, number) for number in range(20)]
"""20 bundles of 100 topics each, all on one of three brokers."""


def spread_of(brokers: int, placed: Mapping[str, str], by_bundle: Mapping[str, PlacedBundle]) -> Fraction:
    """Squared distances of brokers from the mean, in units of it or of what the check takes for a full broker."""
    spread = Fraction(0)
    for at, least in enumerate(FULL_BROKER):
        held = {broker(number): 0 for number in range(brokers)}
        for bundle, owner in placed.items():
            mean = by_bundle[bundle].mean
            held[owner] += (mean.topics, mean.bytes, mean.clients)[at]
        middle = Fraction(sum(held.values()), brokers)
        spread += sum(((amount - middle) / max(middle, Fraction(least))) ** 2 for amount in held.values())
    return spread


def peak_of(load: Load, other: Load) -> Load:
    return Load(**{field: max(getattr(load, field), getattr(other, field)) for field in FIELDS})


def test_bundles_go_from_the_full_broker_to_the_empty_ones() -> None:
    """Bundles move from the full broker until all are near the mean, and the batch has the topics before and after."""
    proposal = PLANNER.proposal(uneven_scene(3, ON_ONE))

    (batch,) = proposal.batches
    assert (batch.kind, batch.findings, batch.unit) == ("bundle_balance", (SKEW,), "topics")
    assert batch.before == (Placement(broker(0), 2000), Placement(broker(1), 0), Placement(broker(2), 0))
    assert all(500 <= place.count <= 834 for place in batch.after)
    assert sum(place.count for place in batch.after) == 2000
    assert proposal.notes == ()


def test_a_move_is_described_and_can_be_undone(golden: Golden) -> None:
    step = PLANNER.proposal(uneven_scene(3, ON_ONE)).batches[0].steps[0]
    assert_undoable(step)
    golden(step.why)
    golden(step.effect)


def test_what_lowers_the_spread_for_the_fewest_clients_goes_first() -> None:
    crowded = Load(topics=100, bytes=MEGABYTE, producers=400, consumers=400)
    same = msgspec.structs.replace(crowded, producers=5, consumers=5)
    stays = [a_stay(0, number, crowded, now=crowded, mean=same, peak=same) for number in range(16)]
    stays += [a_stay(0, number, same) for number in range(16, 20)]

    moved = ways(PLANNER.proposal(uneven_scene(3, stays)))

    assert {bundle for bundle, *_ in moved[:4]} == {stay.bundle for stay in stays[16:]}


def test_a_bundle_whose_peak_does_not_fit_stays() -> None:
    """A bundle stays where its peak would not fit on the target, although its mean would."""
    mean = Load(topics=400, bytes=10 * MEGABYTE)
    burst = msgspec.structs.replace(mean, bytes=900 * MEGABYTE)
    stays = [a_stay(0, number, mean, peak=mean) for number in range(4)]
    stays += [a_stay(1, 4, Load(topics=10, bytes=0), peak=Load(topics=10, bytes=50 * MEGABYTE))]
    calm = [*stays, a_stay(0, 5, mean)]
    bursting = [*stays, a_stay(0, 5, mean, peak=burst)]

    def moved(every: list[PlacedBundle]) -> set[str]:
        return {bundle for bundle, *_ in ways(PLANNER.proposal(uneven_scene(2, every)))}

    assert moved(calm)
    assert calm[-1].bundle not in moved(bursting)


@row_by_row(
    "fields, words",
    ({"unread": ("shop/orders",)}, "the snapshot is partial without shop/orders"),
    ({"policy": a_policy(plan={"standing_snapshots": 3})}, "has stood for 3 snapshots"),
    ({"claimed": frozenset({TC_NAMESPACE})}, "once that batch is proved"),
    ({"snapshots": 2}, "3 complete looks are needed within 6 h before bundles are moved, and there are 2"),
)
def test_why_nothing_is_proposed(fields: dict[str, Any], words: str) -> None:
    """The planner gives a single note with the reason when it proposes no move."""
    proposal = PLANNER.proposal(uneven_scene(3, ON_ONE, **fields))

    assert proposal.batches == ()
    (note,) = proposal.notes
    assert words in note


@row_by_row(
    "fields, words",
    ({"claimed": frozenset({NAMESPACE})}, "this plan splits some"),
    ({"findings": (SKEW, finding("bundle-flapping", f"{NAMESPACE}/{ON_ONE[0].bundle}"))}, "move to and fro"),
    ({"policy": a_policy(apply={"protected_namespaces": [NAMESPACE]})}, "Guard protected keeps bundles"),
    ({"policy": a_policy(brokers={"draining": [broker(1), broker(2)]})}, "Guard target_allowed keeps bundles"),
)
def test_bundles_that_are_left_where_they_are(fields: dict[str, Any], words: str) -> None:
    """Bundles that are split, flapping, protected or without an allowed target stay, and a note says why."""
    proposal = PLANNER.proposal(uneven_scene(3, ON_ONE, **fields))

    assert proposal.batches == ()
    assert any(words in note for note in proposal.notes)
    assert any("no move evens that out" in note for note in proposal.notes)


def test_brokers_that_isolation_excludes_get_nothing() -> None:
    moved = ways(PLANNER.proposal(uneven_scene(3, ON_ONE, allowed={NAMESPACE: (broker(0), broker(2))})))

    assert {target for *_, target in moved} == {broker(2)}


def test_a_bundle_with_a_hazard_stays_and_others_go() -> None:
    """A bundle with a hazard stays while others move, and a note names the guard and the bundle."""
    held = ON_ONE[3]
    proposal = PLANNER.proposal(uneven_scene(3, ON_ONE, risks=over_quota(held.name)))
    moved = {bundle for bundle, *_ in ways(proposal)}
    assert moved
    assert held.bundle not in moved
    assert any("Guard producers_return" in note and held.name in note for note in proposal.notes)


def test_no_broker_gets_what_its_own_shedding_would_take_away() -> None:
    """No broker gets more moves, all of a plan counted, than its own shedding would leave on it."""
    usages = tuple(
        BrokerUsage(broker=broker(n), percent=60.0 if n == 0 else 20.0, bytes=20e6, messages=0.0) for n in range(3)
    )
    strict = {
        "loadBalancerBrokerThresholdShedderPercentage": "0",
        "loadBalancerBundleUnloadMinThroughputThreshold": "0",
    }
    manager = load_manager_of(MODULAR | strict)
    proposal = PLANNER.proposal(uneven_scene(3, ON_ONE, load_manager=manager, usages=usages))

    targets = [target for _, _, target in ways(proposal)]
    assert sorted(targets) == [broker(1)] * 3 + [broker(2)] * 3
    assert "own shedding would undo it is not known: by then usages may be 2 points and traffic 10% worse" in " ".join(
        proposal.notes
    )
    unknown = PLANNER.proposal(uneven_scene(3, ON_ONE, load_manager=manager))
    assert (unknown.batches, "the usage that the brokers' own shedding" in " ".join(unknown.notes)) == ((), True)


def test_a_bundle_that_was_moved_lately_rests() -> None:
    proposal = PLANNER.proposal(uneven_scene(3, ON_ONE, moved_at={ON_ONE[0].name: NOW}, moved=2))

    assert ON_ONE[0].bundle not in {bundle for bundle, *_ in ways(proposal)}
    assert any("Guard cooldown" in note for note in proposal.notes)
    assert any("2 bundles that were elsewhere" in note for note in proposal.notes)


def test_no_more_moves_than_the_policy_lets(golden: Golden) -> None:
    proposal = PLANNER.proposal(uneven_scene(3, ON_ONE, policy=a_policy(bundle_balance_remedy={"most_moves": 2})))

    assert len(ways(proposal)) == 2
    golden(proposal.notes[0])


def test_a_burst_that_is_over_is_no_reason(golden: Golden) -> None:
    """A high load in the latest snapshot alone leads to no move."""
    burst = Load(topics=100, bytes=500 * MEGABYTE)
    stays = [a_stay(number % 3, number, now=burst if number % 3 == 0 else Load(topics=100)) for number in range(21)]
    proposal = PLANNER.proposal(uneven_scene(3, stays))

    assert proposal.batches == ()
    golden(proposal.notes[0])


ALIKE = Load(topics=100, bytes=MEGABYTE, producers=5, consumers=5)


@example(brokers=3, loads=[(0, ALIKE, ALIKE)] * 20, least=10)
@given(
    brokers=st.integers(2, 5), loads=st.lists(st.tuples(st.integers(0, 4), LOADS, LOADS), max_size=25), least=st.just(0)
)
def test_every_move_improves_and_each_bundle_moves_once(
    brokers: int, loads: list[tuple[int, Load, Load]], least: int
) -> None:
    """For any load each move lowers the spread, no bundle moves twice, and the same facts give the same bytes."""
    stays = [
        a_stay(owner % brokers, number, load, peak=peak_of(load, other), now=other)
        for number, (owner, load, other) in enumerate(loads)
    ]
    planning = uneven_scene(brokers, stays)
    by_bundle = {stay.bundle: stay for stay in stays}
    placed = {stay.bundle: stay.owner for stay in stays}

    proposal = PLANNER.proposal(planning)

    moved = ways(proposal)
    assert len(moved) >= least
    assert len({bundle for bundle, *_ in moved}) == len(moved)
    spread = spread_of(brokers, placed, by_bundle)
    for bundle, source, target in moved:
        assert placed[bundle] == source != target
        placed[bundle] = target
        before, spread = spread, spread_of(brokers, placed, by_bundle)
        assert spread < before
    topics = {broker(number): 0 for number in range(brokers)}
    for bundle, owner in placed.items():
        topics[owner] += by_bundle[bundle].now.topics
    for batch in proposal.batches:
        assert {place.broker: place.count for place in batch.after} == topics
    assert msgspec.json.encode(proposal) == msgspec.json.encode(PLANNER.proposal(planning))


def test_a_large_cluster_is_balanced_in_time() -> None:
    """A plan for 100 brokers with 19,800 bundles takes less than 40 yardsticks; it took 7 when measured."""
    load = Load(topics=50, bytes=MEGABYTE // 2, producers=5, consumers=5)
    stays = [a_stay(1 + number % 99, number, load) for number in range(200 * 99)]
    began = process_time()

    proposal = PLANNER.proposal(uneven_scene(100, stays))

    assert process_time() - began < 40 * yardstick()
    assert len(ways(proposal)) == 50
    assert {target for *_, target in ways(proposal)} == {broker(0)}
