"""Upper bound of the data that brokers delete at once for a step, also for a rollback step."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.loss import NOTHING_LOST
from pulsar_steward.model.step import ChangeSetting, GuardedChange

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts

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
