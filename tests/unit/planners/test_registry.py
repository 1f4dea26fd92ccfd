"""All planners together: none moves or splits what another one does in the same plan."""

from __future__ import annotations

import msgspec

from pulsar_steward.planners.bundles.facts import BundleFacts
from pulsar_steward.planners.planning_facts import Proposal
from pulsar_steward.planners.registry import claimed_by, make_plan
from tests.builders import a_batch, a_move, a_split, a_step, broker, hashed_tc_bundles, planning_facts_with
from tests.unit.planners.bundles.scenes import CROWDED, NAMESPACE, a_stay, crowded, finding, load_of_stays

SKEW = finding("broker-load-skew", broker(0))
STAYS = [a_stay(0, number, namespace=namespace) for namespace in (NAMESPACE, "shop/carts") for number in range(10)]
FACTS = BundleFacts(crowds=(crowded(1500, 10, 10, 10),), load=load_of_stays(3, STAYS))


def test_coordinators_are_balanced_before_bundles_move() -> None:
    """Splits stay in the plan, behind; moves come with a later one, and a note says so."""
    planning = planning_facts_with(
        3,
        hashed_tc_bundles([broker(0)] * 16, 16),
        findings=(finding("tc-skew", "east"), CROWDED, SKEW),
        bundles=FACTS,
    )
    plan = make_plan(planning)

    assert [batch.kind for batch in plan.batches] == ["tc_balance", "bundle_split"]
    assert any("once that batch is proved" in note for note in plan.notes)
    assert plan.encoded() == make_plan(planning).encoded()


def test_a_namespace_that_is_split_is_not_moved() -> None:
    """Others are, in the same plan."""
    plan = make_plan(planning_facts_with(3, findings=(CROWDED, SKEW), bundles=FACTS))

    kinds = {batch.kind: batch for batch in plan.batches}
    assert set(kinds) == {"bundle_split", "bundle_balance"}
    assert {step.change.namespace for step in kinds["bundle_balance"].steps} == {"shop/carts"}
    assert any(f"those of {NAMESPACE} are left where they are" in note for note in plan.notes)


def test_without_a_split_all_of_them_move() -> None:
    """What a planner claims, it claims by its steps alone."""
    plan = make_plan(planning_facts_with(3, findings=(SKEW,), bundles=msgspec.structs.replace(FACTS, crowds=())))

    assert {step.change.namespace for step in plan.batches[0].steps} == {NAMESPACE, "shop/carts"}


def test_what_is_claimed() -> None:
    """The namespaces of moves and splits."""
    steps = (a_step(a_move(namespace="a/b")), a_step(a_split(namespace="c/d")))

    assert claimed_by([Proposal(), Proposal(batches=(a_batch(*steps),))]) == {"a/b", "c/d"}
