"""One change to a cluster, and all facts that a person needs before approving it."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, assert_never

import msgspec

from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.isolation import IsolationPolicy, Reach
from pulsar_steward.model.loss import InFlight, Loss
from pulsar_steward.model.setting import (
    BacklogQuota,
    DelayedDelivery,
    QuotaPolicy,
    Retention,
    Setting,
    SettingName,
    TimeToLive,
    in_words,
)
from pulsar_steward.model.subscription import Cursor

if TYPE_CHECKING:
    from collections.abc import Mapping


class UnloadBundle(msgspec.Struct, frozen=True, kw_only=True, tag="unload_bundle", tag_field="change"):
    """Moves a bundle: unloads it from its owner towards a named broker, and makes that broker load it.

    Attributes:
        namespace: ``tenant/namespace``.
        bundle: The range in Pulsar's notation, ``0x00000000_0x10000000``.
        source: The present owner, ``host:webport``.
        target: The future owner, never the source.
    """

    namespace: str
    bundle: str
    source: str
    target: str


class SplitBundle(msgspec.Struct, frozen=True, kw_only=True, tag="split_bundle", tag_field="change"):
    """Splits a bundle in two on its owner, without moving either half.

    Attributes:
        namespace: ``tenant/namespace``.
        bundle: The range to be split.
        owner: The present owner, which keeps both halves, ``host:webport``.
        algorithm: One of the broker's ``supportedNamespaceBundleSplitAlgorithms``.
        halves: The two ranges that must result.
    """

    namespace: str
    bundle: str
    owner: str
    algorithm: str
    halves: tuple[str, str]


class ChangeSetting(msgspec.Struct, frozen=True, kw_only=True, tag="change_setting", tag_field="change"):
    """Changes one setting of a namespace, or of a topic; no client has to reconnect for it.

    Attributes:
        namespace: ``tenant/namespace``.
        topic: Full name; for a partition, the name of the partitioned topic. None: the namespace itself.
        name: The setting's name.
        before: The value that the plan is based on; None: it is not set there.
        after: The new value; None: it is removed, so that the value of a higher level applies.
        inherited: The value of the higher level, if `before` or `after` is None; None: nothing applies. Unset: not
            known, and the worst is assumed; or not relevant.
    """

    namespace: str
    topic: str | None = None
    name: SettingName
    before: Setting | None
    after: Setting | None
    inherited: Setting | msgspec.UnsetType | None = msgspec.UNSET

    @property
    def holder(self) -> str:
        """The topic or the namespace."""
        return self.topic or self.namespace

    @property
    def inverse(self) -> ChangeSetting:
        """The change that restores the former value."""
        return msgspec.structs.replace(self, before=self.after, after=self.before)

    @property
    def before_in_force(self) -> Setting | msgspec.UnsetType | None:
        """Value in force before the change, at whatever level; None: there is none; unset: not known."""
        return self.inherited if self.before is None else self.before

    @property
    def after_in_force(self) -> Setting | msgspec.UnsetType | None:
        """Value in force after the change, in the same way."""
        return self.inherited if self.after is None else self.after

    def in_words(self, value: Setting | None) -> str:
        """One of its values as text; for a removed one, the value that applies then."""
        words, applies = in_words(self.name, value), self.inherited
        if value is not None or applies is None or isinstance(applies, msgspec.UnsetType):
            return words
        return f"{words} ({in_words(self.name, applies)} applies)"

    @property
    def takes_messages(self) -> bool:
        """True if brokers will, or may, remove unconsumed messages that they would keep without this change."""
        before, after = self.before_in_force, self.after_in_force
        match after:
            case msgspec.UnsetType():
                return isinstance(self.before, TimeToLive | BacklogQuota)
            case TimeToLive():
                return _tighter(after.seconds, before.seconds if isinstance(before, TimeToLive) else 0)
            case BacklogQuota(policy=QuotaPolicy.EVICT):
                evicted = isinstance(before, BacklogQuota) and before.policy is QuotaPolicy.EVICT
                return not evicted or self._acts_earlier(after, before)
            case _:
                return False

    @property
    def evicts(self) -> bool:
        """True for a quota that makes brokers evict the excess, even if it is not tighter than before."""
        quota = self.after_in_force
        if not isinstance(quota, BacklogQuota) or quota.policy is not QuotaPolicy.EVICT:
            return False
        return quota.limit_seconds > 0 if self.name is SettingName.AGE_QUOTA else quota.limit_bytes >= 0

    @property
    def stops_producers(self) -> bool:
        """True if brokers will, or may, stop producers that they would let publish without this change."""
        before, after = self.before_in_force, self.after_in_force
        if isinstance(after, msgspec.UnsetType):
            return self.name in {SettingName.SIZE_QUOTA, SettingName.AGE_QUOTA}
        if not isinstance(after, BacklogQuota) or after.policy is QuotaPolicy.EVICT:
            return False
        stopped = isinstance(before, BacklogQuota) and before.policy is not QuotaPolicy.EVICT
        return self._acts_earlier(after, before if stopped else None)

    def _acts_earlier(self, after: BacklogQuota, before: Setting | msgspec.UnsetType | None) -> bool:
        """True if a quota acts at a smaller or younger backlog than the one before, if that acted at all."""

        def limit(quota: BacklogQuota) -> float:
            if self.name is SettingName.AGE_QUOTA:
                return quota.limit_seconds if quota.limit_seconds > 0 else inf
            return quota.limit_bytes if quota.limit_bytes >= 0 else inf

        return limit(after) < (limit(before) if isinstance(before, BacklogQuota) else inf)

    @property
    def deletes_stored(self) -> bool:
        """True if brokers will, or may, delete consumed messages that they would store without this change."""
        if self.name is not SettingName.RETENTION:
            return False
        before, after = _kept(self.before_in_force, UNLIMITED), _kept(self.after_in_force, NOTHING_KEPT)
        return _keeps_less(after.minutes, before.minutes) or _keeps_less(after.megabytes, before.megabytes)

    @property
    def refuses_delays(self) -> bool:
        """True if brokers will refuse delays that they accepted before; an unknown maximum counts as none."""
        before, after = self.before_in_force, self.after_in_force
        if not isinstance(after, DelayedDelivery):
            return False
        taken = before.longest_milliseconds if isinstance(before, DelayedDelivery) else 0
        return _tighter(after.longest_milliseconds, taken)

    @property
    def loses_messages(self) -> bool:
        """True if messages, consumed or not, are deleted that would be kept without this change."""
        return self.takes_messages or self.deletes_stored

    @property
    def may_delete(self) -> bool:
        """True if brokers delete messages by the value in force after it, whether more than before or not."""
        return self.loses_messages or self.evicts


class RaiseCoordinators(msgspec.Struct, frozen=True, kw_only=True, tag="raise_coordinators", tag_field="change"):
    """Raises the number of transaction coordinators of the cluster; brokers never lower it again.

    Attributes:
        before: The number that the plan is based on.
        after: The new number.
    """

    before: int
    after: int

    @property
    def namespace(self) -> str:
        """Namespace of the topic whose partitions are the coordinators."""
        return TC_NAMESPACE


class AddPartitions(msgspec.Struct, frozen=True, kw_only=True, tag="add_partitions", tag_field="change"):
    """Raises the number of partitions of a topic; brokers never lower it again.

    Attributes:
        namespace: ``tenant/namespace``.
        topic: Full name of the partitioned topic.
        before: The number that the plan is based on.
        after: The new number.
    """

    namespace: str
    topic: str
    before: int
    after: int


def _tighter(now: int, then: int) -> bool:
    """True if a limit is lower than before; 0 and below mean no limit."""
    return now > 0 and (then <= 0 or now < then)


NOTHING_KEPT, UNLIMITED = Retention(minutes=0, megabytes=0), Retention(minutes=-1, megabytes=-1)


def _kept(value: Setting | msgspec.UnsetType | None, unknown: Retention) -> Retention:
    """The retention in force; none is kept if nothing applies."""
    if isinstance(value, msgspec.UnsetType):
        return unknown
    return value if isinstance(value, Retention) else NOTHING_KEPT


def _keeps_less(now: int, then: int) -> bool:
    """True if a limit of retention keeps less than before; below 0 keeps everything, 0 keeps nothing."""
    return now >= 0 and (then < 0 or now < then)


class DeleteSubscription(msgspec.Struct, frozen=True, kw_only=True, tag="delete_subscription", tag_field="change"):
    """Deletes a subscription of a topic, with its unread messages; nothing restores them.

    Attributes:
        namespace: ``tenant/namespace``.
        topic: Full name of the topic, or of one partition.
        subscription: Its name.
        cursor: Its identity: a later subscription of the same name is not deleted.
        stay: Number of the topic's other subscriptions that should remain after its batch.
    """

    namespace: str
    topic: str
    subscription: str
    cursor: Cursor
    stay: int


class SetIsolation(msgspec.Struct, frozen=True, kw_only=True, tag="set_isolation", tag_field="change"):
    """Sets, changes or deletes a namespace isolation policy, so that no bundle is unloaded for it.

    Attributes:
        pulsar_cluster: The Pulsar cluster's own name, which the call names: brokers keep policies of others too.
        policy: Name of the policy.
        before: The policy that the plan is based on; None: there is none of this name.
        after: The new policy; None: it is deleted.
    """

    pulsar_cluster: str
    policy: str
    before: IsolationPolicy | None
    after: IsolationPolicy | None

    @property
    def namespace(self) -> str:
        """Empty: it is about all namespaces that its patterns match, and about the brokers of all others."""
        return ""

    @property
    def inverse(self) -> SetIsolation:
        """The change that restores the former policy."""
        return msgspec.structs.replace(self, before=self.after, after=self.before)

    def made_in(self, policies: Mapping[str, IsolationPolicy]) -> dict[str, IsolationPolicy]:
        """These policies of a cluster, by name, as they are after it."""
        others = {name: each for name, each in policies.items() if name != self.policy}
        return others if self.after is None else {**others, self.policy: self.after}


BundleChange = UnloadBundle | SplitBundle
"""Changes that disturb the clients of a bundle."""

Change = BundleChange | ChangeSetting | RaiseCoordinators | AddPartitions | DeleteSubscription | SetIsolation
"""Changes of every kind, as stored in plans and in the ledger; `pulsar_steward.changes` has their effects."""


def present_owner(change: BundleChange) -> str:
    """Owner of the bundle at planning."""
    match change:
        case UnloadBundle():
            return change.source
        case SplitBundle():
            return change.owner
        case _:
            assert_never(change)


class Touched(msgspec.Struct, frozen=True, kw_only=True):
    """Clients that a change disturbs because they have to reconnect, counted in the snapshot."""

    producers: int
    consumers: int
    topics: int
    coordinators: int

    @property
    def clients(self) -> int:
        """Connections of producers and consumers together."""
        return self.producers + self.consumers


class GuardResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one guard for a step at planning."""

    guard: str
    passed: bool
    reason: str


class GuardedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change with the figures that guards look at.

    Attributes:
        change: The change that is called.
        touched: The clients that it disturbs.
        undoes: The step that it rolls back, ``<plan id>/<step id>``; None: it is not a rollback.
        loss: Data that brokers delete at once because of it; unset if there is none, so that such plans have no such
            key.
        in_flight: Maximum number of messages in flight that it redelivers or loses; unset like `loss`.
        group: The group of brokers for whose isolation policy it moves a bundle; unset like `loss`.
        reach: Namespaces and brokers that an isolation policy is about; unset like `loss`.
    """

    change: Change
    touched: Touched
    undoes: str | None = None
    loss: Loss | msgspec.UnsetType = msgspec.UNSET
    in_flight: InFlight | msgspec.UnsetType = msgspec.UNSET
    group: str | msgspec.UnsetType = msgspec.UNSET
    reach: Reach | msgspec.UnsetType = msgspec.UNSET

    @property
    def known_loss(self) -> Loss | None:
        """Data that brokers delete at once, as planned; None: none, or it is not known."""
        return self.loss if isinstance(self.loss, Loss) else None

    @property
    def moving_messages(self) -> InFlight:
        """Messages in flight as planned; empty if the step has none."""
        return self.in_flight if isinstance(self.in_flight, InFlight) else InFlight()


class Step(GuardedChange, frozen=True, kw_only=True):
    """One change with its reasons, its guards, its cost and its inverse.

    Attributes:
        step_id: Unique within its plan, such as ``b1.s02``; empty until the plan numbers it.
        why: The reason in a sentence.
        effect: The state of the cluster afterwards, in a sentence.
        guards: Results of the guards at planning.
        undo: The change that restores the present state, or None if there is none.
        undo_note: The way to undo it, as text; contains "cannot be undone" if that is so.
        after: Steps of the same batch that must be done first; without them this one is refused.
        averts: Unread data that brokers may delete if the step is not done; unset like `loss`.
    """

    step_id: str = ""
    why: str
    effect: str
    guards: tuple[GuardResult, ...] = ()
    undo: Change | None = None
    undo_note: str
    after: tuple[str, ...] = ()
    averts: Loss | msgspec.UnsetType = msgspec.UNSET
