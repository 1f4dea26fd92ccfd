"""Upper bound of the data that brokers delete at once for a step, and the guard that compares it with the approval."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from pulsar_steward.changes.kind import Aspect
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import Guard, Objection
from pulsar_steward.model.loss import NOTHING_LOST, Loss
from pulsar_steward.model.step import ChangeSetting, DeleteSubscription, GuardedChange

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardResult
    from pulsar_steward.policy.schema import Policy

Guarded = TypeVar("Guarded", bound=GuardedChange)


def bounded(step: Guarded, facts: ClusterFacts) -> Guarded:
    """The step with the loss by its change of a setting, as the approver sees it; without one if it is unknown.

    Raises:
        AdminError: If a fact cannot be read.
    """
    if not isinstance(step.change, ChangeSetting) or not step.change.may_delete:
        return step
    taken = facts.taken(step.change)
    if isinstance(taken, Unknown) or not (step.change.loses_messages or taken.loss.exceeds(NOTHING_LOST)):
        return step
    return msgspec.structs.replace(step, loss=taken.loss)


# A backlog may grow between the answer and the call, and nobody approved the loss of the added part.
class LossAsApproved(Guard):
    """Compares the present loss by a setting or a deletion with the loss in its step, in entries and bytes."""

    name = "loss_as_approved"
    objection = Objection.REFUSED
    aspect = Aspect.DATA

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step that deletes more than was approved, even by a single entry or byte."""
        change = step.change
        match change:
            case ChangeSetting():
                if not change.may_delete:
                    return self.result("it deletes nothing", passed=True)
                taken = facts.taken(change)
                now = taken if isinstance(taken, Unknown) else taken.loss
            case DeleteSubscription():
                now = _held(change, facts)
            case _:
                raise TypeError(f"{self.name} looks at settings and subscriptions, not at {change}")
        if isinstance(now, Unknown):
            return self.result(now.reason, passed=False)
        agreed = step.loss if isinstance(step.loss, Loss) and step.loss.is_known else NOTHING_LOST
        lost = f"{now.words} would be lost at once"
        if now.exceeds(agreed):
            return self.result(f"{lost}, more than the {agreed.words} that were planned", passed=False)
        return self.result(f"{lost}, no more than the {agreed.words} of the plan", passed=True)


def _held(change: DeleteSubscription, facts: ClusterFacts) -> Loss | Unknown:
    """Messages that a subscription has not read; none if it is gone."""
    state = facts.subscription(change)
    if isinstance(state, Unknown):
        return state
    return NOTHING_LOST if state is None else Loss(messages=state.entries, bytes=state.topic_bytes)
