"""Raise of the number of a topic's partitions: proved by that number, and by the subscriptions on the new ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.changes.kind import ApprovalWarning, Aspect, Before
from pulsar_steward.changes.raising import Raise
from pulsar_steward.model.pulsar_versions import Operation
from pulsar_steward.model.step import AddPartitions
from pulsar_steward.model.units import counted, named
from pulsar_steward.pulsar import calls

if TYPE_CHECKING:
    from pulsar_steward.changes.kind import ClusterReader, Subject
    from pulsar_steward.model.step import GuardedChange
    from pulsar_steward.pulsar.calls import Call


class BeforePartitions(Before, frozen=True):
    """Former number of partitions."""

    partitions: int


class PartitionsRaise(Raise[AddPartitions, BeforePartitions]):
    """Raise of the number of a topic's partitions."""

    breaks_off = True
    aspects = frozenset({Aspect.PARTITIONS})
    operation = Operation.ADD_PARTITIONS
    before_type = BeforePartitions

    @property
    def subject(self) -> Subject:
        """The topic and its partitions."""
        return self.change.topic, "number of partitions"

    @property
    def what(self) -> str:
        """The number, with the topic."""
        return f"the number of partitions of {self.change.topic}"

    def number(self, cluster: ClusterReader) -> int:
        """The number in the topic's metadata; 0: it is not partitioned, or was deleted."""
        return cluster.partitions(self.change.topic)

    def words(self, number: int) -> str:
        """The number with the topic."""
        return f"{self.change.topic} has {counted(number, 'partition')}"

    def before(self, number: int) -> BeforePartitions:
        """The former number."""
        return BeforePartitions(partitions=number)

    # Brokers write the number first, then make the partitions and then their subscriptions; what they break off shows
    # nowhere else (apache/pulsar#25041). What is published to a partition without them may be deleted unread.
    def lacking(self, cluster: ClusterReader) -> str:
        """New partitions that are not there, or lack a subscription of the first one."""
        change = self.change
        wanted = cluster.stored_subscriptions(f"{change.topic}-partition-0")
        if wanted is None:
            return ", but its first partition is not there, so that nothing shows which subscriptions the new ones need"
        lacking = []
        for index in range(change.before, change.after):
            there = cluster.stored_subscriptions(f"{change.topic}-partition-{index}")
            if there is None:
                lacking.append(f"{index} is not there")
            elif missing := sorted(wanted - there):
                lacking.append(f"{index} lacks {named(missing)}")
        if not lacking:
            return ""
        return (
            f", but of its new partitions {named(lacking)}: `pulsar-admin topics create-missed-partitions` makes the"
            " partitions, and `create-subscription -m earliest` the subscriptions"
        )

    def call(self) -> Call:
        """The raise."""
        return calls.add_partitions(self.change.topic, self.change.after)

    def warning(self, step: GuardedChange) -> ApprovalWarning:
        """The order of messages with one key is not kept across the raise, whoever consumes them."""
        return ApprovalWarning(
            headline="changes the partition of most keys",
            subject=self.change.topic,
            words=(
                "producers that choose a partition by key will send most keys to another one. What was sent before"
                " stays where it is, so the messages of one key may be consumed out of order. Some clients, readers"
                " among them, do not look for new partitions: they get nothing from them until they restart"
            ),
        )
