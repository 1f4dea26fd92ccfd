"""All planners together: none moves or splits what another one does in the same plan."""

from __future__ import annotations

import msgspec
import pytest

from pulsar_steward.checks.registry import CHECKS
from pulsar_steward.model.plan import KINDS, ROLLBACK
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.planners.base import Proposal
from pulsar_steward.planners.bundles.facts import BundleFacts
from pulsar_steward.planners.registry import PLANNERS, claimed_by, make_plan
from pulsar_steward.policy.load import parse_policy
from tests.builders import a_batch, a_move, a_split, a_step, broker, hashed_tc_bundles, planning_facts_with
from tests.unit.planners.bundles.scenes import CROWDED, NAMESPACE, a_stay, crowded, finding, load_of_stays

SKEW = finding("broker-load-skew", broker(0))
STAYS = [a_stay(0, number, namespace=namespace) for namespace in (NAMESPACE, "shop/carts") for number in range(10)]
FACTS = BundleFacts(crowds=(crowded(1500, 10, 10, 10),), load=load_of_stays(3, STAYS))


def test_coordinators_are_balanced_before_bundles_move() -> None:
    """A plan that balances coordinators may split bundles but moves none, and a note says that moves come later."""
    planning = planning_facts_with(
        3, hashed_tc_bundles([broker(0)] * 16, 16), findings=(finding("tc-skew", "east"), CROWDED, SKEW), bundles=FACTS
    )
    plan = make_plan(planning)

    assert [batch.kind for batch in plan.batches] == ["tc_balance", "bundle_split"]
    assert any("once that batch is proved" in note for note in plan.notes)
    assert plan.encoded() == make_plan(planning).encoded()


def test_a_namespace_that_is_split_is_not_moved() -> None:
    """Bundles of a namespace that the plan splits are not moved, those of other namespaces are, and a note says so."""
    plan = make_plan(planning_facts_with(3, findings=(CROWDED, SKEW), bundles=FACTS))

    kinds = {batch.kind: batch for batch in plan.batches}
    assert set(kinds) == {"bundle_split", "bundle_balance"}
    assert {step.change.namespace for step in kinds["bundle_balance"].steps} == {"shop/carts"}
    assert any(f"those of {NAMESPACE} are left" in note for note in plan.notes)


def test_without_a_split_all_of_them_move() -> None:
    """Bundles of all namespaces are moved if no other planner splits any of them."""
    plan = make_plan(planning_facts_with(3, findings=(SKEW,), bundles=msgspec.structs.replace(FACTS, crowds=())))

    assert {step.change.namespace for step in plan.batches[0].steps} == {NAMESPACE, "shop/carts"}


def test_what_is_claimed() -> None:
    """The namespaces of all moves and splits are claimed."""
    steps = (a_step(a_move(namespace="a/b")), a_step(a_split(namespace="c/d")))

    assert claimed_by([Proposal(), Proposal(batches=(a_batch(*steps),))])[0] == {"a/b", "c/d"}


def test_which_settings_are_claimed() -> None:
    """A change of a namespace's setting claims the namespace, and a change of a topic's own setting does not."""
    change = ChangeSetting(namespace="a/b", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
    topic = msgspec.structs.replace(change, namespace="c/d", topic="persistent://c/d/t")
    steps = (a_step(change), a_step(topic))

    bundles, settings = claimed_by([Proposal(batches=(a_batch(*steps),))])
    assert settings == {"a/b"}
    assert not bundles


def test_every_kind_of_batch_has_a_planner() -> None:
    """Every kind of batch except rollbacks has a planner."""
    assert {kind for planner in PLANNERS for kind in planner.kinds} == set(KINDS) - {ROLLBACK}


def test_checks_name_the_planners_that_answer_them() -> None:
    """Each check with a remedy is answered by a planner, and its remedy is a kind of batch of such a planner."""
    answered = {check_id for planner in PLANNERS for check_id in planner.answers}
    assert {check.check_id for check in CHECKS if check.remedied_by is not None} == answered
    for check in CHECKS:
        kinds = {kind for planner in PLANNERS if check.check_id in planner.answers for kind in planner.kinds}
        assert check.remedied_by in kinds or not kinds


def test_what_the_policy_never_asks_is_not_proposed() -> None:
    """A kind of batch under `never_ask` is left out with a note, and other kinds may change the namespace instead."""
    policy = parse_policy({"namespaces": {NAMESPACE: {"approval": {"never_ask": ["bundle_split"]}}}}, name="p")
    plan = make_plan(planning_facts_with(3, findings=(CROWDED, SKEW), bundles=FACTS, policy=policy))

    assert [batch.kind for batch in plan.batches] == ["bundle_balance"]
    assert {step.change.namespace for step in plan.batches[0].steps} == {NAMESPACE, "shop/carts"}
    (note,) = [note for note in plan.notes if "never_ask" in note]
    assert f"never to ask about bundle_split of {NAMESPACE}" in note


@pytest.mark.parametrize("namespaces", [(NAMESPACE,), (NAMESPACE, "shop/carts")])
def test_a_batch_is_left_out_whole(namespaces: tuple[str, ...]) -> None:
    """A batch of moves is left out as a whole if the policy's `never_ask` covers one of its namespaces."""
    layers = {name: {"approval": {"never_ask": ["bundle_balance"]}} for name in namespaces}
    facts = msgspec.structs.replace(FACTS, crowds=())
    policy = parse_policy({"namespaces": layers}, name="p")
    plan = make_plan(planning_facts_with(3, findings=(SKEW,), bundles=facts, policy=policy))

    assert plan.batches == ()
    assert len([note for note in plan.notes if "never_ask" in note]) == 1
