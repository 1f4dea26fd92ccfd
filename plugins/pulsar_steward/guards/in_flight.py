"""Messages in flight of a step: computed at planning, and later compared with the live cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.in_flight import InFlight
from pulsar_steward.model.step import BundleChange, GuardedChange, UnloadBundle

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.policy.schema import Policy

Guarded = TypeVar("Guarded", bound=GuardedChange)


def with_messages_in_flight(step: Guarded, facts: ClusterFacts, policy: Policy) -> Guarded:
    """The step with the messages in flight that it may redeliver or lose; unchanged if it disturbs no consumers.

    Raises:
        AdminError: If the live cluster cannot be read.
    """
    if not isinstance(step.change, BundleChange) or not disturbs_consumers(step):
        return step
    guards = policy.guards
    batches = guards.largest_batch_messages > 1 and step.change.namespace != TC_NAMESPACE
    consumed = batches and step.touched.consumers > 0
    found = facts.move_risks(step.change).with_room(guards.most_redelivered_messages, consumed=consumed)
    return step if found == InFlight() else msgspec.structs.replace(step, in_flight=found)


def disturbs_consumers(step: GuardedChange) -> bool:
    """For a change of a bundle: True for a move, and for a split after which clients have to reconnect."""
    return isinstance(step.change, UnloadBundle) or step.touched.clients > 0
