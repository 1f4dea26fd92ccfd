"""Deletion of an unused subscription: one call, after which the topic no longer shows it. There is no inverse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes.kind import ApprovalWarning, Aspect, Before, ChangeKind, Drifted, Observation
from pulsar_steward.errors import Refused
from pulsar_steward.model.loss import size_in_words
from pulsar_steward.model.pulsar_versions import Operation
from pulsar_steward.model.step import DeleteSubscription
from pulsar_steward.model.subscription import Cursor
from pulsar_steward.model.units import counted
from pulsar_steward.pulsar import calls

if TYPE_CHECKING:
    from pulsar_steward.changes.kind import ClusterReader, Inverse, Subject
    from pulsar_steward.model.step import GuardedChange
    from pulsar_steward.pulsar.calls import Call


class BeforeDeletion(Before, frozen=True):
    """Entries that the deletion loses, the consumers (none), and the cursor, which is the planned one."""

    entries: int
    consumers: int
    cursor: Cursor


class SubscriptionDeletion(ChangeKind[DeleteSubscription, BeforeDeletion]):
    """Deletion of one subscription of one topic, never by force."""

    undoable = False
    loses_messages = True
    aspects = frozenset({Aspect.SUBSCRIPTION, Aspect.DATA})
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
        """0: no client is connected to it, and others do not notice."""
        return 0

    def record(self, cluster: ClusterReader) -> BeforeDeletion:
        """The present state; raises if the subscription is gone, made anew, reset or in use."""
        state = cluster.subscription(self.change)
        if state is None:
            raise Drifted(f"{self.name} is gone already: somebody deleted it, or its topic")
        if state.consumers:
            consumers = counted(state.consumers, "consumer is", "consumers are")
            raise Drifted(f"{consumers} connected to {self.name} by now")
        if difference := self.change.cursor.difference(state.cursor):
            raise Drifted(f"{self.name} {difference}")
        return BeforeDeletion(entries=state.entries, consumers=state.consumers, cursor=self.change.cursor)

    def call(self) -> Call:
        """The deletion; a broker refuses it as long as a consumer is connected."""
        return calls.delete_subscription(self.change.topic, self.change.subscription)

    def completion(self, before: BeforeDeletion) -> Call | None:
        """None: the call is sufficient."""
        return None

    def observe(self, cluster: ClusterReader) -> Observation:
        """State of the topic: without it, with it, or with a new one of its name, for example from a client.

        `untouched` is never True: a call that was cut short may still be under way. A second call might then delete a
        subscription that a client creates after the first.
        """
        state = cluster.subscription(self.change)
        if state is None:
            return Observation(
                there=True, untouched=False, words=f"there is no {self.name}", values={"subscription": None}
            )
        held = counted(state.entries, "entry", "entries")
        words = f"there is a {self.name}, with {held} and {counted(state.consumers, 'consumer')}"
        difference = self.change.cursor.difference(state.cursor)
        return Observation(
            there=False,
            untouched=False,
            words=f"{words}, which {difference}" if difference else words,
            values={
                "subscription": {
                    "entries": state.entries,
                    "consumers": state.consumers,
                    "cursor": msgspec.to_builtins(state.cursor),
                }
            },
        )

    def inverse(self, before: BeforeDeletion, cluster: ClusterReader) -> Inverse:
        """Always raises `Refused`: there is no inverse."""
        held = counted(before.entries, "entry", "entries")
        raise Refused(
            f"the deletion of {self.name} cannot be undone: a new one of this name would not get the {held} that it had"
            " not read"
        )

    def describe(self) -> str:
        """The topic, and then the subscription: whoever names one could write a topic into its name."""
        return f"{self.change.topic}: delete subscription {_quoted(self.change.subscription)}"

    def warning(self, step: GuardedChange) -> ApprovalWarning:
        """Warning that its unread messages are lost to it for good."""
        many, loss = "all that it has not read, how much is not known", step.known_loss
        if loss is not None and loss.messages is not None:
            entries = counted(loss.messages, "entry", "entries")
            many = f"up to {entries} ({size_in_words(loss.bytes)}) that it has not read, a batch counted as one"
        return ApprovalWarning(
            headline=f"DELETES {'A' if self.change.stay else 'THE LAST'} SUBSCRIPTION, WHICH CANNOT BE UNDONE",
            subject=self.name,
            words=(
                f"it loses {many}, for good; where it would be more by the time of the call, or anybody came to use it,"
                " nothing is done. Ask the topic's owners first. What it held at the snapshot:"
            ),
        )


LONGEST_NAME = 80
"""Characters of a subscription's name that a description shows; of a longer one, its two ends."""


def _quoted(name: str) -> str:
    half = (LONGEST_NAME - 1) // 2
    return f"“{name if len(name) <= LONGEST_NAME else f'{name[:half]}…{name[-half:]}'}”"
