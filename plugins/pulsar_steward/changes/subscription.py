"""Deletion of a subscription that nobody uses: one call, after which its topic shows it no more. It has no inverse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.admin import calls
from pulsar_steward.changes.kind import ApprovalWarning, Before, ChangeKind, Drifted, Observation
from pulsar_steward.errors import Refused
from pulsar_steward.model.pulsar_versions import Operation
from pulsar_steward.model.step import DeleteSubscription
from pulsar_steward.model.units import bytes_in_words, counted

if TYPE_CHECKING:
    from pulsar_steward.admin.calls import Call
    from pulsar_steward.changes.kind import ClusterReader, Inverse, Subject
    from pulsar_steward.model.loss import Loss


class BeforeDeletion(Before, frozen=True):
    """Entries that are lost with it, its consumers (none), and its cursor's mark-delete position."""

    entries: int
    consumers: int
    position: str


class SubscriptionDeletion(ChangeKind[DeleteSubscription, BeforeDeletion]):
    """Deletion of one subscription of one topic, never by force."""

    undoable = False
    loses_messages = True
    sets_value = False
    disturbs = None
    operation = Operation.DELETE_SUBSCRIPTION
    before_type = BeforeDeletion

    @property
    def subject(self) -> Subject:
        """The topic and the subscription."""
        return self.change.topic, self.change.subscription

    @property
    def name(self) -> str:
        """The subscription with its topic."""
        return f"subscription {self.change.subscription} of {self.change.topic}"

    def clients(self, cluster: ClusterReader, owner: str | None = None) -> int:
        """None: nobody is connected to it, and nobody else notices."""
        return 0

    def record(self, cluster: ClusterReader) -> BeforeDeletion:
        """Before-values: the state at this moment; one that is gone, or that somebody uses, is left alone."""
        state = cluster.subscription(self.change)
        if state is None:
            raise Drifted(f"{self.name} is gone already: somebody deleted it, or its topic")
        if state.consumers:
            consumers = counted(state.consumers, "consumer is", "consumers are")
            raise Drifted(f"{consumers} connected to {self.name} by now")
        return BeforeDeletion(entries=state.entries, consumers=state.consumers, position=state.position)

    def call(self) -> Call:
        """The deletion; a broker refuses it as long as a consumer is connected."""
        return calls.delete_subscription(self.change.topic, self.change.subscription)

    def completion(self, before: BeforeDeletion) -> Call | None:
        """None: it is whole by itself."""
        return None

    def observe(self, cluster: ClusterReader) -> Observation:
        """Whether the topic still has it, and whether somebody uses it, as one that a client made again."""
        state = cluster.subscription(self.change)
        if state is None:
            return Observation(
                there=True, untouched=False, words=f"there is no {self.name}", values={"subscription": None}
            )
        held = counted(state.entries, "entry", "entries")
        return Observation(
            there=False,
            untouched=not state.consumers,
            words=f"there is a {self.name}, with {held} and {counted(state.consumers, 'consumer')}",
            values={
                "subscription": {
                    "entries": state.entries,
                    "consumers": state.consumers,
                    "position": state.position,
                }
            },
        )

    def inverse(self, before: BeforeDeletion, cluster: ClusterReader) -> Inverse:
        """Refused: there is none."""
        held = counted(before.entries, "entry", "entries")
        raise Refused(
            f"the deletion of {self.name} cannot be undone: a new one of this name would not get the {held} that it had"
            " not read"
        )

    def describe(self) -> str:
        """The subscription with its topic."""
        return f"delete {self.name}"

    def warning(self, loss: Loss | None) -> ApprovalWarning:
        """Warning: the messages that it has not read are lost to it for good."""
        many = "all that it has not read, how much is not known"
        if loss is not None:
            entries = counted(loss.messages or 0, "entry", "entries")
            many = f"up to {entries} ({bytes_in_words(loss.bytes)}) that it has not read, a batch counted as one"
        return ApprovalWarning(
            headline="DELETES A SUBSCRIPTION, WHICH CANNOT BE UNDONE",
            subject=self.name,
            words=(
                f"it loses {many}, for good; where it would be more by the time of the call, or anybody came to use it,"
                " nothing is done. Ask the topic's owners first. What it held at the snapshot:"
            ),
        )
