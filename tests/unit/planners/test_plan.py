"""One plan of all proposals: the order of batches, the numbers of steps, and the notes."""

from __future__ import annotations

import msgspec
import pytest

from pulsar_steward.model.finding import Severity
from pulsar_steward.model.numbering import batch_id, renumbered, step_id
from pulsar_steward.model.worth import SECONDS_TO_QUOTA
from pulsar_steward.planners.base import Proposal
from pulsar_steward.planners.registry import assemble, make_plan
from tests.builders import (
    SNAPSHOT,
    a_batch,
    a_finding,
    a_policy,
    a_step,
    broker,
    hashed_tc_bundles,
    planning_facts_with,
)

CRITICAL = (a_finding(Severity.CRITICAL),)
SKEWED = planning_facts_with(3, hashed_tc_bundles([broker(0)] * 16, 16))


@pytest.mark.parametrize(("number", "expected"), [(1, "b1.s01"), (12, "b1.s12"), (123, "b1.s123")])
def test_step_ids(number: int, expected: str) -> None:
    """A step's id consists of its batch's id and its number within the batch."""
    assert step_id(batch_id(1), number) == expected


def test_renumbered_keeps_what_comes_after_what() -> None:
    """A renumbered batch has steps with ids of its own, in the same order and after the same steps."""
    batch = renumbered(a_batch(a_step(), a_step(step_id="b1.s02", after=("b1.s01",))), "b7")
    assert batch.batch_id == "b7"
    assert [(step.step_id, step.after) for step in batch.steps] == [("b7.s01", ()), ("b7.s02", ("b7.s01",))]


def test_renumbered_refuses_foreign_steps() -> None:
    """Renumbering a batch with a step that waits for a step of another batch raises a `KeyError`."""
    with pytest.raises(KeyError):
        renumbered(a_batch(a_step(after=("b9.s01",))), "b1")


def test_order_of_batches() -> None:
    """Coordinators come first, then worse findings, then sooner full quotas; all else equal, kind and title decide."""
    soon, later = (msgspec.structs.replace(a_finding(), figures={SECONDS_TO_QUOTA: each}) for each in (60, 3600))
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
