"""Guard: nobody uses a subscription, and nothing was taken from its backlog since it was called abandoned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guard.kinds import Objection, SubscriptionGuard
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.units import counted, time_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        named, state = f"subscription {change.subscription} of {change.topic}", facts.subscription(change)
        if isinstance(state, Unknown):
            return self.result(state.reason, passed=False)
        if state is None:
            return self.result(f"there is no {named} any more: somebody deleted it, or its topic", passed=False)
        # Nothing of it moved for as long as it has been abandoned, which is this long at least.
        since = facts.seen_at - timedelta(days=policy.subscriptions.minimum_days)
        against = next(_signs_of_use(named, state, since, _held_at_the_snapshot(step)), None)
        if against is None:
            against = _used_beside(named, facts.consumers_beside(change))
        if against is not None:
            return self.result(against, passed=False)
        held = counted(state.entries, "entry", "entries")
        return self.result(f"nobody is connected to {named}, which holds {held}", passed=True)


def _signs_of_use(named: str, state: SubscriptionState, since: datetime, held: int | None) -> Iterator[str]:
    """Each sign that somebody uses it, or that nobody can tell.

    Args:
        named: The subscription.
        state: Its state.
        since: The time from which on nothing of it may have moved.
        held: Entries that it held at the snapshot; None: not known.
    """
    if state.consumers:
        yield f"{counted(state.consumers, 'consumer is', 'consumers are')} connected to {named}"
    if state.moved_milliseconds > since.timestamp() * 1000:
        moved = datetime.fromtimestamp(state.moved_milliseconds / 1000, UTC)
        yield f"{named} was consumed, skipped or expired at {time_in_words(moved)}"
    if held is None:
        yield f"what {named} held at the snapshot is not in the plan"
    elif state.entries < held:
        now = counted(state.entries, "entry", "entries")
        yield f"{named} holds {now}, fewer than the {held:,} of the snapshot"


def _used_beside(named: str, consumers: int | Unknown) -> str | None:
    """Why the topic's other partitions keep it; None: they do not."""
    if isinstance(consumers, Unknown):
        return consumers.reason
    if not consumers:
        return None
    are = counted(consumers, "consumer of this name is", "consumers of this name are")
    return f"{are} connected to other partitions than that of {named}"


def _held_at_the_snapshot(step: Step) -> int | None:
    """Entries that its approver read of; None: the step does not say."""
    told = step.loss.topics if isinstance(step.loss, Loss) else ()
    return told[0].messages if told else None
