"""Facts for guards at planning, from the snapshot and the earlier steps of the plan."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypedDict, Unpack

import msgspec

from pulsar_steward.facts.backlogs import Backlog, evicted, held_by_pulsar, retained_seconds
from pulsar_steward.facts.isolation import Isolation
from pulsar_steward.facts.load_manager import NO_TRAFFIC, TRAFFIC_UNKNOWN, Traffic, after_move, move_of
from pulsar_steward.facts.partitions import partitions_unknown
from pulsar_steward.facts.protocol import ClusterFacts, not_served, subscription_unknown
from pulsar_steward.facts.risks import Surroundings, move_risks_of
from pulsar_steward.facts.unknown import (
    CLOCKS_UNKNOWN,
    QUOTA_CHECKS_UNKNOWN,
    Unknown,
    ages_unknown,
    backlogs_unknown,
    clusters_unknown,
    delayed_unknown,
    loss_unknown,
    scalable_unknown,
)
from pulsar_steward.guards.evaluate import evaluate
from pulsar_steward.guards.foreseen import foreseen, with_undo_judged
from pulsar_steward.model.bundles import TC_NAMESPACE, BundleRange, position_of
from pulsar_steward.model.pulsar_versions import may_have_scalable_topics
from pulsar_steward.model.setting import BacklogQuota, SettingName
from pulsar_steward.model.step import ChangeSetting, SetIsolation, UnloadBundle, present_owner
from pulsar_steward.planners.settings.facts import NamespaceFact, TopicSettings, taken_from

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pulsar_steward.facts.backlogs import BacklogAges, PulsarsHold, Taken
    from pulsar_steward.facts.load_manager import AntiAffinityGroup, BrokerUsage, LoadManager
    from pulsar_steward.facts.partitions import PartitionedTopic
    from pulsar_steward.facts.protocol import Bookies
    from pulsar_steward.facts.risks import MoveRisks
    from pulsar_steward.model.cluster import ClusterIdentity
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.model.step import (
        AddPartitions,
        BundleChange,
        DeleteSubscription,
        GuardedChange,
        GuardResult,
        RaiseCoordinators,
        Step,
    )
    from pulsar_steward.model.subscription import SubscriptionState
    from pulsar_steward.planners.planning_facts import PlanningFacts, SubscriptionFact


class AboutChange(TypedDict, total=False):
    """Facts about one change, besides those of the whole snapshot.

    Attributes:
        place_in_run: Place of the change in its batch, from 1.
        whole: Range of the bundle in the snapshot, if the step changes only a part of it.
        holder: Facts of the namespace or topic whose setting it changes.
        subscription: Facts of the subscription that it deletes.
        retention: The retention in force when the step runs.
        earlier: Steps of the same batch that run before it.
    """

    place_in_run: int
    whole: str | None
    holder: NamespaceFact | TopicSettings
    subscription: SubscriptionFact
    retention: Setting | None
    earlier: Sequence[Step]


def guarded(step: Step, planning: PlanningFacts, **about: Unpack[AboutChange]) -> Step:
    """The step with its loss and the results of all guards, by the snapshot."""
    facts, policy = SnapshotFacts(planning, step.touched.clients, about), planning.policy
    step = foreseen(step, facts, policy)
    return with_undo_judged(msgspec.structs.replace(step, guards=evaluate(step, facts, policy)), facts, policy)


def objections(change: GuardedChange, planning: PlanningFacts, **about: Unpack[AboutChange]) -> list[GuardResult]:
    """The vetoes of the guards against a change of which no step is made yet."""
    facts, policy = SnapshotFacts(planning, change.touched.clients, about), planning.policy
    return [result for result in evaluate(foreseen(change, facts, policy), facts, policy) if not result.passed]


def vetoes(step: Step) -> list[GuardResult]:
    """The results of the guards that veto a step."""
    return [result for result in step.guards if not result.passed]


class SnapshotFacts(ClusterFacts):
    """The facts of one change at the time of the snapshot.

    Part of a bundle is described as it will be after the split: on the same broker, with the last move of the whole
    bundle and the risks of its own topics.

    Args:
        planning: The snapshot.
        clients: Clients that the change disturbs.
        about: Facts about the change.
    """

    def __init__(self, planning: PlanningFacts, clients: int, about: AboutChange) -> None:
        self._planning = planning
        self._clients = clients
        self._place_in_run = about.get("place_in_run", 1)
        self._whole = about.get("whole")
        self._holder = about.get("holder")
        self._subscription = about.get("subscription")
        self._retention = about.get("retention")
        self._earlier = about.get("earlier", ())

    @property
    def now(self) -> datetime:
        """The snapshot's time, the only current time of a planner."""
        return self._planning.taken_at

    @property
    def planned_at(self) -> datetime:
        """The same: a plan uses the snapshot as it is."""
        return self._planning.taken_at

    @property
    def seen_at(self) -> datetime:
        """The same."""
        return self._planning.taken_at

    @property
    def planned_for(self) -> ClusterIdentity:
        """The cluster of the snapshot."""
        return self._planning.pulsar_cluster

    @property
    def planning(self) -> bool:
        """True."""
        return True

    @property
    def place_in_run(self) -> int:
        """Place in its batch, as each batch runs in a run of its own."""
        return self._place_in_run

    # -- the whole cluster

    def identity(self) -> ClusterIdentity:
        """The cluster of the snapshot."""
        return self._planning.pulsar_cluster

    def silent_brokers(self) -> tuple[str, ...]:
        """Brokers that were not read."""
        return tuple(fact.broker for fact in self._planning.brokers if not fact.read)

    def is_active(self, broker: str) -> bool:
        """True if the broker was read."""
        return any(fact.broker == broker and fact.read for fact in self._planning.brokers)

    def versions(self) -> tuple[str, ...] | Unknown:
        """Versions of the brokers that were read."""
        return self._planning.versions

    def read_only_bookies(self) -> tuple[str, ...]:
        """Always empty: a read-only bookie stops a step only right before the call."""
        return ()

    def bookies(self, namespace: str) -> Bookies | Unknown:
        """The bookies that brokers listed."""
        return self._planning.bookies

    def allowed_brokers(self, namespace: str) -> frozenset[str] | None:
        """Brokers allowed by isolation policies for a namespace."""
        planning = self._planning
        for step in self._earlier:
            if isinstance(step.change, SetIsolation) and isinstance(planning.isolation, Isolation):
                return planning.isolation.after(step.change).allowed(namespace)
        allowed = planning.tc_allowed if namespace == TC_NAMESPACE else planning.bundles.allowed(namespace)
        return None if allowed is None else frozenset(allowed)

    def isolation(self) -> Isolation | Unknown:
        """The isolation policies of the snapshot, with what they divide."""
        return self._planning.isolation

    def anti_affinity(self, namespace: str) -> AntiAffinityGroup | Unknown | None:
        """Not known: snapshots do not have it; brokers are asked right before the call."""
        return Unknown(
            f"the anti-affinity group of {namespace} is not in a snapshot; brokers are asked before the call"
        )

    def load_manager(self) -> LoadManager | Unknown:
        """The load manager, as all brokers that were read report it."""
        return self._planning.load_manager

    def usages(self) -> tuple[BrokerUsage, ...] | Unknown:
        """Usages in the snapshot, changed by the earlier steps of the batch."""
        usages = self._planning.usages
        for step in self._earlier:
            if isinstance(usages, Unknown):
                break
            if not isinstance(step.change, UnloadBundle):
                continue
            if isinstance(traffic := self.traffic(step.change), Unknown):
                return traffic
            usages = after_move(usages, move_of(step.change, traffic))
        return usages

    def other_clusters(self, namespace: str) -> tuple[str, ...] | Unknown:
        """Other clusters in the namespace's policies."""
        if not isinstance(self._holder, NamespaceFact):
            return clusters_unknown(namespace)
        return tuple(each for each in self._holder.clusters if each != self._planning.pulsar_cluster.name)

    def scalable_topics(self, namespace: str) -> tuple[str, ...] | Unknown:
        """The scalable topics whose segments are loaded; others are in no snapshot."""
        versions = self._planning.versions
        if not isinstance(versions, Unknown) and not any(map(may_have_scalable_topics, versions)):
            return ()
        found = self._holder.scalable if isinstance(self._holder, NamespaceFact) else ()
        return found or Unknown(f"{scalable_unknown(namespace).reason} yet; brokers are asked before the call")

    # -- Steward's earlier changes

    def unproved_batch(self) -> str | None:
        """None: the snapshot shows the result of all earlier changes."""
        return None

    def changes_in_the_last_hour(self) -> int:
        """0: changes are counted at the later call."""
        return 0

    def own_changes_to_come(self) -> int:
        """0: likewise."""
        return 0

    def moved_at(self, change: BundleChange) -> datetime | None:
        """The last move of the bundle, or of the bundle that contains it."""
        return self._planning.moved_at.get(f"{change.namespace}/{self._whole or change.bundle}")

    def circling(self, namespace: str) -> tuple[str, ...]:
        """Bundles that moved in circles, by the ledger at the time of the snapshot."""
        return self._planning.circling.get(namespace, ())

    # -- a bundle

    def has_bundle(self, change: BundleChange) -> bool:
        """True: steps are made only of bundles that exist, or will exist then."""
        return True

    def owner(self, change: BundleChange) -> str | None:
        """The owner in the snapshot."""
        return present_owner(change)

    def clients(self, change: BundleChange) -> int:
        """The clients that the step disturbs."""
        return self._clients

    def traffic(self, change: BundleChange) -> Traffic | Unknown:
        """Traffic of the bundle in the snapshot, for bundles that may move; coordinators have none."""
        found = self._planning.bundles.placed(change.namespace, change.bundle)
        if found is None:
            return NO_TRAFFIC if change.namespace == TC_NAMESPACE else TRAFFIC_UNKNOWN
        return Traffic(bytes=float(found.now.bytes), messages=float(found.now.messages))

    def move_risks(self, change: BundleChange) -> MoveRisks:
        """Risks of the topics of the bundle, or of its part."""
        planning, whole = self._planning, self._whole or change.bundle
        told = planning.bundles.risks
        figures = told.figures.get(f"{change.namespace}/{whole}", ())
        if change.bundle != whole and figures:
            wanted = BundleRange.parse(change.bundle)
            figures = tuple(each for each in figures if position_of(each.topic) in wanted)
        return move_risks_of(figures, told.around.get(change.namespace, Surroundings()), planning.policy)

    # -- the transaction coordinators

    def raised_at(self, change: RaiseCoordinators) -> datetime | None:
        """The last raise, by the ledger at the time of the snapshot."""
        return self._planning.coordinators_raised_at

    def restless_coordinators(self) -> tuple[str, ...]:
        """Coordinators in bundles without an owner; no snapshot has their states: brokers are asked before the call."""
        away = (each.coordinators for each in self._planning.tc_bundles if each.owner is None)
        return tuple(not_served(number) for number in sorted(chain.from_iterable(away)))

    # -- a topic's partitions

    def partitioned_topic(self, change: AddPartitions) -> PartitionedTopic | Unknown:
        """The topic in the snapshot."""
        found = next((each for each in self._planning.partitioned if each.topic == change.topic), None)
        return partitions_unknown(change) if found is None else found.state

    # -- a setting

    def setting(self, change: ChangeSetting) -> Setting | None:
        """The value from which the step was made."""
        return change.before

    def inherited(self, change: ChangeSetting) -> Setting | None:
        """The inherited value from which the step was made."""
        return None if isinstance(change.inherited, msgspec.UnsetType) else change.inherited

    def largest_backlog(self, change: ChangeSetting) -> Backlog | Unknown:
        """The largest backlog in this snapshot; for a topic, also in earlier ones."""
        match self._holder:
            case NamespaceFact() as namespace:
                return next(iter(namespace.backlogs), Backlog(topic=change.holder, bytes=namespace.looks[0].peak))
            case TopicSettings() as topic:
                return Backlog(topic=topic.topic, bytes=topic.peak)
            case None:
                return backlogs_unknown(change)

    def held_by_pulsar(self, change: ChangeSetting) -> PulsarsHold | Unknown:
        """What Pulsar's own cursors hold in the snapshot; a topic's own compaction threshold is in none."""
        if self._holder is None:
            return backlogs_unknown(change)
        return held_by_pulsar(self._holder.backlogs, self._holder.compaction_bytes)

    def taken(self, change: ChangeSetting) -> Taken | Unknown:
        """Data that brokers delete from the topics in the snapshot; for a topic, by its largest backlog seen."""
        match self._holder:
            case NamespaceFact() as namespace:
                return taken_from(namespace, change)
            case TopicSettings() as topic:
                quota = change.after_in_force
                if change.name is not SettingName.SIZE_QUOTA or not isinstance(quota, BacklogQuota):
                    return loss_unknown(change)
                return evicted([Backlog(topic=topic.topic, bytes=topic.peak)], quota.limit_bytes)
            case None:
                return loss_unknown(change)

    def backlog_ages(self, change: ChangeSetting) -> BacklogAges | Unknown:
        """Ages as brokers reported them, or as estimated."""
        return self._holder.ages if isinstance(self._holder, NamespaceFact) else ages_unknown(change)

    def retained_seconds(self, change: ChangeSetting) -> int | None:
        """The retention in force when the step runs, as the plan may change it too."""
        return retained_seconds(self._retention)

    def delayed_messages(self, change: ChangeSetting) -> int | Unknown:
        """Delayed messages in brokers' metrics."""
        delayed = self._holder.delayed_messages if self._holder else None
        return delayed_unknown(change) if delayed is None else delayed

    def quotas_are_checked(self) -> bool | Unknown:
        """True if all brokers that were read check quotas."""
        checked = self._planning.quotas_are_checked
        return QUOTA_CHECKS_UNKNOWN if checked is None else checked

    def clock_difference(self) -> int | Unknown:
        """The largest clock difference between all brokers that were read."""
        apart = self._planning.clocks_differ_milliseconds
        return CLOCKS_UNKNOWN if apart is None else apart

    # -- a subscription

    def subscription(self, change: DeleteSubscription) -> SubscriptionState | Unknown:
        """Its state in the snapshot."""
        return subscription_unknown(change) if self._subscription is None else self._subscription.state

    def consumers_beside(self, change: DeleteSubscription) -> int | Unknown:
        """Consumers on the other partitions in the snapshot."""
        return subscription_unknown(change) if self._subscription is None else self._subscription.consumers_beside
