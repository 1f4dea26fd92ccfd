"""Content of batches: differences that make another question, and those that do not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from pulsar_steward.model.cluster import ClusterIdentity
from pulsar_steward.model.loss import InFlight, Loss, TopicLoss
from pulsar_steward.model.plan import Batch, content_digest, goal_of, loses_more, share_goal
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, GuardResult, Step, Touched
from tests.builders import BUNDLE, IDENTITY, NOW, a_batch, a_move, a_plan, a_split, a_step, broker
from tests.cases import cases, row_by_row

OWNER = GuardResult(guard="owner", passed=True, reason="broker-00 owns it")
FIRST = a_step(undo=a_move(source=broker(1), target=broker(0)), guards=(OWNER,))
SECOND = a_step(a_move(bundle="0x10000000_0x20000000"), step_id="b1.s02", after=("b1.s01",))
BATCH = a_batch(FIRST, SECOND)
TTL = ChangeSetting(namespace="a/b", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))


def content(batch: Batch, **fields: Any) -> str:
    """The digest of a batch in a plan of its own."""
    plan = a_plan(batch, **{"pulsar_cluster": IDENTITY, **fields})
    return content_digest(plan, batch)


def with_first(**fields: Any) -> Batch:
    """The batch with another first step."""
    return a_batch(msgspec.structs.replace(FIRST, **fields), SECOND)


@cases(
    "same",
    ("words", a_batch(FIRST, SECOND, title="five bundles move", findings=(), unit="bundles")),
    ("reasons and effects", with_first(why="for once", effect="all is well")),
    ("clients", with_first(touched=Touched(producers=9, consumers=9, topics=9, coordinators=9))),
    ("a guard's words", with_first(guards=(msgspec.structs.replace(OWNER, reason="it does"),))),
    ("what is lost", with_first(loss=Loss(messages=3, bytes=100))),
    (
        "its place in the plan",
        a_batch(
            msgspec.structs.replace(FIRST, step_id="b7.s01"),
            msgspec.structs.replace(SECOND, step_id="b7.s02", after=("b7.s01",)),
            batch_id="b7",
        ),
    ),
)
def test_what_moves_with_every_look_is_no_content(same: Batch) -> None:
    """Words, figures, losses and the place in the plan do not change the digest of a batch's content."""
    assert content(same) == content(BATCH)


def test_the_snapshot_and_the_policy_are_no_content() -> None:
    """The snapshot, its time and the policy do not change the digest of a batch's content."""
    later = {"snapshot_id": "later", "taken_at": NOW + timedelta(hours=1), "policy_digest": "0" * 64, "notes": ("n",)}
    assert content(BATCH, **later) == content(BATCH)


@cases(
    "other",
    ("another target", with_first(change=a_move(target=broker(2)))),
    ("another value before", with_first(change=a_move(source=broker(2)))),
    ("no way back", with_first(undo=None)),
    ("a guard's verdict", with_first(guards=(msgspec.structs.replace(OWNER, passed=False),))),
    ("one guard more", with_first(guards=(OWNER, msgspec.structs.replace(OWNER, guard="limits")))),
    ("a step that it takes back", with_first(undoes="plan/b1.s01")),
    ("a step less", a_batch(FIRST)),
    ("another order", a_batch(FIRST, msgspec.structs.replace(SECOND, after=()))),
    ("another kind", a_batch(FIRST, SECOND, kind="bundle_balance")),
)
def test_what_would_be_done_is_content(other: Batch) -> None:
    """A batch that would do something else has another digest of its content."""
    assert content(other) != content(BATCH)


@pytest.mark.parametrize(
    "fields", [{"cluster": "west"}, {"pulsar_cluster": ClusterIdentity(name="local", metadata_id="f" * 16)}]
)
def test_the_cluster_is_content(fields: dict[str, Any]) -> None:
    """The same batch in a plan of another or unknown cluster has another digest of its content."""
    assert content(BATCH, **fields) != content(BATCH)


@cases(
    "steps, goal",
    ("moves are about brokers", (a_step(), a_step(a_move(namespace="a/b"))), "tc_balance"),
    ("split", (a_step(a_split(namespace="a/b")), a_step(a_move(namespace="a/b"))), "tc_balance a/b"),
    ("a setting", (a_step(TTL),), "tc_balance a/b"),
    ("moves to a group are about the group", (a_step(a_move(namespace="a/b"), group="shop"),), "tc_balance shop"),
)
def test_a_goal_is_a_kind_and_what_it_is_about(steps: tuple[Step, ...], goal: str) -> None:
    """A goal is the kind of a batch, with the namespace or group unless it only moves bundles between brokers."""
    assert goal_of(a_batch(*steps)) == goal


@row_by_row(
    "goal, other, share",
    ("tc_balance", "tc_balance", True),
    ("tc_balance", "bundle_balance", False),
    ("retention a/b", "retention a/b", True),
    ("retention a/b a/c", "retention a/c a/d", True),
    ("retention a/b a/c", "retention a/d", False),
    ("retention a/b", "backlog_quota a/b", False),
    ("retention a/b", "retention a/bc", False),
    ("bundle_split", "bundle_split a/b", False),
)
def test_goals_are_shared_namespace_by_namespace(goal: str, other: str, share: bool) -> None:
    assert share_goal(goal, other) is share
    assert share_goal(other, goal) is share


@row_by_row(
    "now, then, more",
    (Loss(messages=5, bytes=10), Loss(messages=5, bytes=10), False),
    (Loss(messages=4, bytes=9), Loss(messages=5, bytes=10), False),
    (Loss(messages=6, bytes=10), Loss(messages=5, bytes=10), True),
    (Loss(messages=5, bytes=11), Loss(messages=5, bytes=10), True),
    (Loss(messages=None, bytes=10), Loss(messages=5, bytes=10), True),
    (Loss(messages=1, bytes=10), Loss(messages=None, bytes=10), False),
    (Loss(messages=5, bytes=None), Loss(messages=5, bytes=10), True),
    (msgspec.UNSET, Loss(messages=5, bytes=10), False),
    (Loss(messages=1, bytes=0), msgspec.UNSET, True),
    (
        Loss(topics=(TopicLoss(topic="t", messages=1, bytes=1),), messages=5, bytes=10),
        Loss(messages=5, bytes=10),
        False,
    ),
)
def test_a_greater_loss_is_another_question(
    now: Loss | msgspec.UnsetType, then: Loss | msgspec.UnsetType, more: bool
) -> None:
    """A batch that loses one message or byte more than before, or nobody knows how many, counts as losing more."""
    step = a_step(a_move(bundle=BUNDLE))
    batches = [a_batch(a_step(), msgspec.structs.replace(step, loss=loss)) for loss in (now, then)]
    assert loses_more(*batches) is more


@row_by_row(
    "now, more",
    (InFlight(again=30_000, volatile_topics=1, lost=30_000), False),
    (InFlight(again=30_001, volatile_topics=1), True),
    (InFlight(volatile_topics=2), True),
    (InFlight(volatile_topics=1, lost=30_001), True),
)
def test_a_move_that_outgrew_what_was_said_is_another_question(now: InFlight, *, more: bool) -> None:
    """A question stands while the messages in flight fit the room that was left for them."""
    then = InFlight(again=10_000, volatile_topics=1, lost=10_000)
    batches = [a_batch(a_step(in_flight=each)) for each in (now, then)]
    assert loses_more(*batches) is more
