"""Base class of the kinds of change, with everything that the rest of the project uses of a change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from pulsar_steward.decoding import convert
from pulsar_steward.errors import Refused
from pulsar_steward.model.step import Change, Touched

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pulsar_steward.errors import AdminError
    from pulsar_steward.model.isolation import IsolationPolicy
    from pulsar_steward.model.pulsar_versions import Operation
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.model.step import ChangeSetting, DeleteSubscription, GuardedChange, GuardResult
    from pulsar_steward.model.subscription import SubscriptionState
    from pulsar_steward.pulsar.calls import Call
    from pulsar_steward.pulsar.statistics import TopicStatistics

Subject = tuple[str, str]
"""Subject of a change, without its value or target: a namespace's bundle, a setting of a namespace or topic, or a
topic's subscription or partitions."""


class Aspect(StrEnum):
    """Part of a cluster that a change may alter; a guard of a part checks the kinds that alter it."""

    BUNDLE = "bundles"
    OWNER = "owners of bundles"
    SETTING = "settings"
    COORDINATORS = "the number of coordinators"
    PARTITIONS = "the number of a topic's partitions"
    SUBSCRIPTION = "subscriptions"
    ISOLATION = "isolation policies"
    DATA = "stored messages"


class Drifted(Refused):
    """The cluster has changed: the call would no longer make the approved change."""


class Before(msgspec.Struct, frozen=True):
    """Live values that a change replaces, as stored in the ledger; each kind has its own type."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """State of a change in the live cluster.

    Attributes:
        there: True if the change is complete.
        untouched: True if the state proves that the call had no effect and will have none, so that it may be repeated.
            False if there is no proof.
        words: The state, in a sentence.
        values: The state as values, for the ledger.
        continuation: The change from this state to the approved one, if Pulsar made another change; else None.
        broken_off: True if the call took effect in part.
        retry: The change to repeat, if it was taken back; used only if the call was accepted and several observations
            show the same.
    """

    there: bool
    untouched: bool
    words: str
    values: dict[str, Any]
    broken_off: bool = False
    continuation: Change | None = None
    retry: Change | None = None


class DisturbedBundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle with clients that a change makes reconnect, and its owners before and after it (``host:webport``)."""

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


class Beside(msgspec.Struct, frozen=True):
    """Something else that is not as it was right before a call, in a sentence.

    Attributes:
        words: The sentence.
        lost: True if it is gone; None: whether anything is could not be looked at.
    """

    words: str
    lost: bool | None


class Inverse(msgspec.Struct, frozen=True, kw_only=True):
    """The change that undoes an original change, with its words for the approval.

    Attributes:
        change: The change.
        made: The original change in words, such as ``moved tenant/ns/range from a:8080 to b:8080``.
        effect: The state of the cluster after the undo, in a sentence.
        touched: The clients that it disturbs; None: as many as the original change.
        undo: The change that repeats the original one.
        undo_note: Instructions to repeat the original one, as text.
    """

    change: Change
    made: str
    effect: str
    touched: Touched | None = None
    undo: Change
    undo_note: str


class ApprovalWarning(msgspec.Struct, frozen=True, kw_only=True):
    """Warning above an approval request, for a change that somebody loses by.

    Attributes:
        headline: The warning, after the step's id.
        subject: Subject of the change.
        words: Immediate effect, in a sentence; None: the reason of `guard` tells it.
        guard: Name of the guard with this reason.
        otherwise: The sentence if that guard has no result.
        spared: Words after the headline if that guard passes; empty: none.
    """

    headline: str
    subject: str
    words: str | None = None
    guard: str = ""
    otherwise: str = ""
    spared: str = ""

    def headline_after(self, results: Iterable[GuardResult]) -> str:
        """The headline, with the present effect as guards saw it."""
        passes = any(each.passed for each in results if each.guard == self.guard)
        return f"{self.headline}; {self.spared}" if self.spared and passes else self.headline


def changed_since(subject: str, now: str, made: str, former: str) -> Refused:
    """Refusal to undo a change whose result somebody has changed since.

    Args:
        subject: The changed thing.
        now: Its present value, in words.
        made: What Steward did, such as ``set it to 1 h``.
        former: The value before that, in words.
    """
    return Refused(
        f"somebody changed {subject}: it is {now}, and is left as it is. Steward had {made}; before that, it was"
        f" {former}"
    )


class ClusterReader(Protocol):
    """Port through which kinds of change read the live cluster; every method raises `AdminError` if it cannot read."""

    def brokers(self) -> tuple[str, ...]:
        """Brokers that the cluster lists."""

    def configuration(self, broker: str) -> dict[str, str]:
        """Runtime configuration of a broker; every value is a string."""

    def owned_by_each(self, brokers: Collection[str]) -> dict[str, tuple[str, ...] | AdminError]:
        """Bundles (``tenant/ns/range``) of each broker; the error for a broker that cannot be read."""

    def bundles(self, namespace: str) -> tuple[str, ...] | None:
        """A namespace's bundles in order; None: there is no such namespace."""

    def owner(self, namespace: str, bundle: str, *, likely: str = "") -> str | None:
        """Owner of a bundle; None: no broker. The likely owner is read first."""

    def topic_in(self, namespace: str, bundle: str) -> str | None:
        """A topic of an owned bundle that can be looked up; None: there is none."""

    def positions(self, namespace: str, bundle: str) -> tuple[int, ...]:
        """Hash positions of the topics in an owned bundle, in ascending order."""

    def topics(self, broker: str, namespace: str, bundle: str) -> dict[str, TopicStatistics]:
        """Loaded topics of a bundle by full name, by its owner's statistics."""

    def clients(self, broker: str, namespace: str, bundle: str) -> int:
        """Producers and consumers connected through a bundle, by its owner's statistics."""

    def coordinators(self) -> int:
        """Number of the cluster's transaction coordinators."""

    def partitions(self, topic: str) -> int:
        """Number of a topic's partitions; 0: it has none, or does not exist."""

    def stored_subscriptions(self, topic: str) -> frozenset[str] | None:
        """Durable subscriptions of applications on a topic or partition, loaded or not; None: there is no topic."""

    def isolation_policies(self) -> dict[str, IsolationPolicy]:
        """The cluster's namespace isolation policies, by name."""

    def inherited(self, change: ChangeSetting) -> Setting | None:
        """Value that applies to a change's setting if its own level has none; None: there is no value."""

    def own_setting(self, change: ChangeSetting) -> Setting | None:
        """Present value of a change's setting, at the same level; None: not set there."""

    def subscription(self, change: DeleteSubscription) -> SubscriptionState | None:
        """Present state of a subscription, from the topic's owner; None: there is no subscription of this name."""


ChangeT = TypeVar("ChangeT", bound=Change)
BeforeT = TypeVar("BeforeT", bound=Before)


class ChangeKind(ABC, Generic[ChangeT, BeforeT]):
    """One change of a kind, with its call, observation, inverse and words.

    All methods are abstract on purpose: an incomplete kind cannot be used at all.

    Attributes:
        breaks_off: True if brokers may refuse the call with a part of it done.
    """

    breaks_off = False

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
        """The bundle with clients that have to reconnect; None: no client has to."""

    @property
    @abstractmethod
    def undoable(self) -> bool:
        """False if no call can restore the former state."""

    @property
    @abstractmethod
    def loses_messages(self) -> bool:
        """True if it deletes messages that would be kept without it."""

    @property
    @abstractmethod
    def aspects(self) -> frozenset[Aspect]:
        """Parts of the cluster that it alters or may alter; their guards check it."""

    @abstractmethod
    def clients(self, cluster: ClusterReader, owner: str | None = None) -> int:
        """Number of clients that have to reconnect.

        Args:
            cluster: Reads the live cluster.
            owner: Owner of the bundle; None: the planned one.

        Raises:
            AdminError: If the owner cannot be read.
        """

    # -- how it is made

    @property
    @abstractmethod
    def operation(self) -> Operation | None:
        """Operation that has to be tried on the brokers' version before; None: every Pulsar version supports it."""

    @property
    @abstractmethod
    def before_type(self) -> type[BeforeT]:
        """Type of the replaced values."""

    @abstractmethod
    def record(self, cluster: ClusterReader) -> BeforeT:
        """The live values that the change replaces, to be stored in the ledger.

        Raises:
            Drifted: If the result would differ from the approved change.
            Refused: If the change could not be completed, so that it must not begin.
            AdminError: If the cluster cannot be read.
        """

    def recorded(self, document: Mapping[str, Any]) -> BeforeT:
        """The replaced values, from the ledger.

        Raises:
            msgspec.ValidationError: If these are not values of this kind.
        """
        return convert(document, self.before_type)

    @abstractmethod
    def call(self) -> Call:
        """The call that makes the change; sent once."""

    @abstractmethod
    def completion(self, before: BeforeT) -> Call | None:
        """A call to repeat until the change is complete, such as a lookup that loads a bundle; None: not needed."""

    @abstractmethod
    def observe(self, cluster: ClusterReader) -> Observation:
        """State of the change in the live cluster.

        Raises:
            AdminError: If it cannot be read.
        """

    def beside(self, before: BeforeT, cluster: ClusterReader) -> Iterable[Beside]:
        """Other things that the call may have harmed, and that are not as before; none, unless a kind says otherwise.

        Raises:
            AdminError: If they cannot be read.
        """
        return ()

    @abstractmethod
    def inverse(self, before: BeforeT, cluster: ClusterReader) -> Inverse:
        """The change that restores these values, if the cluster still shows the result of the original change.

        Raises:
            Refused: If it cannot be undone, or somebody changed it since.
            AdminError: If the cluster cannot be read.
        """

    # -- how it is told

    @abstractmethod
    def describe(self) -> str:
        """The change in a few words, with names unescaped."""

    def describe_in_brief(self) -> str:
        """The same in a bounded number of words: a kind that may hold any number of names counts them."""
        return self.describe()

    @abstractmethod
    def warning(self, step: GuardedChange) -> ApprovalWarning | None:
        """Warning for its approver; None: there is none.

        Args:
            step: The step that makes the change, with its figures.
        """
