"""Guard: brokers delete no more at once than was approved.

A backlog goes on growing between the answer and the call, and nobody has agreed to lose that part of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guard.kinds import Guard, Objection
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.step import ChangeSetting, DeleteSubscription
from pulsar_steward.model.units import bytes_in_words, counted

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardResult, Step
    from pulsar_steward.policy.schema import Policy


class LossAsApproved(Guard):
    """Compares the loss by a size quota or with a subscription with the loss in its step, in messages and in bytes."""

    name = "loss_as_approved"
    objection = Objection.REFUSED
    applies_to = (ChangeSetting, DeleteSubscription)

    def check(self, step: Step, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes what deletes more than was approved: a single message or byte, as none is to spare."""
        change = step.change
        match change:
            case ChangeSetting():
                if not change.evicts_by_size:
                    return self.result("no size quota evicts", passed=True)
                now = facts.eviction_loss(change)
            case DeleteSubscription():
                now = _held(change, facts)
            case _:
                raise TypeError(f"{self.name} looks at settings and subscriptions, not at {change}")
        if isinstance(now, Unknown):
            return self.result(now.reason, passed=False)
        agreed = step.loss if isinstance(step.loss, Loss) else Loss(messages=0)
        passed = now.bytes <= agreed.bytes and (now.messages or 0) <= (agreed.messages or 0)
        lost = _in_words(now)
        if passed:
            return self.result(
                f"{lost} would be lost at once, no more than the {_in_words(agreed)} of the plan", passed=True
            )
        return self.result(
            f"{lost} would be lost at once, more than the {_in_words(agreed)} that were planned", passed=False
        )


def _held(change: DeleteSubscription, facts: ClusterFacts) -> Loss | Unknown:
    """Messages that a subscription has not read; none where it is gone."""
    state = facts.subscription(change)
    if isinstance(state, Unknown):
        return state
    return Loss(messages=0) if state is None else Loss(messages=state.entries, bytes=state.topic_bytes)


def _in_words(loss: Loss) -> str:
    return f"{counted(loss.messages or 0, 'message')} ({bytes_in_words(loss.bytes)})"
