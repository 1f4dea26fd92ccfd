"""Differences that make a proposal worse than the one that was snoozed, and those that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.orchestration.worse import got_worse
from tests.builders import a_batch, a_finding, a_step

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


@pytest.mark.parametrize(
    ("now", "then", "words"),
    [
        pytest.param(proposal(), proposal(), None, id="the same"),
        pytest.param(proposal(seconds=90), proposal(), None, id="another value"),
        pytest.param(proposal(found(evidence="5 more", figures={"backlog": 9})), proposal(), None, id="more of it"),
        pytest.param(proposal(found(severity=Severity.CRITICAL)), proposal(), "is critical by now", id="more severe"),
        pytest.param(proposal(), proposal(found(severity=Severity.CRITICAL)), None, id="less severe"),
        pytest.param(proposal(found(), found("quota-stuck")), proposal(), "quota-stuck of shop/orders", id="a new one"),
        pytest.param(proposal(), proposal(found(), found("quota-stuck")), None, id="one is gone"),
        pytest.param(proposal(loss=Loss(messages=1)), proposal(), "more would be lost", id="messages are lost"),
        pytest.param(
            proposal(loss=Loss(messages=2)), proposal(loss=Loss(messages=1)), "more would be lost", id="more messages"
        ),
        pytest.param(proposal(loss=Loss(bytes=2)), proposal(loss=Loss(bytes=1)), "more would be lost", id="more bytes"),
        pytest.param(proposal(loss=Loss(messages=1)), proposal(loss=Loss(messages=1)), None, id="as much is lost"),
        pytest.param(
            proposal(seconds=9, loss=Loss(bytes=2)),
            proposal(loss=Loss(bytes=1)),
            "more would be lost",
            id="more by another value",
        ),
        pytest.param(proposal(), proposal(loss=Loss(bytes=1)), None, id="nothing is lost any more"),
        pytest.param(proposal(), None, "cannot be read", id="what was asked cannot be read"),
    ],
)
def test_worse(now: Batch, then: Batch | None, words: str | None) -> None:
    """A proposal is worse by a new or more severe finding or by a greater loss, and not by other figures."""
    why = got_worse(now, then)
    assert (why is None) == (words is None)
    assert (words or "") in (why or "")


def test_a_loss_that_moves_to_another_setting_is_greater_there() -> None:
    """A proposal is worse when the loss of one setting grows, however much the loss of another one shrinks."""
    other = ChangeSetting(namespace="shop/carts", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
    now = a_batch(a_step(proposal().steps[0].change, loss=Loss(bytes=1)), a_step(other, loss=Loss(bytes=5)))
    then = a_batch(a_step(proposal().steps[0].change, loss=Loss(bytes=9)), a_step(other, loss=Loss(bytes=4)))
    assert got_worse(now, then) is not None
    assert got_worse(then, now) is not None
