"""Plans of made-up changes, in one batch, as planners make them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from benchmarks.chaos.holdings import LOSING
from benchmarks.chaos.subscriptions import HELD, HELD_BYTES
from pulsar_steward.changes import kind_of
from pulsar_steward.model.loss import NOTHING_LOST, Loss, TopicLoss
from pulsar_steward.model.plan import Batch, Plan
from pulsar_steward.model.step import ChangeSetting, DeleteSubscription, SetIsolation, Step, Touched

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from pulsar_steward.model.cluster import ClusterIdentity
    from pulsar_steward.model.isolation import Reach
    from pulsar_steward.model.step import Change
    from pulsar_steward.policy.schema import Policy

KIND = "bundle_balance"
BATCH = "b1"


def plan_of(
    cluster: str,
    changes: list[Change],
    now: datetime,
    identity: ClusterIdentity,
    policy: Policy,
    reach: Callable[[SetIsolation], Reach],
) -> Plan:
    """A plan of one batch; `reach` tells what the change of an isolation policy is about now."""
    nobody = Touched(producers=0, consumers=0, topics=0, coordinators=0)
    steps = tuple(
        Step(
            step_id=f"{BATCH}.s{number:02d}",
            change=change,
            why="made up",
            effect=str(kind_of(change).call()),
            touched=nobody,
            undo_note="made up",
            loss=lost_with(change),
            reach=reach(change) if isinstance(change, SetIsolation) else msgspec.UNSET,
        )
        for number, change in enumerate(changes, start=1)
    )
    batch = Batch(batch_id=BATCH, kind=KIND, title="chaos", findings=(), steps=steps)
    snapshot = f"{cluster}-{now:%Y%m%dT%H%M%SZ}"
    return Plan(
        cluster=cluster,
        snapshot_id=snapshot,
        taken_at=now,
        pulsar_cluster=identity,
        policy_digest=policy.digest,
        batches=(batch,),
    )


def lost_with(change: Change) -> Loss | msgspec.UnsetType:
    """What may be lost: entries that a subscription held, nothing of an archive, and all for a limit that evicts."""
    if change in LOSING.values():
        evicts = isinstance(change, ChangeSetting) and change.topic is not None
        return Loss(messages=10**9, bytes=10**15) if evicts else NOTHING_LOST
    if not isinstance(change, DeleteSubscription):
        return msgspec.UNSET
    held = TopicLoss(topic=change.topic, messages=HELD, bytes=HELD_BYTES)
    return Loss(topics=(held,), messages=HELD, bytes=HELD_BYTES)
