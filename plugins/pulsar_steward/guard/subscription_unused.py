"""Guard: nobody uses a subscription, and nothing was taken from its backlog since it was called abandoned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pulsar_steward.facts.protocol import Unknown
from pulsar_steward.guard.kinds import Objection, SubscriptionGuard
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.units import counted, time_in_words

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import DeleteSubscription, GuardResult, Step
    from pulsar_steward.model.subscription import SubscriptionState
    from pulsar_steward.policy.schema import Policy


class SubscriptionUnused(SubscriptionGuard):
    """Looks for consumers, on the other partitions as well, and for anything that moved."""

    name = "subscription_unused"
    objection = Objection.DRIFTED

    def check_deletion(
        self, step: Step, change: DeleteSubscription, facts: ClusterFacts, policy: Policy
    ) -> GuardResult:
        """Vetoes one that is gone, that somebody is connected to, that was consumed, or of which that is not known."""
        named = f"subscription {change.subscription} of {change.topic}"
        state = facts.subscription(change)
        if isinstance(state, Unknown):
            return self.result(state.reason, passed=False)
        if state is None:
            return self.result(f"there is no {named} any more: somebody deleted it, or its topic", passed=False)
        if state.consumers:
            consumers = counted(state.consumers, "consumer is", "consumers are")
            return self.result(f"{consumers} connected to {named}", passed=False)
        # Nothing of it moved for as long as it has been abandoned, which is this long at least.
        since = facts.seen_at - timedelta(days=policy.subscriptions.minimum_days)
        if moved := _moved(state, since):
            return self.result(f"{named} was consumed, skipped or expired at {time_in_words(moved)}", passed=False)
        held = _held_at_the_snapshot(step)
        if held is None:
            return self.result(f"what {named} held at the snapshot is not in the plan", passed=False)
        if state.entries < held:
            now, then = counted(state.entries, "entry", "entries"), f"{held:,}"
            return self.result(f"{named} holds {now}, fewer than the {then} of the snapshot", passed=False)
        beside = facts.consumers_beside(change)
        if isinstance(beside, Unknown):
            return self.result(beside.reason, passed=False)
        if beside:
            consumers = counted(beside, "consumer of this name is", "consumers of this name are")
            return self.result(f"{consumers} connected to other partitions than that of {named}", passed=False)
        return self.result(
            f"nobody is connected to {named}, which holds {counted(state.entries, 'entry', 'entries')}", passed=True
        )


def _moved(state: SubscriptionState, since: datetime) -> datetime | None:
    """Time of the last move after a time; None: it did not move since, as far as the broker remembers."""
    if state.moved_milliseconds <= since.timestamp() * 1000:
        return None
    return datetime.fromtimestamp(state.moved_milliseconds / 1000, UTC)


def _held_at_the_snapshot(step: Step) -> int | None:
    """Entries that its approver read of; None: the step does not say."""
    told = step.loss.topics if isinstance(step.loss, Loss) else ()
    return told[0].messages if told else None
