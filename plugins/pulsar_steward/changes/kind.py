"""Base of the kinds of change: all that the rest of the project asks of a change, whichever kind it is of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from pulsar_steward.errors import Refused
from pulsar_steward.model.step import Change, Touched

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pulsar_steward.admin.calls import Call
    from pulsar_steward.admin.statistics import TopicStatistics
    from pulsar_steward.errors import AdminError
    from pulsar_steward.model.loss import Loss
    from pulsar_steward.model.pulsar_versions import Operation
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.model.step import ChangeSetting, DeleteSubscription
    from pulsar_steward.model.subscription import SubscriptionState

Subject = tuple[str, str]
"""Subject of a change, whatever its value or target: a namespace's bundle, a setting of a namespace or topic, or a
topic's subscription."""


class Drifted(Refused):
    """The cluster moved on: the change would no longer be the one that was approved."""


class Before(msgspec.Struct, frozen=True):
    """Live values that a change replaces, as the ledger keeps them; each kind has its own."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """State of a change in the live cluster.

    Attributes:
        there: True if the change is there, whole.
        untouched: True if everything is still as it was before the change, so that it may be tried again.
        words: The state, in a sentence.
        values: The state as values, for the ledger.
        continuation: The change that leads from this state to what was approved, where Pulsar went another way; else
            None.
        retry: The same, where the change was taken back: only if the call was accepted, and it is seen steadily.
    """

    there: bool
    untouched: bool
    words: str
    values: dict[str, Any]
    continuation: Change | None = None
    retry: Change | None = None


class DisturbedBundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle whose clients have to reconnect for a change, with its owner before and after it (``host:webport``)."""

    namespace: str
    bundle: str
    owner_before: str
    owner_after: str

    @property
    def name(self) -> str:
        """Full name, ``tenant/ns/range``."""
        return f"{self.namespace}/{self.bundle}"

    @property
    def moves(self) -> bool:
        """True if it goes to another broker."""
        return self.owner_before != self.owner_after


class Inverse(msgspec.Struct, frozen=True, kw_only=True):
    """The change that restores what was there before another one, with its words for the approval.

    Attributes:
        change: The change.
        made: What the other change did, such as ``moved tenant/ns/range from a:8080 to b:8080``.
        effect: The state of the cluster afterwards, in a sentence.
        touched: The clients that it disturbs; None: as many as the other change.
        undo: The change that makes the other one again.
        undo_note: The way to make it again, as text.
    """

    change: Change
    made: str
    effect: str
    touched: Touched | None = None
    undo: Change
    undo_note: str


class ApprovalWarning(msgspec.Struct, frozen=True, kw_only=True):
    """Warning above an approval request, for a change that deletes messages or stops producers.

    Attributes:
        headline: The warning, after the step's id.
        subject: What is changed.
        words: What it does at once, in a sentence; None: `guard` says so.
        guard: Name of the guard whose reason tells it.
        otherwise: The sentence where that guard has no result.
    """

    headline: str
    subject: str
    words: str | None = None
    guard: str = ""
    otherwise: str = ""


class ClusterReader(Protocol):
    """Port by which kinds of change read the live cluster; every method raises `AdminError` where it cannot be read."""

    def brokers(self) -> tuple[str, ...]:
        """Brokers that the cluster lists."""

    def configuration(self, broker: str) -> dict[str, str]:
        """Runtime configuration of a broker; every value is a string."""

    def owned_by_each(self, brokers: Collection[str]) -> dict[str, tuple[str, ...] | AdminError]:
        """Bundles (``tenant/ns/range``) that brokers own; of a broker that cannot be read, the error."""

    def bundles(self, namespace: str) -> tuple[str, ...] | None:
        """A namespace's bundles in order; None: there is no such namespace."""

    def owner(self, namespace: str, bundle: str, *, likely: str = "") -> str | None:
        """Owner of a bundle; None: nobody. The likely broker is asked first."""

    def topic_in(self, namespace: str, bundle: str) -> str | None:
        """A topic of an owned bundle that can be looked up; None: it has none."""

    def positions(self, namespace: str, bundle: str) -> tuple[int, ...]:
        """Hash positions of the topics in an owned bundle, in ascending order."""

    def topics(self, broker: str, namespace: str, bundle: str) -> dict[str, TopicStatistics]:
        """Loaded topics of a bundle by full name, by its owner's statistics."""

    def clients(self, broker: str, namespace: str, bundle: str) -> int:
        """Producers and consumers connected through a bundle, by its owner's statistics."""

    def coordinators(self) -> int:
        """Number of the cluster's transaction coordinators."""

    def inherited(self, change: ChangeSetting) -> Setting | None:
        """Value that applies to what a change sets where it is not set there; None: none does."""

    def own_setting(self, change: ChangeSetting) -> Setting | None:
        """Present value of what a change sets, at the same level; None: not set there."""

    def subscription(self, change: DeleteSubscription) -> SubscriptionState | None:
        """Present state of a subscription, as the topic's owner tells it; None: there is none of this name."""


ChangeT = TypeVar("ChangeT", bound=Change)
BeforeT = TypeVar("BeforeT", bound=Before)


class ChangeKind(ABC, Generic[ChangeT, BeforeT]):
    """One change, by its kind: how it is made, seen, undone and told.

    Everything is abstract on purpose: a kind that leaves something out cannot be used at all.
    """

    def __init__(self, change: ChangeT) -> None:
        self.change = change

    # -- what it is about

    @property
    @abstractmethod
    def subject(self) -> Subject:
        """Subject of the change: a bundle or a setting with its namespace, or a subscription with its topic."""

    @property
    @abstractmethod
    def disturbs(self) -> DisturbedBundle | None:
        """The bundle whose clients have to reconnect for it; None: no client has to."""

    @property
    @abstractmethod
    def undoable(self) -> bool:
        """False if no call can restore what was there before."""

    @property
    @abstractmethod
    def loses_messages(self) -> bool:
        """True if messages are deleted for it that would have been kept otherwise."""

    @property
    @abstractmethod
    def sets_value(self) -> bool:
        """True if it sets a value, so that its approver reads how that comes about."""

    @abstractmethod
    def clients(self, cluster: ClusterReader, owner: str | None = None) -> int:
        """Number of clients that have to reconnect for it.

        Args:
            cluster: Reads the live cluster.
            owner: Owner of the bundle; None: as it was planned.

        Raises:
            AdminError: If the owner cannot be read.
        """

    # -- how it is made

    @property
    @abstractmethod
    def operation(self) -> Operation | None:
        """Operation that has to have been tried on the brokers' version; None: it needs what every Pulsar has."""

    @property
    @abstractmethod
    def before_type(self) -> type[BeforeT]:
        """Type of the values that it replaces."""

    @abstractmethod
    def record(self, cluster: ClusterReader) -> BeforeT:
        """The live values that the change replaces; the ledger keeps them.

        Raises:
            Drifted: If something else than what was approved would come of it.
            Refused: If the change could not be completed, so that it must not begin.
            AdminError: If the cluster cannot be read.
        """

    def recorded(self, document: Mapping[str, Any]) -> BeforeT:
        """The same values, from the ledger.

        Raises:
            msgspec.ValidationError: If these are not values of this kind.
        """
        return msgspec.convert(document, self.before_type)

    @abstractmethod
    def call(self) -> Call:
        """The call that makes the change; sent once."""

    @abstractmethod
    def completion(self, before: BeforeT) -> Call | None:
        """A call that may be repeated until the change shows, such as a lookup that has a bundle loaded; None: none."""

    @abstractmethod
    def observe(self, cluster: ClusterReader) -> Observation:
        """State of the change in the live cluster.

        Raises:
            AdminError: If it cannot be read.
        """

    @abstractmethod
    def inverse(self, before: BeforeT, cluster: ClusterReader) -> Inverse:
        """The change that restores these values, where the cluster still shows what the change made.

        Raises:
            Refused: If it cannot be undone, or somebody changed it since.
            AdminError: If the cluster cannot be read.
        """

    # -- how it is told

    @abstractmethod
    def describe(self) -> str:
        """The change in a few words, with names unescaped."""

    @abstractmethod
    def warning(self, loss: Loss | None) -> ApprovalWarning | None:
        """Warning for its approver; None: there is nothing to warn of.

        Args:
            loss: Messages that are deleted at once, as the step says.
        """
