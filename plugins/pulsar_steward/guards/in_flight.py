"""Losses and messages in flight of a step: their bounds, and the guards that compare them with the approval."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from pulsar_steward.changes.kind import Aspect
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import BundleStepGuard, Guard, Objection
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.loss import NOTHING_LOST, InFlight, Loss
from pulsar_steward.model.step import BundleChange, ChangeSetting, DeleteSubscription, GuardedChange, UnloadBundle
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.facts.risks import MoveRisks
    from pulsar_steward.model.step import GuardResult
    from pulsar_steward.policy.schema import Policy


Guarded = TypeVar("Guarded", bound=GuardedChange)

MOST_KEY = "policy key guards.most_redelivered_messages"
BATCH_KEY = "policy key guards.largest_batch_messages"


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


# A broker persists a limited number of ack holes of a cursor; a move loses the rest (apache/pulsar#25540). A partly
# acknowledged message batch loses its acknowledgements in a move, and is redelivered whole.


class AckHoles(BundleStepGuard):
    """Compares the acknowledged messages that might be redelivered with the policy, and with the approval."""

    name = "ack_holes"
    objection = Objection.REFUSED

    def check_step(self, step: GuardedChange, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step that would redeliver more, or an unknown number."""
        risks, guards = facts.move_risks(change), policy.guards
        if risks.holey or risks.may_come_again is None:
            return self.result(_not_known(risks, guards.largest_batch_messages), passed=False)
        again, most = risks.may_come_again, guards.most_redelivered_messages
        if not again:
            return self.result("no acknowledged message is delivered again", passed=True)
        worst = risks.open_batches[0]
        said = (
            f"up to {counted(again, 'acknowledged message')} would be delivered again, as batches may be acknowledged"
            f" in part: most of them to {worst.subscription} of {worst.topic}, of"
            f" {counted(worst.entries, 'entry', 'entries')}"
        )
        if again > most:
            return self.result(f"{said}; more than {most:,} ({MOST_KEY})", passed=False)
        approved = step.moving_messages.again
        if not facts.planning and disturbs_consumers(step) and again > approved:
            return self.result(f"{said}; more than the {approved:,} that were approved", passed=False)
        return self.result(f"{said}; at most {most:,} may be ({MOST_KEY})", passed=True)


def _not_known(risks: MoveRisks, largest_batch: int) -> str:
    unknown = "how many acknowledged messages would be delivered again is not known"
    if risks.holey:
        worst = risks.holey[0]
        return (
            f"{unknown}: {worst.subscription} of {worst.topic} has {counted(worst.holes, 'ack hole')}, and brokers are"
            f" sure to keep {worst.kept:,}. Have what was left out acknowledged, or raise the brokers' limit"
        )
    largest = risks.open_batches[0]
    return (
        f"{unknown}: {largest.subscription} of {largest.topic} gets"
        f" {counted(largest.messages_per_entry, 'message')} a batch, more than {largest_batch:,} ({BATCH_KEY})"
    )


# Their messages are not stored: messages that are published while a consumer reconnects are lost.
class VolatileTopics(BundleStepGuard):
    """Compares the non-persistent topics and their rates with those of the approval."""

    name = "volatile_topics"
    objection = Objection.REFUSED

    def check_step(self, step: GuardedChange, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a step on a bundle with more such topics, or higher rates, than in the approval."""
        if not disturbs_consumers(step):
            return self.result("no client has to reconnect", passed=True)
        risks, approved = facts.move_risks(change), step.moving_messages
        topics, lost = risks.volatile_topics, risks.lost_messages
        if not topics:
            return self.result("no topic loses messages while its clients reconnect", passed=True)
        if lost is None:
            many = counted(topics, "topic that is not persistent", "topics that are not persistent")
            words = f"how many messages {many} would lose is not known: no number is told for the rate of one"
            return self.result(words, passed=False)
        said = (
            f"{counted(topics, 'topic that is not persistent loses', 'topics that are not persistent lose')} up to"
            f" {counted(lost, 'message')} at their rates, within {policy.health.return_seconds} s"
            " (policy key health.return_seconds)"
        )
        if topics > approved.volatile_topics or lost > approved.lost:
            planned = f"{counted(approved.volatile_topics, 'topic')} and {counted(approved.lost, 'message')}"
            return self.result(f"{said}; more than the {planned} that were approved", passed=False)
        return self.result(f"{said}; no more than was approved", passed=True)
