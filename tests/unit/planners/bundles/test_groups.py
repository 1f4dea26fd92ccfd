"""Groups of brokers in one plan: the second is judged with the first one carried out, and each by itself if unasked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.facts.isolation import Isolation, LoadOfBroker
from pulsar_steward.facts.room import Usage
from pulsar_steward.model.step import SetIsolation, UnloadBundle
from pulsar_steward.planners.base import Proposal
from pulsar_steward.planners.bundles.facts import BundleFacts, LeavingFacts, Load, PlacedBundle
from pulsar_steward.planners.bundles.groups import PLANNER
from pulsar_steward.planners.registry import make_plan
from tests.builders import CALM_BROKER, a_policy, broker, planning_facts_with
from tests.unit.planners.bundles.scenes import a_stay, finding, load_of_stays, ways

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.planners.planning_facts import PlanningFacts

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
    proposal = PLANNER.proposal(scene(brokers, (), *BOTH))
    assert [*made(proposal)] == expected
    if len(expected) == 1:
        (note,) = proposal.notes
        assert "group_brokers: 1 running broker would be left to rest/all, of at least 2" in note


def test_the_second_group_leaves_others_enough_room() -> None:
    """What both groups push away has to fit on the brokers that are left, with the bundles of the first group gone."""
    stays = [a_stay(number, number, namespace=REST) for number in range(6)]
    busy = {broker(number): Usage(cpu=30.0, direct_memory=1.0) for number in range(6)}
    together = scene(6, stays, *BOTH, used=busy)
    assert [*made(PLANNER.proposal(together))] == ["news"]
    assert "would be at 90 % CPU" in PLANNER.proposal(together).notes[0]
    alone = scene(6, stays, BOTH[1], used=busy)
    assert [*made(PLANNER.proposal(alone))] == ["shop"]


def test_bundles_of_the_first_group_are_where_it_moves_them() -> None:
    """The second group's brokers are rid of them, and those that both share are fuller."""
    stays = [a_stay(2, 1, Load(topics=600), namespace=NEWS), a_stay(0, 2, Load(topics=600), namespace=SHOP)]
    sections = {"broker_drain_remedy": {"most_topics": 700}, "guards": {"least_brokers": 1}}
    apart = scene(5, stays, *BOTH, sections=sections)
    assert made(PLANNER.proposal(apart)) == {"news": [broker(1)], "shop": [broker(2)]}
    shared = scene(5, stays, wanted("news", 1), wanted("shop", 1, 2), sections=sections)
    assert made(PLANNER.proposal(shared)) == {"news": [broker(1)], "shop": [broker(2)]}


def test_a_group_that_nobody_is_asked_about_keeps_no_other_waiting() -> None:
    """After a no to the first group, the second one is judged as if that were not proposed."""
    planning = scene(5, (), *BOTH)
    first = PLANNER.proposal(planning).batches[0]
    planning = msgspec.structs.replace(planning, unasked=frozenset({first.changes}))
    assert [*made(PLANNER.proposal(planning))] == ["news", "shop"]


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
