"""Risk of a batch: of what its steps do, not of what somebody says that they do."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pulsar_steward.changes.risk import risk_of
from pulsar_steward.model.loss import NOTHING_LOST, Loss
from pulsar_steward.model.plan import ROLLBACK, Batch, Placement
from pulsar_steward.model.risk import Risk
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, RaiseCoordinators, SplitBundle, Touched
from tests.builders import a_batch, a_finding, a_plan, a_step, broker

SEEN_TWICE = (msgspec.structs.replace(a_finding(), snapshots_in_a_row=2),)
BACK = ChangeSetting(namespace="shop/orders", name=SettingName.RETENTION, before=None, after=None)
NOBODY = Touched(producers=0, consumers=0, topics=0, coordinators=0)
FEW = Touched(producers=1, consumers=2, topics=3, coordinators=0)

LONGER = ChangeSetting(
    namespace="shop/orders",
    name=SettingName.RETENTION,
    before=Retention(minutes=60, megabytes=-1),
    after=Retention(minutes=120, megabytes=-1),
)
SHORTER = LONGER.inverse
HOLDS = ChangeSetting(
    namespace="shop/orders",
    name=SettingName.SIZE_QUOTA,
    before=None,
    after=BacklogQuota(limit_bytes=10**9, policy=QuotaPolicy.HOLD),
)
EVICTS = msgspec.structs.replace(HOLDS, after=BacklogQuota(limit_bytes=10**9, policy=QuotaPolicy.EVICT))
EXPIRES = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=3600))
SPLIT = SplitBundle(
    namespace="shop/orders",
    bundle="0x00000000_0x10000000",
    owner=broker(1),
    algorithm="range_equally_divide",
    halves=("0x00000000_0x08000000", "0x08000000_0x10000000"),
)


def a_settled_batch(change: Any = None, *, touched: Touched = FEW, undo: Any = BACK, **fields: Any) -> Batch:
    """A batch of one step, whose finding two snapshots show."""
    given = {name: fields.pop(name) for name in ("loss",) if name in fields}
    step = a_step(change, touched=touched, undo=undo, **given)
    return a_batch(step, **{"findings": SEEN_TWICE, **fields})


def level(batch: Batch, **of_plan: Any) -> Risk:
    """Level of a batch's risk."""
    return risk_of(a_plan(batch, **of_plan), batch).level


@pytest.mark.parametrize(
    ("change", "fields", "risk"),
    [
        (LONGER, {"touched": NOBODY}, Risk.LOW),
        (None, {}, Risk.LOW),
        (HOLDS, {"touched": NOBODY}, Risk.MEDIUM),
        (SPLIT, {}, Risk.MEDIUM),
        (RaiseCoordinators(before=2, after=5), {"touched": NOBODY}, Risk.MEDIUM),
        (SHORTER, {}, Risk.CRITICAL),
        (SHORTER, {"loss": Loss(messages=0, bytes=None)}, Risk.CRITICAL),
        (SHORTER, {"loss": Loss(messages=0, bytes=10**9)}, Risk.HIGH),
        (EXPIRES, {}, Risk.CRITICAL),
        (EXPIRES, {"loss": NOTHING_LOST}, Risk.HIGH),
        (EVICTS, {}, Risk.CRITICAL),
        (EVICTS, {"loss": NOTHING_LOST}, Risk.HIGH),
        (EVICTS, {"loss": Loss(messages=1, bytes=100)}, Risk.CRITICAL),
    ],
)
def test_the_level_is_of_what_is_lost_and_cannot_be_undone(change: Any, fields: dict[str, Any], risk: Risk) -> None:
    assert level(a_settled_batch(change, **fields)) is risk


@pytest.mark.parametrize(
    ("touched", "risk"),
    [
        (Touched(producers=500, consumers=499, topics=999, coordinators=0), Risk.LOW),
        (Touched(producers=500, consumers=500, topics=1, coordinators=0), Risk.MEDIUM),
        (Touched(producers=0, consumers=0, topics=1_000, coordinators=0), Risk.MEDIUM),
        (Touched(producers=10_000, consumers=0, topics=1, coordinators=0), Risk.HIGH),
        (Touched(producers=0, consumers=0, topics=10_000, coordinators=0), Risk.HIGH),
        (Touched(producers=0, consumers=0, topics=1, coordinators=500), Risk.LOW),
    ],
)
def test_the_level_is_of_whom_it_touches(touched: Touched, risk: Risk) -> None:
    """The risk grows with the clients that reconnect and with the partitions that are not served meanwhile."""
    assert level(a_settled_batch(touched=touched)) is risk


def test_steps_count_together() -> None:
    steps = [a_step(touched=Touched(producers=100, consumers=0, topics=1, coordinators=0), undo=BACK)] * 10
    assert level(a_batch(*steps, findings=SEEN_TWICE)) is Risk.MEDIUM


@pytest.mark.parametrize(("brokers", "risk"), [(2, Risk.MEDIUM), (4, Risk.MEDIUM), (5, Risk.LOW)])
def test_the_level_is_of_the_share_of_brokers(brokers: int, risk: Risk) -> None:
    listed = tuple(Placement(broker(number), 3) for number in range(1, brokers + 1))
    batch = a_settled_batch()
    move = batch.steps[0].change
    names = {getattr(move, "source", ""), getattr(move, "target", "")}
    others = tuple(each for each in listed if each.broker not in names)[: brokers - len(names)]
    before = (*(Placement(name, 3) for name in sorted(names)), *others)
    assert level(msgspec.structs.replace(batch, before=before)) is risk


@pytest.mark.parametrize(
    ("fields", "of_plan", "calm", "losing"),
    [
        ({}, {}, Risk.LOW, Risk.HIGH),
        ({"findings": (a_finding(),)}, {}, Risk.LOW, Risk.CRITICAL),
        ({"findings": ()}, {}, Risk.MEDIUM, Risk.CRITICAL),
        ({}, {"unread": ("broker-09:8080",)}, Risk.MEDIUM, Risk.CRITICAL),
        ({"findings": (), "kind": ROLLBACK}, {}, Risk.LOW, Risk.HIGH),
    ],
)
def test_thin_evidence_makes_what_loses_messages_critical(
    fields: dict[str, Any], of_plan: dict[str, Any], calm: Risk, losing: Risk
) -> None:
    assert level(a_settled_batch(LONGER, touched=NOBODY, **fields), **of_plan) is calm
    assert level(a_settled_batch(SHORTER, touched=NOBODY, loss=NOTHING_LOST, **fields), **of_plan) is losing


def test_the_gravest_reason_comes_first_and_none_is_left_out() -> None:
    batch = a_batch(a_step(EVICTS, loss=Loss(messages=7, bytes=100)), a_step(SPLIT), a_step(HOLDS, undo=BACK))
    reasons = risk_of(a_plan(batch), batch).reasons
    assert [reason.level for reason in reasons] == sorted((each.level for each in reasons), key=lambda each: -each.rank)
    assert len(reasons) == 9
    words = " ".join(reason.words for reason in reasons)
    for part in ("7 entries", "100 B", "cannot be undone", "STOPS PRODUCERS", "9 clients", "one snapshot alone"):
        assert part in words


def test_a_batch_without_any_has_a_reason_too() -> None:
    batch = a_settled_batch(LONGER, touched=NOBODY)
    (reason,) = risk_of(a_plan(batch), batch).reasons
    assert (reason.level, "nothing is lost" in reason.words) == (Risk.LOW, True)
