"""Guards of a deleted subscription: it is the planned one, unused, and the policy permits its deletion."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pulsar_steward.errors import InvalidName
from pulsar_steward.guards.kinds import Objection, SubscriptionGuard, known
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.subscription import not_a_users
from pulsar_steward.model.units import counted, epoch_in_words
from pulsar_steward.policy.names import naming, naming_topic
from pulsar_steward.pulsar import calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import DeleteSubscription, GuardedChange, GuardResult
    from pulsar_steward.model.subscription import Cursor, SubscriptionState
    from pulsar_steward.policy.schema import Policy


class SubscriptionUnused(SubscriptionGuard):
    """Compares its cursor, and looks for consumers (also on the other partitions) and for consumed messages."""

    name = "subscription_unused"
    objection = Objection.DRIFTED

    def check_step(
        self, step: GuardedChange, change: DeleteSubscription, facts: ClusterFacts, policy: Policy
    ) -> GuardResult:
        """Vetoes one that is gone, made anew, reset, consumed, unknown, in use, or on a topic with too few others."""
        named, state = f"subscription {change.subscription} of {change.topic}", known(facts.subscription(change))
        if state is None:
            return self.result(f"there is no {named} any more: somebody deleted it, or its topic", passed=False)
        # An abandoned subscription has not moved for at least this time.
        since = facts.seen_at - timedelta(days=policy.subscriptions.minimum_days)
        against = next(_signs_of_use(named, change.cursor, state, since, _held_at_the_snapshot(step)), None)
        if against is None:
            against = _alone(change, state) or _used_beside(named, known(facts.consumers_beside(change)))
        if against is not None:
            return self.result(against, passed=False)
        held = counted(state.entries, "entry", "entries")
        return self.result(f"nobody is connected to {named}, which holds {held}", passed=True)


def _signs_of_use(
    named: str, planned: Cursor, state: SubscriptionState, since: datetime, held: int | None
) -> Iterator[str]:
    """Signs that somebody uses it, that it is another subscription with its name, or that this is unknown.

    Args:
        named: The subscription.
        planned: Its cursor at the snapshot.
        state: Its state.
        since: Start of the period in which it must not have moved.
        held: Entries in its backlog at the snapshot; None: not known.
    """
    if state.consumers:
        yield f"{counted(state.consumers, 'consumer is', 'consumers are')} connected to {named}"
    if state.moved_milliseconds > since.timestamp() * 1000:
        yield f"{named} was consumed, skipped or expired at {epoch_in_words(state.moved_milliseconds)}"
    if difference := planned.difference(state.cursor):
        yield f"{named} {difference}"
    if held is None:
        yield f"what {named} held at the snapshot is not in the plan"
    elif state.entries < held:
        now = counted(state.entries, "entry", "entries")
        yield f"{named} holds {now}, fewer than the {held:,} of the snapshot"


def _alone(change: DeleteSubscription, state: SubscriptionState) -> str | None:
    """Reason to keep it, if the topic has fewer other subscriptions than its approver saw; None: it has enough."""
    if state.others >= change.stay:
        return None
    others = counted(state.others, "other subscription", "other subscriptions")
    return f"{change.topic} has {others} by now, fewer than the {change.stay:,} that the plan says stay"


def _used_beside(named: str, consumers: int) -> str | None:
    """Reason to keep it, if other partitions have consumers of its name; None: they have none."""
    if not consumers:
        return None
    are = counted(consumers, "consumer of this name is", "consumers of this name are")
    return f"{are} connected to other partitions than that of {named}"


def _held_at_the_snapshot(step: GuardedChange) -> int | None:
    """Entries in the backlog that its approver saw; None: the step has no figure."""
    told = step.loss.topics if isinstance(step.loss, Loss) else ()
    return told[0].messages if told else None


# Brokers also let people delete the cursors of deduplication and compaction, with all data that depends on them.
class SubscriptionExpendable(SubscriptionGuard):
    """Checks its name, its replication, and the policy's protection."""

    name = "subscription_expendable"
    objection = Objection.REFUSED

    def check_step(
        self,
        step: GuardedChange,
        change: DeleteSubscription,
        facts: ClusterFacts,
        policy: Policy,
    ) -> GuardResult:
        """Vetoes Pulsar's own cursors, readers, brokers' cursors; replicated, oddly named, protected subscriptions."""
        named = f"subscription {change.subscription} of {change.topic}"
        against = _by_policy(change, policy) or not_a_users(change.topic, change.subscription)
        if against is not None:
            return self.result(f"{named} {against}", passed=False)
        try:
            calls.delete_subscription(change.topic, change.subscription)
        except InvalidName as error:
            return self.result(f"it cannot be called: {error}", passed=False)
        state = known(facts.subscription(change))
        if state is not None and state.replicated:
            return self.result(
                f"the position of {named} is replicated to other clusters, where somebody may use it", passed=False
            )
        if state is not None and state.replicated is None:
            reason = f"{named} is a user's; whether it is replicated is asked right before the call"
            return self.result(reason, passed=facts.planning)
        return self.result(f"{named} is a user's, and nothing in the policy protects it", passed=True)


def _by_policy(change: DeleteSubscription, policy: Policy) -> str | None:
    """Reason in the policy to keep it, as the end of a sentence; None: there is none."""
    limits = policy.subscriptions
    if not limits.delete_abandoned:
        return "stays, as the policy lets none be deleted (policy key subscriptions.delete_abandoned)"
    if naming_topic(change.topic, limits.protected_topics):
        return "stays, as its topic is protected (policy key subscriptions.protected_topics)"
    if naming(change.subscription, limits.protected_subscriptions):
        return "stays, as its name is protected (policy key subscriptions.protected_subscriptions)"
    return None
