"""Bundles of a broker that is about to be shut down, and groups of brokers in one plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pulsar_steward.facts.isolation import Isolation, LoadOfBroker
from pulsar_steward.facts.load_manager import BrokerUsage, load_manager_of
from pulsar_steward.facts.room import Usage
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.plan import Placement
from pulsar_steward.model.step import SetIsolation, UnloadBundle
from pulsar_steward.model.units import MEGABYTE
from pulsar_steward.planners.base import Proposal
from pulsar_steward.planners.bundles.drain import PLANNER
from pulsar_steward.planners.bundles.facts import BundleFacts, LeavingFacts, Load, PlacedBundle
from pulsar_steward.planners.bundles.groups import PLANNER as GROUPS_PLANNER
from pulsar_steward.planners.registry import make_plan
from tests.builders import CALM_BROKER, NOW, a_policy, broker, hashed_tc_bundles, planning_facts_with
from tests.cases import cases
from tests.unit.facts.test_load_manager import MODULAR
from tests.unit.planners.bundles.scenes import (
    FULL_BROKER,
    LOADS,
    NAMESPACE,
    a_stay,
    assert_undoable,
    finding,
    load_of_stays,
    ways,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.policy.schema import Policy
    from tests.golden import Golden

CALM = Usage(cpu=10.0, direct_memory=5.0)
IDLE = Load(topics=1)
TEN = [a_stay(0, number) for number in range(10)]
"""Ten bundles of 100 topics each, on the broker that drains."""


def draining(*numbers: int, **sections: Any) -> Policy:
    return a_policy(brokers={"draining": [broker(number) for number in numbers]}, **sections)


def drain_scene(
    brokers: int, stays: Sequence[PlacedBundle], sources: Sequence[int] = (0,), **fields: Any
) -> PlanningFacts:
    """A planning with draining brokers that own these bundles; `fields` are of `LeavingFacts` and the planning."""
    names = [broker(number) for number in sources]
    of_drain = {name: fields.pop(name) for name in LeavingFacts.__struct_fields__ if name in fields}
    usual: dict[str, Any] = {
        "brokers": load_of_stays(brokers, stays).brokers,
        "resources": {broker(number): CALM for number in range(brokers)},
        "leaving": {stay.name: stay for stay in stays if stay.owner in names},
    }
    facts = LeavingFacts(**{**usual, **of_drain})
    found = tuple(finding("broker-draining", name) for name in names)
    told: dict[str, Any] = {
        "findings": found, "bundles": BundleFacts(drain=facts), "policy": draining(*sources)
    }  # fmt: skip
    tc_bundles = fields.pop("tc_bundles", ())
    return planning_facts_with(brokers, tc_bundles, **{**told, **fields})


def of_coordinators(planning: PlanningFacts) -> list[PlacedBundle]:
    """The bundles of coordinators as the load of brokers knows them."""
    load = Load(topics=2)
    return [
        PlacedBundle(namespace=TC_NAMESPACE, bundle=each.bundle, owner=each.owner or "", mean=load, peak=load, now=load)
        for each in planning.tc_bundles
    ]


def targets(proposal: Proposal) -> dict[str, list[str]]:
    """The bundles that each broker is given."""
    given_to: dict[str, list[str]] = {}
    for bundle, _, target in ways(proposal):
        given_to.setdefault(target, []).append(bundle)
    return given_to


def test_all_bundles_go_to_the_brokers_that_stay() -> None:
    proposal = PLANNER.proposal(drain_scene(3, TEN))
    (batch,) = proposal.batches
    assert (batch.kind, batch.unit, batch.findings[0].subject) == ("broker_drain", "topics", broker(0))
    assert batch.before == (Placement(broker(0), 1000), Placement(broker(1), 0), Placement(broker(2), 0))
    assert batch.after == (Placement(broker(0), 0), Placement(broker(1), 500), Placement(broker(2), 500))
    assert len({bundle for bundle, *_ in ways(proposal)}) == 10
    assert proposal.notes == ()


def test_a_move_is_described_and_can_be_undone(golden: Golden) -> None:
    step = PLANNER.proposal(drain_scene(3, TEN)).batches[0].steps[0]
    assert_undoable(step)
    for text in (step.why, step.effect, step.undo_note):
        golden(text)


def test_the_fuller_of_those_that_stay_gets_less() -> None:
    """A broker that already carries more bundles is given fewer bundles of the draining broker."""
    stays = [*TEN, *(a_stay(1, 20 + number) for number in range(6))]
    given_to = targets(PLANNER.proposal(drain_scene(3, stays)))
    assert {target: len(bundles) for target, bundles in given_to.items()} == {broker(1): 2, broker(2): 8}


def test_coordinators_come_first_and_pulsars_own_last() -> None:
    ranges = hashed_tc_bundles([broker(0)] * 4 + [broker(1)] * 4, 16)
    scene = planning_facts_with(4, ranges)
    heavy = a_stay(0, 90, Load(topics=400, bytes=9 * MEGABYTE))
    own = a_stay(0, 0, IDLE, namespace="pulsar/functions")
    stays = [own, *TEN, heavy, *of_coordinators(scene)]
    (batch,) = PLANNER.proposal(drain_scene(4, stays, tc_bundles=ranges)).batches
    counts = [step.touched.coordinators for step in batch.steps]
    moving = [len(each.coordinators) for each in ranges if each.owner == broker(0)]
    assert counts == sorted(moving, reverse=True) + [0] * 12
    namespaces = [step.change.namespace for step in batch.steps]
    assert namespaces == [TC_NAMESPACE] * len(moving) + [NAMESPACE] * 11 + ["pulsar/functions"]
    assert batch.steps[len(moving)].touched.topics == 400
    to = {step.change.target for step in batch.steps[: len(moving)] if isinstance(step.change, UnloadBundle)}
    assert to == {broker(2), broker(3)}


def test_a_batch_is_no_larger_than_people_can_approve(golden: Golden) -> None:
    """The policy limits the moves of a batch and the batches of a plan, and a note counts the bundles that are left."""
    sections = {"broker_drain_remedy": {"most_moves": 4, "most_batches": 2}}
    planning = drain_scene(3, TEN, policy=draining(0, **sections))
    plan = make_plan(planning)
    assert [len(batch.steps) for batch in plan.batches] == [4, 4]
    assert plan.batches[0].after == plan.batches[1].before
    for batch in plan.batches:
        golden(batch.title)
    assert any("2 bundles of broker-00:8080 come with later plans" in note for note in plan.notes)


def test_titles_sort_as_batches_are_carried_out() -> None:
    """A plan keeps a drain's batches in their order, which is that of their titles, also if there are over ten."""
    sections = {"broker_drain_remedy": {"most_moves": 1, "most_batches": 12}}
    stays = [a_stay(0, number, Load(topics=100 - number)) for number in range(12)]
    plan = make_plan(drain_scene(3, stays, policy=draining(0, **sections)))
    assert [step.change.namespace for batch in plan.batches for step in batch.steps] == [NAMESPACE] * 12
    assert [batch.steps[0].touched.topics for batch in plan.batches] == [100 - number for number in range(12)]
    titles = [batch.title for batch in plan.batches]
    assert titles == sorted(titles)


def test_two_brokers_share_the_room_that_there_is() -> None:
    """Bundles of two draining brokers go to different brokers."""
    one, other = a_stay(0, 1, Load(topics=600)), a_stay(1, 2, Load(topics=600))
    proposal = PLANNER.proposal(drain_scene(4, [one, other], (0, 1)))
    assert [batch.findings[0].subject for batch in proposal.batches] == [broker(0), broker(1)]
    assert targets(proposal) == {broker(2): [one.bundle], broker(3): [other.bundle]}


REFUSED: dict[str, dict[str, Any]] = {
    "most brokers": {"sources": (0, 1)},
    "the last broker": {"brokers": 1, "policy": draining(0, broker_drain_remedy={"most_brokers_percent": 99})},
    "no CPU left": {"resources": {broker(number): Usage(cpu=60.0, direct_memory=1.0) for number in range(3)}},
    "no direct memory left": {"resources": {broker(number): Usage(cpu=1.0, direct_memory=60.0) for number in range(3)}},
    "a broker that does not tell": {"resources": {broker(0): CALM, broker(1): CALM}},
    "too many topics": {"policy": draining(0, broker_drain_remedy={"most_topics": 499})},
    "a partial snapshot": {"unread": (broker(2),)},
    "not for long enough": {"policy": draining(0, plan={"standing_snapshots": 3})},
}


@pytest.mark.parametrize("fields", REFUSED.values(), ids=REFUSED)
def test_nothing_is_moved_where_the_rest_could_not_take_it(golden: Golden, fields: dict[str, Any]) -> None:
    """A drain is refused as a whole where the other brokers lack room or facts are missing, and a note says why."""
    proposal = PLANNER.proposal(drain_scene(**{"brokers": 3, "stays": TEN, **fields}))
    assert proposal.batches == ()
    (note,) = proposal.notes
    golden(note)


def test_a_bundle_that_fits_nowhere_stays_with_its_reason(golden: Golden) -> None:
    stays = [a_stay(0, 1, Load(topics=300)), a_stay(0, 2, Load(topics=2000), peak=Load(topics=40_001))]
    others = [a_stay(number, 10 + number, Load(topics=10_000)) for number in (1, 2)]
    proposal = PLANNER.proposal(drain_scene(3, [*stays, *others]))
    assert [bundle for bundle, *_ in ways(proposal)] == [stays[0].bundle]
    (note,) = proposal.notes
    golden(note)


def test_room_is_used_up_as_bundles_come() -> None:
    """A bundle that is assigned to a broker reduces that broker's room for the next bundles."""
    resources = {broker(0): Usage(cpu=60.0, direct_memory=0.0), broker(1): Usage(cpu=70.0, direct_memory=0.0)}
    resources[broker(2)] = Usage(cpu=20.0, direct_memory=0.0)
    given_to = targets(PLANNER.proposal(drain_scene(3, TEN, resources=resources)))
    assert {target: len(bundles) for target, bundles in given_to.items()} == {broker(1): 1, broker(2): 9}


@cases(
    "fields, moved, words",
    ("isolated", {"allowed": {NAMESPACE: (broker(0), broker(2))}}, {broker(2): 10}, None),
    ("isolated there", {"allowed": {NAMESPACE: (broker(0),)}}, {}, "leave it to draining brokers alone"),
    ("resting", {"moved_at": {TEN[3].name: NOW}}, {broker(1): 5, broker(2): 4}, "Guard cooldown keeps bundles"),
    ("circling", {"circling": {NAMESPACE: ("0x0_0x1",)}}, {}, "Guard circles keeps bundles"),
    ("idle", {"idle": {broker(0): 2}}, {broker(1): 5, broker(2): 5}, "2 bundles of broker-00:8080 without a loaded"),
    (
        "protected",
        {"policy": draining(0, apply={"protected_namespaces": [NAMESPACE]})},
        {},
        "Guard protected keeps bundles on a draining broker",
    ),
    ("crowded", {"policy": draining(0, apply={"most_clients_per_step": 3})}, {}, "Guard clients keeps bundles"),
)
def test_what_stays_is_said_with_its_reason(fields: dict[str, Any], moved: dict[str, int], words: str | None) -> None:
    """A note gives the reason for which bundles stay on a draining broker; where all move there is none."""
    proposal = PLANNER.proposal(drain_scene(3, TEN, **fields))
    assert {target: len(bundles) for target, bundles in targets(proposal).items()} == moved
    if words is None:
        assert proposal.notes == ()
    else:
        assert words in " ".join(proposal.notes)


def test_a_target_that_would_shed_it_is_passed_over() -> None:
    """A target that would shed the bundle is passed over, and a note advises to shut a drained broker down soon."""
    usages = tuple(
        BrokerUsage(broker=broker(number), percent=percent, bytes=50.0 * MEGABYTE, messages=1.0)
        for number, percent in enumerate((20.0, 84.9, 20.0))
    )
    strategy = "org.apache.pulsar.broker.loadbalance.impl.OverloadShedder"
    manager = load_manager_of(MODULAR | {"loadBalancerLoadSheddingStrategy": strategy})
    proposal = PLANNER.proposal(drain_scene(3, TEN, load_manager=manager, usages=usages))
    assert set(targets(proposal)) == {broker(2)}
    assert any("shut a drained broker down soon" in note for note in proposal.notes)


def test_where_every_target_would_shed_it_it_stays() -> None:
    """Bundles stay on a draining broker where the effect of the brokers' own shedding is not known."""
    proposal = PLANNER.proposal(drain_scene(3, TEN, load_manager=load_manager_of(MODULAR)))
    assert proposal.batches == ()
    assert "Guard shedding keeps bundles on a draining broker" in proposal.notes[0]


def weights(brokers: int, stays: Sequence[PlacedBundle]) -> dict[str, float]:
    """The load of each bundle in units of the mean of brokers, or of what the check takes for a full broker."""
    amounts = {stay.bundle: (stay.mean.topics, stay.mean.bytes, stay.mean.clients) for stay in stays}
    sums = [sum(each[at] for each in amounts.values()) for at in range(len(FULL_BROKER))]
    units = [max(total / brokers, least) for total, least in zip(sums, FULL_BROKER, strict=True)]
    return {
        bundle: sum((amount / unit for amount, unit in zip(each, units, strict=True)), 0.0)
        for bundle, each in amounts.items()
    }


def test_a_plan_that_drains_balances_nothing_else() -> None:
    ranges = hashed_tc_bundles([broker(0)] * 16, 16)
    scene = drain_scene(3, [*TEN, *of_coordinators(planning_facts_with(3, ranges))], tc_bundles=ranges)
    skews = (finding("tc-skew", "east"), finding("broker-load-skew", broker(0)))
    bundles = msgspec.structs.replace(scene.bundles, load=load_of_stays(3, TEN))
    plan = make_plan(msgspec.structs.replace(scene, findings=(*scene.findings, *skews), bundles=bundles))
    assert {batch.kind for batch in plan.batches} == {"broker_drain"}
    assert sum("drains a broker" in note for note in plan.notes) == 2


PERCENT = st.floats(0, 90, allow_nan=False)
MOST_TOPICS, MOST_PERCENT = 9000, 80


@example(brokers=3, loads=[(0, Load(topics=100))] * 10, sources={0}, used=[(10.0, 5.0)] * 6, least=10)
@example(brokers=3, loads=[(0, Load(topics=3000))] * 5, sources={0}, used=[(1.0, 1.0)] * 6, least=5)
@example(brokers=3, loads=[(0, Load(topics=99))] * 3, sources={0}, used=[(60.0, 0.0)] * 2 + [(0.0, 0.0)] * 4, least=3)
@given(
    brokers=st.integers(2, 6),
    loads=st.lists(st.tuples(st.integers(0, 5), LOADS), max_size=25),
    sources=st.sets(st.integers(0, 5), min_size=1, max_size=3),
    used=st.lists(st.tuples(PERCENT, PERCENT), min_size=6, max_size=6),
    least=st.just(0),
)
def test_no_bundle_goes_to_a_broker_that_drains_or_is_full(
    brokers: int, loads: list[tuple[int, Load]], sources: set[int], used: list[tuple[float, float]], least: int
) -> None:
    stays = [a_stay(owner % brokers, number, load) for number, (owner, load) in enumerate(loads)]
    marked = sorted({number % brokers for number in sources})
    resources = {broker(number): Usage(cpu=used[number][0], direct_memory=used[number][1]) for number in range(brokers)}
    limits = {"broker_drain_remedy": {"most_topics": MOST_TOPICS, "most_usage_percent": MOST_PERCENT, "most_moves": 3}}
    planning = drain_scene(brokers, stays, marked, resources=resources, policy=draining(*marked, **limits))
    proposal = PLANNER.proposal(planning)
    moved = ways(proposal)
    assert len(moved) >= least
    assert len({bundle for bundle, *_ in moved}) == len(moved)
    assert {source for _, source, _ in moved} <= {broker(number) for number in marked}
    assert not {target for *_, target in moved} & {broker(number) for number in marked}
    carried, owned = weights(brokers, stays), {stay.bundle: stay for stay in stays}
    topics = {broker(number): 0 for number in range(brokers)}
    whole = dict.fromkeys(topics, 0.0)
    for stay in stays:
        topics[stay.owner] += stay.now.topics
        whole[stay.owner] += carried[stay.bundle]
    usage = {name: (resources[name].cpu or 0.0, resources[name].direct_memory or 0.0) for name in topics}
    at_first = dict(usage)
    for batch in proposal.batches:
        assert len(batch.steps) <= 3
        assert {place.broker: place.count for place in batch.before} == topics
        for bundle, source, target in ways(Proposal(batches=(batch,))):
            topics[source] -= owned[bundle].now.topics
            topics[target] += owned[bundle].now.topics
            share = carried[bundle] / whole[source]
            cpu, memory = (there + share * taken for there, taken in zip(usage[target], at_first[source], strict=True))
            usage[target] = cpu, memory
            assert topics[target] <= MOST_TOPICS
            assert max(usage[target]) <= MOST_PERCENT + 1e-6
        assert {place.broker: place.count for place in batch.after} == topics
    if moved:
        assert len(marked) * 2 <= brokers
    assert msgspec.json.encode(proposal) == msgspec.json.encode(PLANNER.proposal(planning))


SHOP, NEWS, REST = "shop/orders", "news/all", "rest/all"


def wanted(tenant: str, *numbers: int) -> dict[str, Any]:
    """A group of the policy: a tenant's namespaces on these brokers."""
    hosts = [broker(number).partition(":")[0] for number in numbers]
    return {"name": tenant, "namespaces": [f"{tenant}/.*"], "primary": hosts}


def scene(brokers: int, stays: Sequence[PlacedBundle], *groups: dict[str, Any], **fields: Any) -> PlanningFacts:
    """Brokers that have these bundles and nothing else, and groups that are wanted; `sections` are of the policy."""
    names = [broker(number) for number in range(brokers)]
    used = fields.pop("used", dict.fromkeys(names, CALM_BROKER))
    topics: dict[str, dict[str, int]] = {name: {} for name in names}
    flows: dict[str, dict[str, float]] = {name: {} for name in names}
    for stay in stays:
        here, there = topics[stay.owner], flows[stay.owner]
        here[stay.namespace] = here.get(stay.namespace, 0) + stay.now.topics
        there[stay.namespace] = there.get(stay.namespace, 0.0) + stay.now.bytes
    isolation = Isolation(
        loads={name: LoadOfBroker(topics=topics[name], bytes=flows[name], used=used[name]) for name in names},
        namespaces=(NEWS, REST, SHOP),
        policies=fields.pop("policies", {}),
    )
    moving = LeavingFacts(
        brokers=load_of_stays(brokers, stays).brokers,
        resources=used,
        leaving={stay.name: stay for stay in stays if stay.namespace != REST},
    )
    return planning_facts_with(
        brokers,
        findings=tuple(finding("broker-groups", group["name"]) for group in groups),
        bundles=BundleFacts(groups=moving),
        isolation=isolation,
        policy=a_policy(brokers={"groups": list(groups)}, **fields.pop("sections", {})),
        **fields,
    )


def made(proposal: Proposal) -> dict[str, list[str]]:
    """The groups that are set, with the targets of their moves."""
    return {
        batch.steps[0].change.policy: [target for *_, target in ways(Proposal(batches=(batch,)))]
        for batch in proposal.batches
        if isinstance(batch.steps[0].change, SetIsolation)
    }


BOTH = (wanted("news", 0, 1), wanted("shop", 2, 3))


@pytest.mark.parametrize(("brokers", "expected"), [(6, ["news", "shop"]), (5, ["news"])])
def test_the_second_group_leaves_others_enough_brokers(brokers: int, expected: list[str]) -> None:
    """Each group alone leaves three of five brokers to all others, both together leave one."""
    proposal = GROUPS_PLANNER.proposal(scene(brokers, (), *BOTH))
    assert [*made(proposal)] == expected
    if len(expected) == 1:
        (note,) = proposal.notes
        assert "group_brokers: 1 running broker would be left to rest/all, of at least 2" in note


def test_the_second_group_leaves_others_enough_room() -> None:
    """What both groups push away has to fit on the brokers that are left, with the bundles of the first group gone."""
    stays = [a_stay(number, number, namespace=REST) for number in range(6)]
    busy = {broker(number): Usage(cpu=30.0, direct_memory=1.0) for number in range(6)}
    together = scene(6, stays, *BOTH, used=busy)
    assert [*made(GROUPS_PLANNER.proposal(together))] == ["news"]
    assert "would be at 90 % CPU" in GROUPS_PLANNER.proposal(together).notes[0]
    alone = scene(6, stays, BOTH[1], used=busy)
    assert [*made(GROUPS_PLANNER.proposal(alone))] == ["shop"]


def test_bundles_of_the_first_group_are_where_it_moves_them() -> None:
    """The second group's brokers are rid of them, and those that both share are fuller."""
    stays = [a_stay(2, 1, Load(topics=600), namespace=NEWS), a_stay(0, 2, Load(topics=600), namespace=SHOP)]
    sections = {"broker_drain_remedy": {"most_topics": 700}, "guards": {"least_brokers": 1}}
    apart = scene(5, stays, *BOTH, sections=sections)
    assert made(GROUPS_PLANNER.proposal(apart)) == {"news": [broker(1)], "shop": [broker(2)]}
    shared = scene(5, stays, wanted("news", 1), wanted("shop", 1, 2), sections=sections)
    assert made(GROUPS_PLANNER.proposal(shared)) == {"news": [broker(1)], "shop": [broker(2)]}


def test_a_group_that_nobody_is_asked_about_keeps_no_other_waiting() -> None:
    """After a no to the first group, the second one is judged as if that were not proposed."""
    planning = scene(5, (), *BOTH)
    first = GROUPS_PLANNER.proposal(planning).batches[0]
    planning = msgspec.structs.replace(planning, unasked=frozenset({first.changes}))
    assert [*made(GROUPS_PLANNER.proposal(planning))] == ["news", "shop"]


@pytest.mark.parametrize("resource", ["cpu", "direct_memory"])
def test_bundles_go_to_no_broker_whose_room_is_not_known(resource: str) -> None:
    """The policy is set already, and a broker does not report its usage: nothing is moved, for that reason."""
    stay = a_stay(0, 1, namespace=SHOP)
    used = {broker(number): CALM_BROKER for number in range(3)}
    used[broker(1)] = msgspec.structs.replace(CALM_BROKER, **{resource: None})
    group = wanted("shop", 1)
    policies = {"shop": a_policy(brokers={"groups": [group]}).brokers.groups[0].isolation}
    plan = make_plan(scene(3, [stay], group, used=used, policies=policies))
    assert not any(isinstance(step.change, UnloadBundle) for batch in plan.batches for step in batch.steps)
    assert "broker-01:8080 did not report" in " ".join(plan.notes)
