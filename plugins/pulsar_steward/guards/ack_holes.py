"""Guard: a move redelivers no more acknowledged messages than the policy permits and a person approved.

A broker persists a limited number of ack holes of a cursor; a move loses the rest (apache/pulsar#25540). A partly
acknowledged message batch loses its acknowledgements in a move, and is redelivered whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guards.in_flight import disturbs_consumers
from pulsar_steward.guards.kinds import BundleStepGuard, Objection
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.facts.risks import MoveRisks
    from pulsar_steward.model.step import BundleChange, GuardedChange, GuardResult
    from pulsar_steward.policy.schema import Policy

MOST_KEY = "policy key guards.most_redelivered_messages"
BATCH_KEY = "policy key guards.largest_batch_messages"


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
