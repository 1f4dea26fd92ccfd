"""Guards of the number of a topic's partitions, which can never be lowered again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pulsar_steward.facts.partitions import MOST_OF_NAMESPACE, MOST_OF_TOPIC
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import Objection, PartitionGuard
from pulsar_steward.model.units import counted, time_in_words

if TYPE_CHECKING:
    from pulsar_steward.facts.partitions import PartitionedTopic
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import AddPartitions, GuardResult
    from pulsar_steward.policy.schema import Policy


class PartitionLimit(PartitionGuard):
    """Compares the new number with the policy's maximum, which permits no raise by default, and with Pulsar's own."""

    name = "partition_limit"
    objection = Objection.REFUSED

    def check_change(self, change: AddPartitions, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a number above a limit, and a number that is no raise."""
        most = policy.guards.most_partitions
        if not most:
            return self.result("the policy permits no raise of their number (guards.most_partitions)", passed=False)
        if change.after <= change.before:
            return self.result(f"{change.after:,} are not more than {change.before:,}", passed=False)
        reason = f"{change.after:,} of at most {most:,} (policy key guards.most_partitions)"
        if change.after > most:
            return self.result(reason, passed=False)
        topic = facts.partitioned_topic(change)
        against = topic.reason if isinstance(topic, Unknown) else _over_brokers_limits(change, topic)
        return self.result(against or reason, passed=against is None)


def _over_brokers_limits(change: AddPartitions, topic: PartitionedTopic) -> str | None:
    """Limit of the brokers or of the namespace that the new number exceeds; None: none."""
    if 0 < topic.most_partitions < change.after:
        return f"brokers permit {topic.most_partitions:,} in a topic, not {change.after:,} ({MOST_OF_TOPIC})"
    topics = topic.topics + change.after - change.before
    if 0 < topic.most_topics < topics:
        return (
            f"{change.namespace} would have {counted(topics, 'topic')}, and may have {topic.most_topics:,}"
            f" (max_topics_per_namespace, {MOST_OF_NAMESPACE})"
        )
    return None


class TopicAsPlanned(PartitionGuard):
    """Looks for a topic that was deleted and made anew, with as many partitions, since it was planned for."""

    name = "topic_as_planned"
    objection = Objection.DRIFTED

    def check_change(self, change: AddPartitions, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a topic that is younger than the plan, or of which it is not known; brokers are asked at the call."""
        if facts.planning:
            return self.result("whether it is still this topic is asked right before the call", passed=True)
        topic = facts.partitioned_topic(change)
        if isinstance(topic, Unknown):
            return self.result(topic.reason, passed=False)
        if topic.created is None:
            unknown = f"when {change.topic} was made is not known: it may be another one of this name by now"
            return self.result(unknown, passed=False)
        # The metadata store's clock tells the one time, and Steward's the other. Brokers' statistics, by which it was
        # planned, may have been of an earlier topic.
        apart = timedelta(seconds=policy.guards.most_clock_difference_seconds + topic.statistics_seconds)
        made = f"{change.topic} was made at {time_in_words(topic.created)}"
        if topic.created < facts.planned_at - apart:
            return self.result(f"{made}, before what it was planned by", passed=True)
        return self.result(f"{made}: what was planned for may have been another one of this name", passed=False)


class PartitionOrder(PartitionGuard):
    """Looks for consumers that rely on an order, and for readers, compaction and other clusters."""

    name = "partition_order"
    objection = Objection.REFUSED

    def check_change(self, change: AddPartitions, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a raise that consumers in order would notice, or that others would be part of."""
        topic = facts.partitioned_topic(change)
        if isinstance(topic, Unknown):
            return self.result(topic.reason, passed=False)
        if against := "; ".join(topic.against_order()):
            return self.result(f"{change.topic}: {against}", passed=False)
        shared = counted(len(topic.subscriptions), "subscription is shared", "subscriptions are shared")
        return self.result(f"{shared}, nothing is compacted, and no other cluster has the topic", passed=True)
