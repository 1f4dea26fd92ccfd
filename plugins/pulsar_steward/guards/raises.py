"""Guards of numbers that can never be lowered again: of transaction coordinators, and of a topic's partitions."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pulsar_steward.facts.partitions import MOST_OF_NAMESPACE, MOST_OF_TOPIC
from pulsar_steward.guards.kinds import CoordinatorGuard, Objection, PartitionGuard, known
from pulsar_steward.model.units import counted, time_in_words

if TYPE_CHECKING:
    from pulsar_steward.facts.partitions import PartitionedTopic
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import AddPartitions, GuardResult, RaiseCoordinators
    from pulsar_steward.policy.schema import Policy


def _within(change: RaiseCoordinators | AddPartitions, most: int, key: str) -> tuple[str, bool]:
    """Words on a new number beside the policy's maximum, which permits no raise by default; whether it is within."""
    if not most:
        return f"the policy permits no raise of their number ({key})", False
    if change.after <= change.before:
        return f"{change.after:,} are not more than {change.before:,}", False
    return f"{change.after:,} of at most {most:,} (policy key {key})", change.after <= most


class CoordinatorLimit(CoordinatorGuard):
    """Compares the new number with the policy's maximum."""

    name = "coordinator_limit"
    objection = Objection.REFUSED

    def check_change(self, change: RaiseCoordinators, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a number above `guards.most_coordinators`, and a number that is no raise."""
        reason, passed = _within(change, policy.guards.most_coordinators, "guards.most_coordinators")
        return self.result(reason, passed=passed)


MAX_NAMED = 3


class CoordinatorsRest(CoordinatorGuard):
    """Checks the present coordinators: more of them would not help while these recover."""

    name = "coordinators_rest"
    objection = Objection.REFUSED

    def check_change(self, change: RaiseCoordinators, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a raise while a coordinator is unserved or recovering, and in the rest time after another raise."""
        if restless := facts.restless_coordinators():
            more = len(restless) - MAX_NAMED
            rest = f" and {counted(more, 'coordinator')} more" if more > 0 else ""
            return self.result(f"{', '.join(restless[:MAX_NAMED])}{rest}", passed=False)
        raised_at = facts.raised_at(change)
        if raised_at is None:
            return self.result("every coordinator is served, and their number was not raised lately", passed=True)
        end = raised_at + timedelta(minutes=policy.guards.coordinators_rest_minutes)
        passed = facts.now >= end
        verb = "rested" if passed else "rests"
        reason = (
            f"raised at {raised_at:%Y-%m-%d %H:%M:%S}, {verb} until {end:%Y-%m-%d %H:%M:%S} UTC"
            " (policy key guards.coordinators_rest_minutes)"
        )
        return self.result(reason, passed=passed)


class PartitionLimit(PartitionGuard):
    """Compares the new number with the policy's maximum, and with Pulsar's own."""

    name = "partition_limit"
    objection = Objection.REFUSED

    def check_change(self, change: AddPartitions, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Vetoes a number above a limit, and a number that is no raise."""
        reason, passed = _within(change, policy.guards.most_partitions, "guards.most_partitions")
        if not passed:
            return self.result(reason, passed=False)
        against = _over_brokers_limits(change, known(facts.partitioned_topic(change)))
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
        topic = known(facts.partitioned_topic(change))
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
        topic = known(facts.partitioned_topic(change))
        if against := "; ".join(topic.against_order()):
            return self.result(f"{change.topic}: {against}", passed=False)
        shared = counted(len(topic.subscriptions), "subscription is shared", "subscriptions are shared")
        return self.result(f"{shared}, nothing is compacted, and no other cluster has the topic", passed=True)
