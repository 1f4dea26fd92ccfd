"""Differences that make a proposal worse than the one that was snoozed, and those that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.loss import InFlight, Loss
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.orchestration.contents import got_worse
from tests.builders import a_batch, a_finding, a_step
from tests.cases import cases

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Batch


def found(check_id: str = "ttl-before-quota", severity: Severity = Severity.WARNING, **fields: Any) -> Finding:
    """A finding about a namespace."""
    return msgspec.structs.replace(a_finding(severity, check_id=check_id), subject="shop/orders", **fields)


def proposal(*findings: Finding, seconds: int = 60, **fields: Any) -> Batch:
    """A batch that sets a time to live; `fields` are those of its step."""
    change = ChangeSetting(
        namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=seconds)
    )
    return a_batch(a_step(change, **fields), kind="retention", findings=findings or (found(),))


def messages(number: int) -> Loss:
    """A loss of so many messages."""
    return Loss(messages=number, bytes=0)


def stored(size: int) -> Loss:
    """A loss of so many stored bytes."""
    return Loss(messages=0, bytes=size)


@cases(
    "now, then, words",
    ("the same", proposal(), proposal(), None),
    ("another value", proposal(seconds=90), proposal(), None),
    ("more of it", proposal(found(evidence="5 more", figures={"backlog": 9})), proposal(), None),
    ("more severe", proposal(found(severity=Severity.CRITICAL)), proposal(), "is critical by now"),
    ("less severe", proposal(), proposal(found(severity=Severity.CRITICAL)), None),
    ("a new one", proposal(found(), found("quota-stuck")), proposal(), "quota-stuck of shop/orders"),
    ("one is gone", proposal(), proposal(found(), found("quota-stuck")), None),
    ("messages are lost", proposal(loss=messages(1)), proposal(), "more would be lost"),
    ("more messages", proposal(loss=messages(2)), proposal(loss=messages(1)), "more would be lost"),
    ("more bytes", proposal(loss=stored(2)), proposal(loss=stored(1)), "more would be lost"),
    ("as much is lost", proposal(loss=messages(1)), proposal(loss=messages(1)), None),
    ("more by another value", proposal(seconds=9, loss=stored(2)), proposal(loss=stored(1)), "more would be lost"),
    ("nothing is lost any more", proposal(), proposal(loss=stored(1)), None),
    (
        "more comes again than there is room for",
        proposal(in_flight=InFlight(again=30_001)),
        proposal(in_flight=InFlight(again=10_000)),
        "more messages are in flight",
    ),
    (
        "as much as there is room for",
        proposal(in_flight=InFlight(again=30_000)),
        proposal(in_flight=InFlight(again=10_000)),
        None,
    ),
    ("what was asked cannot be read", proposal(), None, "cannot be read"),
)
def test_worse(now: Batch, then: Batch | None, words: str | None) -> None:
    """A proposal is worse by a new or more severe finding or by a greater loss, and not by other figures."""
    why = got_worse(now, then)
    assert (why is None) == (words is None)
    assert (words or "") in (why or "")


def test_a_loss_that_moves_to_another_setting_is_greater_there() -> None:
    """A proposal is worse when the loss of one setting grows, however much the loss of another one shrinks."""
    other = ChangeSetting(namespace="shop/carts", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
    now = a_batch(a_step(proposal().steps[0].change, loss=stored(1)), a_step(other, loss=stored(5)))
    then = a_batch(a_step(proposal().steps[0].change, loss=stored(9)), a_step(other, loss=stored(4)))
    assert got_worse(now, then) is not None
    assert got_worse(then, now) is not None
