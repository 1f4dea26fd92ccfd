"""Guard: a subscription belongs to users, and the policy permits its deletion.

Brokers also let people delete the cursors of deduplication and compaction, with all data that depends on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.errors import InvalidName
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import Objection, SubscriptionGuard
from pulsar_steward.model.holders import not_a_users
from pulsar_steward.policy.names import naming, naming_topic
from pulsar_steward.pulsar import calls

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import DeleteSubscription, GuardedChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class SubscriptionExpendable(SubscriptionGuard):
    """Checks its name, its replication, and the policy's protection."""

    name = "subscription_expendable"
    objection = Objection.REFUSED

    def check_deletion(
        self,
        step: GuardedChange,  # noqa: ARG002 - part of the protocol
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
        state = facts.subscription(change)
        if isinstance(state, Unknown):
            return self.result(state.reason, passed=False)
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
