"""One plan of all proposals: the order of batches, the numbers of steps, and the notes."""

from __future__ import annotations

import msgspec
import pytest

from pulsar_steward.model.finding import Severity
from pulsar_steward.model.plan import numbered
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, Step
from pulsar_steward.planners.base import Proposal
from pulsar_steward.planners.registry import assemble, make_plan
from tests.builders import (
    SNAPSHOT,
    a_batch,
    a_finding,
    a_move,
    a_policy,
    a_split,
    a_step,
    broker,
    hashed_tc_bundles,
    planning_facts_with,
)

CRITICAL = (a_finding(Severity.CRITICAL),)
SKEWED = planning_facts_with(3, hashed_tc_bundles([broker(0)] * 16, 16))


LOWER, UPPER = a_split().halves


def a_setting(namespace: str, topic: str | None = None) -> Step:
    """A step that sets a time to live."""
    ttl = TimeToLive(seconds=60)
    return a_step(ChangeSetting(namespace=namespace, topic=topic, name=SettingName.TTL, before=None, after=ttl))


@pytest.mark.parametrize(
    ("steps", "after"),
    [
        pytest.param([a_step(), a_step()], [(), ()], id="moves of bundles that are there"),
        pytest.param(
            [a_step(a_split()), a_step(a_move(bundle=UPPER)), a_step(a_move(namespace="a/b", bundle=LOWER))],
            [(), ("b2.s01",), ()],
            id="a half that a split makes, and a bundle of another namespace",
        ),
        pytest.param(
            [a_setting("a/b"), a_setting("a/b"), a_setting("a/c"), a_setting("a/b")],
            [(), ("b2.s01",), (), ("b2.s01", "b2.s02")],
            id="settings of a namespace",
        ),
        pytest.param([a_setting("a/b"), a_setting("a/b", "t"), a_setting("a/b", "t")], [(), (), ()], id="of topics"),
    ],
)
def test_ids_and_order_follow_from_places(steps: list[Step], after: list[tuple[str, ...]]) -> None:
    """Batches and steps are numbered by their places, and each step comes after those that it rests on."""
    first, second = numbered([a_batch(*[a_step()] * 10), a_batch(*steps)])
    assert (first.batch_id, first.steps[-1].step_id, second.batch_id) == ("b1", "b1.s10", "b2")
    assert [step.step_id for step in second.steps] == [f"b2.s0{number}" for number in range(1, len(steps) + 1)]
    assert [step.after for step in second.steps] == after


def test_order_of_batches() -> None:
    """Coordinators come first, then worse findings, then sooner full quotas; all else equal, kind and title decide."""
    soon, later = (msgspec.structs.replace(a_finding(), figures={"seconds_to_quota": each}) for each in (60, 3600))
    batches = [
        a_batch(kind="split", title="b"),
        a_batch(kind="split", title="a"),
        a_batch(kind="quota", title="d"),
        a_batch(kind="split", title="e", findings=(later,)),
        a_batch(kind="split", title="f", findings=(soon,)),
        a_batch(kind="quota", findings=()),
        a_batch(kind="split", title="c", findings=CRITICAL),
        a_batch(kind="tc_balance"),
    ]
    plan = assemble(SKEWED, [Proposal(batches=(batch,)) for batch in batches])
    assert [(batch.batch_id, batch.kind, batch.title) for batch in plan.batches] == [
        ("b1", "tc_balance", "made up"),
        ("b2", "split", "c"),
        ("b3", "split", "f"),
        ("b4", "split", "e"),
        ("b5", "quota", "d"),
        ("b6", "split", "a"),
        ("b7", "split", "b"),
        ("b8", "quota", "made up"),
    ]


def test_empty_batches_are_left_out() -> None:
    """A batch without steps is left out of the plan."""
    without_steps = msgspec.structs.replace(a_batch(), steps=())
    assert assemble(SKEWED, [Proposal(batches=(without_steps,))]).batches == ()


def test_notes_once_in_order() -> None:
    """The plan has each note once, in the order of the planners."""
    proposals = [Proposal(notes=("z", "a")), Proposal(notes=("a", "m"))]
    assert assemble(SKEWED, proposals).notes == ("z", "a", "m")


def test_plan_of_a_scene() -> None:
    """A plan names its cluster, snapshot and policy, and the same facts give the same bytes."""
    plan = make_plan(SKEWED)
    assert (plan.cluster, plan.snapshot_id, plan.policy_digest) == (SKEWED.cluster, SNAPSHOT, SKEWED.policy.digest)
    assert [batch.kind for batch in plan.batches] == ["tc_balance"]
    assert plan.encoded() == make_plan(SKEWED).encoded()


def test_plan_depends_on_the_policy() -> None:
    """A changed policy changes the plan's digest, but not its proposal digest if the steps are the same."""
    other = planning_facts_with(3, SKEWED.tc_bundles, policy=a_policy(tc_skew={"cooldown_minutes": 31}))
    assert make_plan(other).digest != make_plan(SKEWED).digest
    assert make_plan(other).proposal_digest == make_plan(SKEWED).proposal_digest
