"""Facts right before a call: brokers and the ledger answer, asked when a guard asks."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.apply import live_topics, unloaded_topics
from pulsar_steward.apply.live_coordinators import restless_coordinators
from pulsar_steward.apply.once import once
from pulsar_steward.changes import kind_of
from pulsar_steward.changes.kind import Drifted
from pulsar_steward.facts.backlogs import loss_of, retained_seconds
from pulsar_steward.facts.load_manager import THROUGHPUT_UNKNOWN
from pulsar_steward.facts.protocol import ClusterFacts, versions_in
from pulsar_steward.facts.risks import MoveRisks
from pulsar_steward.facts.unknown import (
    CLOCKS_UNKNOWN,
    QUOTA_CHECKS_UNKNOWN,
    Unknown,
    delayed_unknown,
    loss_unknown,
    owner_unknown,
)
from pulsar_steward.ledger.moves import circling_lately, moved_lately, raised_lately
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName
from pulsar_steward.model.step import present_owner

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from pulsar_steward.admin.stored import StoredTopic
    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.apply.whole_look import WholeLook
    from pulsar_steward.facts.backlogs import Backlog, BacklogAges
    from pulsar_steward.facts.load_manager import AntiAffinityGroup, BrokerUsage, LoadManager
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.model.cluster import ClusterIdentity
    from pulsar_steward.model.loss import Loss
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.model.step import BundleChange, ChangeSetting, DeleteSubscription, RaiseCoordinators, Step
    from pulsar_steward.model.subscription import SubscriptionState

HOUR = timedelta(hours=1)


class LiveFacts(ClusterFacts):
    """Facts about the cluster right before one step; what was answered once is kept.

    Args:
        whole: Facts of the whole cluster, shared with other steps.
        ledger: The ledger.
        plan: The step's plan.
        batch_id: Its batch, whose own changes need no proof yet.
        step: The step.
        now: Current time, UTC.
        place_in_run: Position of the step in its run, from 1.
        shared: True if owners and boundaries are shared as well: in the first look at all steps, which stops a batch
            and permits nothing. The look right before a call asks them anew.
    """

    def __init__(
        self,
        whole: WholeLook,
        ledger: LedgerReader,
        plan: Plan,
        batch_id: str,
        step: Step,
        now: datetime,
        place_in_run: int,
        *,
        shared: bool = False,
    ) -> None:
        self.known: dict[Any, Any] = {}
        self._whole = whole
        self._reader = whole.reader
        self._policy = whole.policy
        self._ledger = ledger
        self._plan = plan
        self._batch_id = batch_id
        self._step = step
        self._now = now
        self._place_in_run = place_in_run
        self._shared = shared
        self._bundles: LiveReader | WholeLook = whole if shared else whole.reader

    @property
    def now(self) -> datetime:
        """Time at which the look began."""
        return self._now

    @property
    @once
    def seen_at(self) -> datetime:
        """Time of the plan's snapshot, or of the latest that proposed the same."""
        return self._ledger.questions.seen_at(self._plan, self._batch_id)

    @property
    def planned_for(self) -> ClusterIdentity | None:
        """Pulsar cluster of the plan."""
        return self._plan.planned_for

    @property
    def planning(self) -> bool:
        """False: the cluster answers."""
        return False

    @property
    def place_in_run(self) -> int:
        """Position of the step in its run."""
        return self._place_in_run

    # -- the whole cluster

    def identity(self) -> ClusterIdentity:
        """Pulsar cluster that a broker reports."""
        return self._whole.identity()

    def silent_brokers(self) -> tuple[str, ...]:
        """Listed brokers that did not answer, sorted."""
        return tuple(sorted(self._whole.silent()))

    def is_active(self, broker: str) -> bool:
        """True if the cluster lists the broker, and it answers itself."""
        return self._whole.answers(broker)

    def versions(self) -> tuple[str, ...] | Unknown:
        """Versions of all brokers that answer, not older than the rest of the look at the whole cluster."""
        return versions_in(self._whole.versions())

    def read_only_bookies(self) -> tuple[str, ...]:
        """Bookies whose own metrics report that they take no writes."""
        return self._whole.read_only_bookies()

    def allowed_brokers(self, namespace: str) -> frozenset[str] | None:
        """Listed brokers that isolation policies leave to a namespace."""
        return self._whole.allowed(namespace)

    def anti_affinity(self, namespace: str) -> AntiAffinityGroup | Unknown | None:
        """Anti-affinity group of a namespace, as brokers tell it."""
        return self._whole.anti_affinity(namespace)

    def load_manager(self) -> LoadManager | Unknown:
        """Load manager, by the configuration of the broker that answers."""
        return self._whole.load_manager()

    def usages(self) -> tuple[BrokerUsage, ...] | Unknown:
        """Usages by the metrics of all brokers that answer."""
        manager = self.load_manager()
        return manager if isinstance(manager, Unknown) else self._whole.usages(manager)

    @once
    def other_clusters(self, namespace: str) -> tuple[str, ...]:
        """Other clusters in the namespace's policies."""
        return self._reader.other_clusters(namespace)

    # -- what Steward did before

    @once
    def unproved_batch(self) -> str | None:
        """Another batch that changed the cluster and is not proved."""
        besides = (self._plan.plan_id, self._batch_id)
        unproved = self._ledger.unproved_since(self._plan.cluster, self.seen_at, besides=besides)
        return unproved.words if unproved else None

    @once
    def changes_in_the_last_hour(self) -> int:
        """Number of calls in the last hour, those about to be made included."""
        return len(self._ledger.changes_since(self._plan.cluster, self._now - HOUR))

    @once
    def moved_at(self, change: BundleChange) -> datetime | None:
        """Time of the bundle's last move; earlier tries of this very step, which did not do it, are none."""
        moves = moved_lately(self._ledger, self._plan.cluster, self._now, self._policy)
        moved_at = moves.get(_key(change))
        return None if moved_at in self._own_tries() else moved_at

    @once
    def circling(self, namespace: str) -> tuple[str, ...]:
        """Bundles of a namespace that were moved away and back lately."""
        return circling_lately(self._ledger, self._plan.cluster, self._now, self._policy).get(namespace, ())

    # -- a bundle

    @once
    def has_bundle(self, change: BundleChange) -> bool:
        """True if the metadata store has a bundle of these boundaries."""
        return change.bundle in (self._bundles.bundles(change.namespace) or ())

    def owner(self, change: BundleChange) -> str | Unknown | None:
        """Owner of the bundle; where nobody says so, it may be handed over at this instant."""
        owner = self._owner(change)
        return owner_unknown(change) if owner is None and self._reader.hands_over else owner

    @once
    def _owner(self, change: BundleChange) -> str | None:
        """Owner of the bundle; the broker that the step was planned for is asked first."""
        return self._reader.owner(
            change.namespace,
            change.bundle,
            likely=present_owner(change),
            listed=self._whole.listed(),
            owned_by=self._bundles.owned_by,
        )

    @once
    def clients(self, change: BundleChange) -> int:
        """Clients that have to reconnect, by the owner's statistics (up to a minute old)."""
        owner = self._owner(change)
        return kind_of(change).clients(self._reader, owner) if owner else 0

    @once
    def throughput(self, change: BundleChange) -> float | Unknown:
        """Throughput of the bundle by its owner's statistics (up to a minute old)."""
        owner = self._owner(change)
        if owner is None:
            return THROUGHPUT_UNKNOWN
        topics = self._reader.topics(owner, change.namespace, change.bundle).values()
        return sum(each.msg_throughput_in + each.msg_throughput_out for each in topics)

    @once
    def move_risks(self, change: BundleChange) -> MoveRisks:
        """Risks of a bundle that is still there and owned; where it is not, other guards refuse the step."""
        owner = self._owner(change)
        if owner is None or not self.has_bundle(change):
            return MoveRisks()
        return live_topics.move_risks(
            self._reader, owner, change, self._policy.guards, lambda: self._require_owned(owner, [_key(change)])
        )

    # -- the transaction coordinators

    @once
    def raised_at(self, change: RaiseCoordinators) -> datetime | None:  # noqa: ARG002 - part of the protocol
        """Time of the last raise; earlier tries of this very step, which did not do it, are none."""
        raised = raised_lately(self._ledger, self._plan.cluster, self._now, self._policy)
        own = self._own_tries()
        return max((at for at in raised if at not in own), default=None)

    @once
    def restless_coordinators(self) -> tuple[str, ...]:
        """By the owners of their bundles; one that no client uses has no state, and nothing to recover from."""
        owners = self._owners(TC_NAMESPACE)
        for owner, owned in owners.items():
            self._require_owned(owner, owned)
        return restless_coordinators(self._reader, owners)

    # -- a setting

    @once
    def setting(self, change: ChangeSetting) -> Setting | None:
        """Present value, where the change would set it."""
        return self._reader.own_setting(change)

    @once
    def inherited(self, change: ChangeSetting) -> Setting | None:
        """Value of the namespace, or a broker's default."""
        return self._reader.inherited(change)

    @once
    def largest_backlog(self, change: ChangeSetting) -> int | Unknown:
        """Largest backlog by the statistics of all owners, and at least that of a topic that is not loaded."""
        unloaded = self._unloaded(change)
        if isinstance(unloaded, Unknown):
            return unloaded
        largest = live_topics.largest_backlog(self._reader, change, self._owners(change.namespace))
        new = (each.bytes for each in self._new_backlogs(change))
        return max(largest, *(each.least_backlog_bytes for each in unloaded.values()), *new, 0)

    @once
    def eviction_loss(self, change: ChangeSetting) -> Loss | Unknown:
        """Loss of all topics that the quota is for; not known where one of them is not loaded, unless it is new."""
        quota = change.after_in_force
        if not isinstance(quota, BacklogQuota):
            return loss_unknown(change)
        unloaded = self._unloaded(change)
        if isinstance(unloaded, Unknown):
            return unloaded
        if unknown := unloaded_topics.loss_unknown(change, unloaded.keys() - self._new_topics(change)):
            return unknown
        backlogs = live_topics.backlogs(self._reader, change, self._owners(change.namespace))
        return loss_of([*backlogs, *self._new_backlogs(change)], quota.limit_bytes)

    @once
    def backlog_ages(self, change: ChangeSetting) -> BacklogAges | Unknown:
        """Ages by the clocks of the topics' owners, of no more topics than the policy permits.

        Of topics that are not loaded: as old as their closed ledgers, at least; not known where the quota evicts.
        """
        unloaded = self._unloaded(change)
        if isinstance(unloaded, Unknown):
            return unloaded
        owners = self._owners(change.namespace)
        quota = change.after_in_force
        evicts = isinstance(quota, BacklogQuota) and quota.policy is QuotaPolicy.EVICT
        new = self._new_topics(change)
        if evicts and (unknown := unloaded_topics.loss_unknown(change, unloaded.keys() - new)):
            return unknown
        budget = self._policy.backlog_quota_remedy.most_topics_asked
        for owner, owned in owners.items():
            self._require_owned(owner, owned)
        others = {name: each for name, each in unloaded.items() if name not in new}
        least = unloaded_topics.least_ages(others, self._now)
        return live_topics.backlog_ages(self._reader, change, owners, budget, least, new)

    @once
    def retained_seconds(self, change: ChangeSetting) -> int | None:
        """Retention of the topic itself, else the one in force in its namespace."""
        kept = self._reader.settings_of(change.namespace).get(SettingName.RETENTION)
        if change.topic is not None:
            own = self._reader.own_setting(msgspec.structs.replace(change, name=SettingName.RETENTION))
            kept = kept if own is None else own
        return retained_seconds(kept)

    @once
    def delayed_messages(self, change: ChangeSetting) -> int | Unknown:
        """Delayed messages of the namespace; not known where an owner's metrics have no topics."""
        delayed = live_topics.delayed_messages(self._reader, change.namespace, self._owners(change.namespace))
        return delayed_unknown(change) if delayed is None else delayed

    @once
    def quotas_are_checked(self) -> bool | Unknown:
        """True if every broker that answers checks quotas; not known where one does not say."""
        values = [self._reader.configuration(each).get("backlogQuotaCheckEnabled") for each in self._whole.active()]
        if not values or None in values:
            return QUOTA_CHECKS_UNKNOWN
        return all(value == "true" for value in values)

    def clock_difference(self) -> int | Unknown:
        """Difference of the clocks furthest ahead and furthest behind; less than a second cannot be told."""
        ahead = list(self._whole.clocks().values())
        known = [each for each in ahead if each is not None]
        return max(known) - min(known) if known and len(known) == len(ahead) else CLOCKS_UNKNOWN

    # -- a subscription

    @once
    def subscription(self, change: DeleteSubscription) -> SubscriptionState | None:
        """Present state, as the topic's owner tells it."""
        return self._reader.subscription(change)

    @once
    def consumers_beside(self, change: DeleteSubscription) -> int:
        """Consumers on the other partitions by the statistics of all owners (up to a minute old)."""
        return live_topics.consumers_beside(self._reader, change, self._owners(change.namespace))

    @once
    def _unloaded(self, change: ChangeSetting) -> dict[str, StoredTopic] | Unknown:
        """Topics with a subscription that are in no broker's statistics."""
        budget = self._policy.backlog_quota_remedy.most_topics_asked
        return unloaded_topics.unloaded_topics(self._reader, change, self._owners(change.namespace), budget)

    @once
    def _new_topics(self, change: ChangeSetting) -> dict[str, str]:
        """Those of them that are new, in an owned bundle, with the owner; none where they are not known."""
        unloaded = self._unloaded(change)
        if isinstance(unloaded, Unknown):
            return {}
        return unloaded_topics.new_topics(unloaded, self._owners(change.namespace), self._now)

    @once
    def _new_backlogs(self, change: ChangeSetting) -> list[Backlog]:
        """Their backlogs, which several guards ask for."""
        return live_topics.new_backlogs(self._reader, self._new_topics(change))

    @once
    def _owners(self, namespace: str) -> dict[str, frozenset[str]]:
        """Brokers that answer and own a bundle of the namespace, in order, with these bundles.

        Those that did when all were asked are asked anew; the others only where these do not own all of it.
        """
        active = self._whole.active()
        known = live_topics.owning(namespace, {broker: self._whole.owned_by(broker) for broker in active})
        if self._shared:
            return known
        owned = self._reader.owned_by_each(list(known))
        bundles = {f"{namespace}/{bundle}" for bundle in self._reader.bundles(namespace) or ()}
        if bundles.difference(*live_topics.owning(namespace, owned).values()):
            owned |= self._reader.owned_by_each([broker for broker in active if broker not in owned])
        found = live_topics.owning(namespace, owned)
        return {broker: found[broker] for broker in sorted(found)}

    def _own_tries(self) -> set[datetime]:
        """Times of earlier tries of this very step."""
        tried = self._ledger.intents(self._plan.plan_id, self._batch_id)
        return {intent.at for intent in tried if intent.step_id == self._step.step_id}

    def _require_owned(self, broker: str, bundles: Iterable[str]) -> None:
        """Checks that a broker owns bundles at this instant: asking it for their topics would load them otherwise.

        Raises:
            Drifted: If it does not.
        """
        if self._shared and (gone := sorted(set(bundles) - set(self._reader.owned_by(broker)))):
            raise Drifted(f"{broker} no longer owns {gone[0]}")


def _key(change: BundleChange) -> str:
    return f"{change.namespace}/{change.bundle}"
