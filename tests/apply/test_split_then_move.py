"""A bundle that carries everything is split, and its parts are moved, as one batch that a person approved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.simulator import ClusterSpec, NamespaceSpec, SubscriptionSpec, TopicSpec
from pulsar_steward.model.plan import BUNDLE_BALANCE, BUNDLE_SPLIT, ROLLBACK
from pulsar_steward.model.step import SplitBundle, UnloadBundle
from tests.apply.seeing import Seeing
from tests.apply.test_rollback import back_of
from tests.apply.worksite import a_worksite, quick_policy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pulsar_steward.model.plan import Plan

NAMESPACE = "shop/firehose"
SPEC = ClusterSpec(
    namespaces=(
        NamespaceSpec(
            NAMESPACE,
            bundles=1,
            topics=(
                TopicSpec(
                    "events",
                    partitions=24,
                    producers=4,
                    subscriptions=(SubscriptionSpec("sink", consumers=4, rate_out=1_000.0),),
                    message_bytes=10_000,
                    rate_in=1_000.0,
                ),
            ),
            owner=0,
        ),
    )
)
"""24 partitions of 20 MB/s, in and out, on one of three brokers."""


@pytest.fixture
def seeing(tmp_path: Path) -> Iterator[Seeing]:
    """The cluster, seen by the checks of bundles and brokers."""
    with a_worksite(tmp_path, SPEC) as site:
        site.policy = quick_policy(bundle_balance_remedy={"least_snapshots": 2}, approval={"two_people_for": []})
        yield Seeing(site, tmp_path / "snapshots", (BUNDLE_SPLIT, BUNDLE_BALANCE))


def the_plan(seeing: Seeing) -> Plan:
    """A plan with splits and moves, once there are snapshots enough."""
    seeing.observe()
    plan, _ = seeing.observe()
    (batch,) = plan.batches
    assert batch.kinds == (BUNDLE_SPLIT, BUNDLE_BALANCE)
    return plan


def bundles_of(seeing: Seeing) -> list[int]:
    """The namespace's bundles on each broker, asked behind the API's back."""
    return [
        sum(name.startswith(NAMESPACE) for name in seeing.site.simulator.owned_bundles()[broker])
        for broker in seeing.site.brokers
    ]


def test_it_is_split_then_moved_and_nothing_is_left_to_find(seeing: Seeing) -> None:
    """All splits and moves are done in one batch, brokers carry the same then, and moves alone can be taken back."""
    plan = the_plan(seeing)
    assert set(seeing.carry_out(plan)) == {"done"}
    for step in plan.batches[0].steps:
        if isinstance(step.change, UnloadBundle):
            assert seeing.site.owner(step.change.bundle, NAMESPACE) == step.change.target
    assert max(held := bundles_of(seeing)) - min(held) <= 1
    after, found = seeing.observe()
    assert (after.batches, set(found)) == ((), set())
    (back,) = back_of(seeing.site, plan).batches
    assert {step.change for step in back.steps} == {step.undo for step in plan.batches[0].steps if step.undo}
    assert back.answered_as == (ROLLBACK, BUNDLE_SPLIT, BUNDLE_BALANCE)


def test_a_move_without_its_split_is_refused(seeing: Seeing) -> None:
    plan = the_plan(seeing)
    moves = [step.step_id for step in plan.batches[0].steps if isinstance(step.change, UnloadBundle)]
    assert set(seeing.carry_out(plan, *moves)) == {"refused"}
    assert seeing.site.untouched()


def test_nothing_is_moved_once_a_split_yields_other_parts(seeing: Seeing) -> None:
    """Where a topic was created since, the first split drifts, and no part is split further or moved."""
    plan = the_plan(seeing)
    seeing.site.simulator.add_topic(NAMESPACE, TopicSpec("late"))
    first, *_ = plan.batches[0].steps
    assert isinstance(first.change, SplitBundle)
    outcomes = seeing.carry_out(plan)
    assert outcomes[0] == "drifted"
    assert "done" not in outcomes
    assert seeing.site.untouched()
