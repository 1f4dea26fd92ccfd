"""Facts for guards at planning: the snapshot's answers, as far as earlier steps of the plan leave them."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.facts.backlogs import Backlog, loss_of, retained_seconds
from pulsar_steward.facts.load_manager import THROUGHPUT_UNKNOWN, BundleMove, after_move
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
)
from pulsar_steward.guard.evaluate import evaluate
from pulsar_steward.model.bundles import TC_NAMESPACE, BundleRange, position_of
from pulsar_steward.model.setting import BacklogQuota
from pulsar_steward.model.step import ChangeSetting, UnloadBundle, present_owner
from pulsar_steward.planners.settings.effects import loss
from pulsar_steward.planners.settings.facts import NamespaceFact, TopicSettings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pulsar_steward.facts.backlogs import BacklogAges
    from pulsar_steward.facts.load_manager import AntiAffinityGroup, BrokerUsage, LoadManager
    from pulsar_steward.facts.risks import MoveRisks
    from pulsar_steward.model.cluster import ClusterIdentity
    from pulsar_steward.model.loss import Loss
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.model.step import BundleChange, DeleteSubscription, GuardResult, RaiseCoordinators, Step
    from pulsar_steward.model.subscription import SubscriptionState
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.planners.subscriptions.facts import SubscriptionFact


def guarded(
    step: Step,
    planning: PlanningFacts,
    *,
    place_in_run: int = 1,
    whole: str | None = None,
    holder: NamespaceFact | TopicSettings | None = None,
    subscription: SubscriptionFact | None = None,
    retention: Setting | None = None,
    earlier: Sequence[Step] = (),
) -> Step:
    """The step with the results of all guards, as far as the snapshot shows.

    Args:
        step: The step.
        planning: The snapshot.
        place_in_run: Place of the change in its batch, from 1.
        whole: The range, in the snapshot, of the bundle that it changes, where that is only a part of it by then.
        holder: Facts of the namespace or topic whose setting it changes.
        subscription: Facts of the subscription that it deletes.
        retention: The retention there by then.
        earlier: Steps of the same batch that are done by then.
    """
    facts = SnapshotFacts(
        planning,
        step,
        place_in_run=place_in_run,
        whole=whole,
        holder=holder,
        subscription=subscription,
        retention=retention,
        earlier=earlier,
    )
    return msgspec.structs.replace(step, guards=evaluate(step, facts, planning.policy))


def vetoes(step: Step) -> list[GuardResult]:
    """The results of the guards that veto a step."""
    return [result for result in step.guards if not result.passed]


class SnapshotFacts(ClusterFacts):
    """The facts of one step at the time of the snapshot; the arguments are those of `guarded`.

    Part of a bundle is looked at as it will be once it is split off: on the same broker, its last move that of the
    whole, with the risks of its own topics.
    """

    def __init__(
        self,
        planning: PlanningFacts,
        step: Step,
        *,
        place_in_run: int = 1,
        whole: str | None = None,
        holder: NamespaceFact | TopicSettings | None = None,
        subscription: SubscriptionFact | None = None,
        retention: Setting | None = None,
        earlier: Sequence[Step] = (),
    ) -> None:
        self._planning = planning
        self._clients = step.touched.clients
        self._place_in_run = place_in_run
        self._whole = whole
        self._holder = holder
        self._subscription = subscription
        self._retention = retention
        self._earlier = earlier

    @property
    def now(self) -> datetime:
        """The snapshot's time, a planner's only "now"."""
        return self._planning.taken_at

    @property
    def seen_at(self) -> datetime:
        """The same, as a plan rests on a snapshot that it was just given."""
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
        """Place in its batch, as each is carried out in a run of its own."""
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
        """Always empty: only the look right before the call stops a step for one."""
        return ()

    def allowed_brokers(self, namespace: str) -> frozenset[str] | None:
        """Brokers that isolation policies left to a namespace."""
        planning = self._planning
        allowed = planning.tc_allowed if namespace == TC_NAMESPACE else planning.bundles.allowed(namespace)
        return None if allowed is None else frozenset(allowed)

    def anti_affinity(self, namespace: str) -> AntiAffinityGroup | Unknown | None:
        """Not known: no document of a snapshot has it; brokers are asked right before the call."""
        return Unknown(
            f"the anti-affinity group of {namespace} is not in a snapshot; brokers are asked before the call"
        )

    def load_manager(self) -> LoadManager | Unknown:
        """The load manager, as all brokers that were read tell it."""
        return self._planning.load_manager

    def usages(self) -> tuple[BrokerUsage, ...] | Unknown:
        """Usages in the snapshot, as the earlier steps of the batch leave them."""
        usages = self._planning.usages
        for step in self._earlier:
            if isinstance(usages, Unknown) or not isinstance(step.change, UnloadBundle):
                break
            if isinstance(flow := self.throughput(step.change), Unknown):
                return flow
            move = BundleMove(source=step.change.source, target=step.change.target, bytes=flow)
            usages = after_move(usages, move)
        return usages

    def other_clusters(self, namespace: str) -> tuple[str, ...] | Unknown:
        """Other clusters in the namespace's policies."""
        if not isinstance(self._holder, NamespaceFact):
            return clusters_unknown(namespace)
        return tuple(each for each in self._holder.clusters if each != self._planning.pulsar_cluster.name)

    # -- what Steward did before

    def unproved_batch(self) -> str | None:
        """None: the snapshot shows the result of everything before it."""
        return None

    def changes_in_the_last_hour(self) -> int:
        """0: the call comes later, and is counted then."""
        return 0

    def moved_at(self, change: BundleChange) -> datetime | None:
        """The last move of the bundle, or of the one that it is part of."""
        return self._planning.moved_at.get(f"{change.namespace}/{self._whole or change.bundle}")

    def circling(self, namespace: str) -> tuple[str, ...]:
        """Bundles that moved in circles, as the ledger had them at the time of the snapshot."""
        return self._planning.circling.get(namespace, ())

    # -- a bundle

    def has_bundle(self, change: BundleChange) -> bool:  # noqa: ARG002 - part of the protocol
        """True: there is such a bundle, or will be by then, as steps are made of nothing else."""
        return True

    def owner(self, change: BundleChange) -> str | None:
        """The owner in the snapshot."""
        return present_owner(change)

    def clients(self, change: BundleChange) -> int:  # noqa: ARG002 - part of the protocol
        """The clients that the step disturbs."""
        return self._clients

    def throughput(self, change: BundleChange) -> float | Unknown:
        """Throughput of the bundle in the snapshot, of those that may move."""
        found = self._planning.bundles.placed(change.namespace, change.bundle)
        return THROUGHPUT_UNKNOWN if found is None else float(found.now.bytes)

    def move_risks(self, change: BundleChange) -> MoveRisks:
        """Risks of the topics of the bundle, or of the part of it."""
        planning, whole = self._planning, self._whole or change.bundle
        told = planning.bundles.risks
        figures = told.figures.get(f"{change.namespace}/{whole}", ())
        if change.bundle != whole and figures:
            wanted = BundleRange.parse(change.bundle)
            figures = tuple(each for each in figures if position_of(each.topic) in wanted)
        return move_risks_of(figures, told.around.get(change.namespace, Surroundings()), planning.policy.guards)

    # -- the transaction coordinators

    def raised_at(self, change: RaiseCoordinators) -> datetime | None:  # noqa: ARG002 - part of the protocol
        """The last raise, as the ledger had it at the time of the snapshot."""
        return self._planning.coordinators_raised_at

    def restless_coordinators(self) -> tuple[str, ...]:
        """Coordinators whose bundle nobody owned; no snapshot has their states: these are asked before the call."""
        away = (each.coordinators for each in self._planning.tc_bundles if each.owner is None)
        return tuple(not_served(number) for number in sorted(chain.from_iterable(away)))

    # -- a setting

    def setting(self, change: ChangeSetting) -> Setting | None:
        """The value that the step was made from."""
        return change.before

    def inherited(self, change: ChangeSetting) -> Setting | None:
        """The value that the step was made from."""
        return None if isinstance(change.inherited, msgspec.UnsetType) else change.inherited

    def largest_backlog(self, change: ChangeSetting) -> int | Unknown:
        """The largest in this snapshot, and of a topic in those before it as well."""
        match self._holder:
            case NamespaceFact() as namespace:
                return namespace.looks[0].peak
            case TopicSettings() as topic:
                return topic.peak
            case None:
                return backlogs_unknown(change)

    def eviction_loss(self, change: ChangeSetting) -> Loss | Unknown:
        """The loss of the largest backlogs in the snapshot; of a topic of the largest that was seen."""
        match self._holder:
            case NamespaceFact() as namespace:
                return loss(namespace, change) or loss_unknown(change)
            case TopicSettings() as topic:
                quota = change.after_in_force
                limit = quota.limit_bytes if isinstance(quota, BacklogQuota) else -1
                return loss_of([Backlog(topic=topic.topic, bytes=topic.peak)], limit)
            case None:
                return loss_unknown(change)

    def backlog_ages(self, change: ChangeSetting) -> BacklogAges | Unknown:
        """Ages as brokers told them, or as they can be estimated."""
        return self._holder.ages if isinstance(self._holder, NamespaceFact) else ages_unknown(change)

    def retained_seconds(self, change: ChangeSetting) -> int | None:  # noqa: ARG002 - part of the protocol
        """The retention by then, as the plan may change that as well."""
        return retained_seconds(self._retention)

    def delayed_messages(self, change: ChangeSetting) -> int | Unknown:
        """Delayed messages in brokers' metrics."""
        delayed = self._holder.delayed_messages if self._holder else None
        return delayed_unknown(change) if delayed is None else delayed

    def quotas_are_checked(self) -> bool | Unknown:
        """True if all brokers that were read do."""
        checked = self._planning.quotas_are_checked
        return QUOTA_CHECKS_UNKNOWN if checked is None else checked

    def clock_difference(self) -> int | Unknown:
        """The largest difference between all brokers that were read."""
        apart = self._planning.clocks_differ_milliseconds
        return CLOCKS_UNKNOWN if apart is None else apart

    # -- a subscription

    def subscription(self, change: DeleteSubscription) -> SubscriptionState | Unknown:
        """Its state in the snapshot."""
        return subscription_unknown(change) if self._subscription is None else self._subscription.state

    def consumers_beside(self, change: DeleteSubscription) -> int | Unknown:
        """Consumers on the other partitions in the snapshot."""
        return subscription_unknown(change) if self._subscription is None else self._subscription.consumers_beside
