"""The live cluster right before a call: facts from brokers and the ledger, read when a guard needs them."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.apply import live_topics
from pulsar_steward.apply.kept import once
from pulsar_steward.apply.live_backlogs import LiveBacklogs
from pulsar_steward.apply.live_topics import restless_coordinators
from pulsar_steward.apply.topic_looks import TopicLooks
from pulsar_steward.apply.whole_look import WholeLook
from pulsar_steward.changes import kind_of
from pulsar_steward.changes.kind import Drifted
from pulsar_steward.facts.backlogs import NOTHING_TAKEN, retained_seconds
from pulsar_steward.facts.load_manager import TRAFFIC_UNKNOWN, Traffic
from pulsar_steward.facts.protocol import ClusterFacts
from pulsar_steward.facts.risks import MoveRisks
from pulsar_steward.facts.unknown import (
    QUOTA_CHECKS_UNKNOWN,
    Unknown,
    delayed_unknown,
    loss_unknown,
    owner_unknown,
    scalable_unknown,
)
from pulsar_steward.ledger.past import circling_lately, moved_lately, raised_lately
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.pulsar_versions import may_have_scalable_topics, release_of
from pulsar_steward.model.setting import BacklogQuota, Retention, SettingName, TimeToLive
from pulsar_steward.model.step import NOTHING_KEPT, BundleChange, ChangeSetting, SetIsolation, present_owner
from pulsar_steward.pulsar.own_settings import defaults_in
from pulsar_steward.pulsar.statistics import loaded_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.facts.backlogs import Backlog, BacklogAges, PulsarsHold, Taken
    from pulsar_steward.facts.partitions import PartitionedTopic
    from pulsar_steward.ledger.past import PastReader
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.model.cluster import ClusterIdentity
    from pulsar_steward.model.isolation import IsolationPolicy
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.model.step import AddPartitions, Change, DeleteSubscription, RaiseCoordinators, Step
    from pulsar_steward.model.subscription import SubscriptionState
    from pulsar_steward.policy.schema import Policy

log = logging.getLogger(__name__)

HOUR = timedelta(hours=1)

SPARE_SECONDS = 1
"""Maximum time that a broker needs to make its statistics."""

WAITS = 2
"""Maximum number of waits before a bundle is changed; a busy broker renews its statistics late."""


class LiveCluster(WholeLook, ClusterFacts):
    """Facts of the live cluster for the steps of one batch; those of one step are read once in each look.

    Args:
        reader: Reads the cluster.
        policy: Thresholds and limits.
        ledger: The ledger.
        plan: The plan of the steps.
        batch_id: Their batch; changes of this batch need no proof yet.
    """

    def __init__(self, reader: LiveReader, policy: Policy, ledger: LedgerReader, plan: Plan, batch_id: str) -> None:
        super().__init__(reader, policy)
        self._ledger = ledger
        self._plan = plan
        self._batch_id = batch_id
        self._sets_policy = False

    def before(self, step: Step, now: datetime, place_in_run: int, *, shared: bool = False) -> LiveCluster:
        """Begins a look right before a step.

        Args:
            step: The step.
            now: Current time, UTC.
            place_in_run: Position of the step in its run, from 1.
            shared: True if owners and boundaries are shared too: in the first look at all steps, which can stop a batch
                but permits no call. The look right before a call reads them anew, and the policy of a group of brokers.
        """
        self.known: dict[Any, Any] = {}
        self._step, self._now, self._place_in_run, self._shared = step, now, place_in_run, shared
        self._sets_policy = isinstance(step.change, SetIsolation)
        if not shared and (self._sets_policy or isinstance(step.group, str)):
            self._kept.drop("whole", "isolation", "namespaces", "loads")
        return self

    def wait_until_told(self, step: Step, clock: Callable[[], datetime], rest: Callable[[float], None]) -> bool:
        """Waits until brokers' statistics show all topics that a step is judged by, for at most `WAITS` waits.

        Returns:
            True if it waited: then facts that were read before are read anew.
        """
        for waits in range(WAITS if isinstance(step.change, BundleChange) else 1):
            seconds = self._wait_seconds(step.change, clock())
            if not seconds:
                return waits > 0
            log.info("%s: waiting %.0f s until brokers' statistics show its topics", step.step_id, seconds)
            rest(seconds)
            self.called()
        return True

    def _wait_seconds(self, change: Change, now: datetime) -> float:
        """Seconds to wait before a change can be judged.

        A setting waits if it has more topics than may be read one by one. A change of a bundle waits if one of its
        topics is not in its owner's statistics yet.
        """
        if isinstance(change, BundleChange):
            listed, owned_by = self.listed(), self.owned_by
            owner = self.reader.owner(change.namespace, change.bundle, listed=listed, owned_by=owned_by)
            if owner is None or not self._too_new(owner, change):
                return 0.0
            return self.reader.statistics_seconds(owner) + SPARE_SECONDS
        if not isinstance(change, ChangeSetting):
            return 0.0
        if not change.may_delete and not isinstance(change.after_in_force, BacklogQuota):
            return 0.0
        owners = live_topics.owning(change.namespace, {broker: self.owned_by(broker) for broker in self.active()})
        seconds = self._told_in_seconds(owners, now)
        if not seconds:
            return 0.0
        documents = ((self.reader.statistics(each), each) for each in owners)
        loaded = sum(len(loaded_topics(document, change.namespace, each)) for document, each in documents)
        return seconds if loaded > self.policy.backlog_quota_remedy.most_topics_asked else 0.0

    def _told_in_seconds(self, owners: Iterable[str], now: datetime) -> float:
        """Seconds until these brokers' statistics are from after Steward's last call in the cluster; 0: they are."""
        renewed = max((self.reader.statistics_seconds(each) for each in owners), default=0) + SPARE_SECONDS
        since = now - timedelta(seconds=renewed)
        calls = self._past.changes_since(since)
        return max((calls[-1][0] - since).total_seconds(), 0.0) if calls else 0.0

    @property
    def _past(self) -> PastReader:
        return self._ledger.past(self._plan.named_cluster)

    @property
    def now(self) -> datetime:
        """Time at which the look began."""
        return self._now

    @property
    def planned_at(self) -> datetime:
        """Time of the plan's snapshot."""
        return self._plan.taken_at

    @property
    @once
    def seen_at(self) -> datetime:
        """Time of the plan's snapshot, or of the latest snapshot that proposed the same."""
        return self._ledger.questions.seen_at(self._plan, self._batch_id)

    @property
    def planned_for(self) -> ClusterIdentity:
        """Pulsar cluster of the plan."""
        return self._plan.pulsar_cluster

    @property
    def planning(self) -> bool:
        """False: these facts are live, not of planning."""
        return False

    @property
    def place_in_run(self) -> int:
        """Position of the step in its run."""
        return self._place_in_run

    def called(self) -> None:
        """Drops facts that a call may have made stale; a policy's call the policies too."""
        super().called()
        if self._sets_policy:
            self._kept.drop("whole", "isolation")

    def policies(self) -> dict[str, IsolationPolicy]:
        """Isolation policies as they are once the steps that this one waits for are made."""
        policies = super().policies()
        if not self._step.after:
            return policies
        called = {intent.step_id for intent in self._ledger.intents(self._plan.plan_id, self._batch_id)}
        for earlier in self._step.after:
            change = self._plan.batch(self._batch_id).step(earlier).change
            if isinstance(change, SetIsolation) and earlier not in called:
                policies = change.made_in(policies)
        return policies

    @once
    def other_clusters(self, namespace: str) -> tuple[str, ...]:
        """Other clusters in the namespace's policies."""
        return self.reader.other_clusters(namespace)

    def _too_new(self, owner: str, change: BundleChange) -> str:
        return live_topics.too_new(self.reader, owner, change, scalable=self.scalable_topics(change.namespace) != ())

    def scalable_topics(self, namespace: str) -> tuple[str, ...] | Unknown:
        """Scalable topics of the namespace, from the metadata store; none where all brokers are older."""
        versions = self.versions()
        if isinstance(versions, Unknown):
            return versions
        if not any(map(may_have_scalable_topics, versions)):
            return ()
        found = self.reader.scalable_topics(namespace)
        if found is None and any(map(release_of, filter(may_have_scalable_topics, versions))):
            return scalable_unknown(namespace)
        return found or ()  # what has no such call, of whatever build, is older

    # -- what Steward did before

    @once
    def unproved_batch(self) -> str | None:
        """Another batch that changed the cluster and is not proved."""
        besides = (self._plan.plan_id, self._batch_id)
        unproved = self._past.unproved_since(self.seen_at, besides)
        return unproved.words if unproved else None

    @once
    def changes_in_the_last_hour(self) -> int:
        """Number of calls in the last hour, including intended ones."""
        return len(self._past.changes_since(self._now - HOUR))

    @once
    def own_changes_to_come(self) -> int:
        """Changes of the run before this one without an intent; right before the call there are none."""
        intents = self._ledger.intents(self._plan.plan_id, self._batch_id)
        called = {intent.step_id for intent in intents} - {self._step.step_id}
        return max(self._place_in_run - 1 - len(called), 0)

    @once
    def moved_at(self, change: BundleChange) -> datetime | None:
        """Time of the bundle's last move; earlier, failed tries of this step do not count."""
        moves = moved_lately(self._past, self._now, self.policy)
        moved_at = moves.get(_key(change))
        return None if moved_at in self._own_tries() else moved_at

    @once
    def circling(self, namespace: str) -> tuple[str, ...]:
        """Bundles of a namespace that were moved away and back lately."""
        return circling_lately(self._past, self._now, self.policy).get(namespace, ())

    # -- a bundle

    @once
    def has_bundle(self, change: BundleChange) -> bool:
        """True if the metadata store has a bundle of these boundaries."""
        name, read = change.namespace, self.reader.bundles
        bundles = self.of_whole(("bundles", name), lambda: read(name)) if self._shared else read(name)
        return change.bundle in (bundles or ())

    def owner(self, change: BundleChange) -> str | Unknown | None:
        """Owner of the bundle; unknown if no broker owns it and brokers hand bundles over, as it may be on its way."""
        owner = self._owner(change)
        return owner_unknown(change) if owner is None and self.reader.hands_over else owner

    @once
    def _owner(self, change: BundleChange) -> str | None:
        """Owner of the bundle; the owner in the plan is asked first."""
        return self.reader.owner(
            change.namespace,
            change.bundle,
            likely=present_owner(change),
            listed=self.listed(),
            owned_by=self.owned_by if self._shared else self.reader.owned_by,
        )

    @once
    def clients(self, change: BundleChange) -> int:
        """Clients that have to reconnect, from the owner's statistics (up to 1 min old).

        Before the split that makes a part, nobody owns it: the planned owner's statistics have its topics.
        """
        owner = self._owner(change)
        if owner is None and not self.has_bundle(change) and present_owner(change) in self.listed():
            owner = present_owner(change)
        return kind_of(change).clients(self.reader, owner) if owner else 0

    @once
    def traffic(self, change: BundleChange) -> Traffic | Unknown:
        """Traffic of the bundle, from its owner's statistics (up to 1 min old)."""
        owner = self._owner(change)
        if owner is None:
            return TRAFFIC_UNKNOWN
        topics = self.reader.topics(owner, change.namespace, change.bundle).values()
        flows = [rate for each in topics for rate in (each.msg_throughput_in, each.msg_throughput_out)]
        rates = [rate for each in topics for rate in (each.msg_rate_in, each.msg_rate_out)]
        if None in (*flows, *rates):
            return TRAFFIC_UNKNOWN
        return Traffic(bytes=sum(filter(None, flows)), messages=sum(filter(None, rates)))

    @once
    def move_risks(self, change: BundleChange) -> MoveRisks:
        """Risks of a move, for a bundle that still exists and has an owner; else other guards refuse the step.

        The first look at all steps uses only topics in the statistics: right before its call, each step waits for the
        rest.
        """
        owner = self._owner(change)
        if owner is None or not self.has_bundle(change):
            return MoveRisks()
        if not self._shared and (words := self._too_new(owner, change)):
            return MoveRisks(unknown=(words,))
        return live_topics.move_risks(
            self.reader, owner, change, self.policy, lambda: self._require_owned(owner, [_key(change)])
        )

    # -- the transaction coordinators

    @once
    def raised_at(self, change: RaiseCoordinators) -> datetime | None:  # noqa: ARG002 - part of the protocol
        """Time of the last raise; earlier, failed tries of this step do not count."""
        raised = raised_lately(self._past, self._now, self.policy)
        own = self._own_tries()
        return max((at for at in raised if at not in own), default=None)

    @once
    def restless_coordinators(self) -> tuple[str, ...]:
        """Unserved or unrecovered coordinators, from their bundles' owners; an unused one has nothing to recover."""
        owners = self._owners(TC_NAMESPACE)
        for owner, owned in owners.items():
            self._require_owned(owner, owned)
        return restless_coordinators(self.reader, owners)

    # -- a topic's partitions

    @once
    def partitioned_topic(self, change: AddPartitions) -> PartitionedTopic | Unknown:
        """The topic, from the statistics of its namespace's owners (up to 1 min old), and from its policies."""
        return live_topics.partitioned(self.reader, change, self._owners(change.namespace))

    # -- a setting

    @once
    def setting(self, change: ChangeSetting) -> Setting | None:
        """Present value at the level that the change sets."""
        return self.reader.own_setting(change)

    @once
    def inherited(self, change: ChangeSetting) -> Setting | None:
        """Value of the namespace, or the brokers' default.

        Brokers may have different defaults of persistence, and a topic's ledgers follow its own broker's. Then a
        default that differs from the planned one is returned, so that guards stop the change.
        """
        told = self.reader.inherited(change)
        if change.name is not SettingName.PERSISTENCE or change.topic is not None or told != change.inherited:
            return told
        every = [defaults_in(each).get(change.name) for each in self.configurations()]
        return next((each for each in every if each != told), told)

    @once
    def largest_backlog(self, change: ChangeSetting) -> Backlog | Unknown:
        """Largest backlog of one of the setting's topics."""
        return self._backlogs(change).largest()

    @once
    def held_by_pulsar(self, change: ChangeSetting) -> PulsarsHold | Unknown:
        """What Pulsar's own cursors hold of the setting's topics."""
        return self._backlogs(change).held_by_pulsar()

    @once
    def taken(self, change: ChangeSetting) -> Taken | Unknown:
        """Data that brokers delete at once, in all of the setting's topics."""
        if None in (change.before, change.after):
            change = msgspec.structs.replace(change, inherited=self.inherited(change))
        if not change.may_delete:
            return NOTHING_TAKEN
        match change.after_in_force:
            case BacklogQuota() as quota if change.name is SettingName.SIZE_QUOTA:
                return self._backlogs(change).taken_by_size(quota.limit_bytes)
            case BacklogQuota() as quota:
                return self._taken_by_age(change, quota)
            case TimeToLive(seconds=seconds):
                return self._backlogs(change).taken_by_time_to_live(seconds)
            case kept:
                return self._backlogs(change).deleted_beyond(kept if isinstance(kept, Retention) else NOTHING_KEPT)

    def _taken_by_age(self, change: ChangeSetting, quota: BacklogQuota) -> Taken | Unknown:
        """Nothing, if all backlogs are known to be too young; in other cases the guard `age_room` refuses the quota."""
        ages = self.backlog_ages(change)
        if isinstance(ages, Unknown):
            return ages
        young = not ages.unknown and ages.oldest_seconds < quota.limit_seconds
        return NOTHING_TAKEN if young else loss_unknown(change)

    @once
    def backlog_ages(self, change: ChangeSetting) -> BacklogAges | Unknown:
        """Ages of the backlogs; not known while a topic with a cursor is not loaded."""
        return self._backlogs(change).ages()

    @once
    def retained_seconds(self, change: ChangeSetting) -> int | None:
        """Retention of the topic itself, or else the one in force in its namespace."""
        kept = self.reader.settings_of(change.namespace).get(SettingName.RETENTION)
        if change.topic is not None:
            own = self.reader.own_setting(msgspec.structs.replace(change, name=SettingName.RETENTION))
            kept = kept if own is None else own
        return retained_seconds(kept)

    @once
    def delayed_messages(self, change: ChangeSetting) -> int | Unknown:
        """Delayed messages of the namespace; unknown if an owner's metrics have no topics."""
        delayed = live_topics.delayed_messages(self.reader, change.namespace, self._owners(change.namespace))
        return delayed_unknown(change) if delayed is None else delayed

    @once
    def quotas_are_checked(self) -> bool | Unknown:
        """True if every responding broker checks quotas; unknown if a broker does not report it."""
        values = [self.reader.configuration(each).get("backlogQuotaCheckEnabled") for each in self.active()]
        if not values or None in values:
            return QUOTA_CHECKS_UNKNOWN
        return all(value == "true" for value in values)

    # -- a subscription

    @once
    def subscription(self, change: DeleteSubscription) -> SubscriptionState | None:
        """Present state, from the topic's owner."""
        return self.reader.subscription(change)

    @once
    def consumers_beside(self, change: DeleteSubscription) -> int:
        """Consumers on the other partitions, from the statistics of all owners (up to 1 min old)."""
        return live_topics.consumers_beside(self.reader, change, self._owners(change.namespace))

    @once
    def _backlogs(self, change: ChangeSetting) -> LiveBacklogs:
        """Backlogs of a setting's topics, read from their present owners."""
        owners = self._owners(change.namespace)
        for owner, owned in owners.items():
            self._require_owned(owner, owned)
        looks = TopicLooks(
            reader=self.reader,
            change=change,
            owners=owners,
            budget=self.policy.backlog_quota_remedy.most_topics_asked,
            now=self._now,
            told_in_seconds=0.0 if self._shared else self._told_in_seconds(owners, self._now),
        )
        return LiveBacklogs(looks)

    @once
    def _owners(self, namespace: str) -> dict[str, frozenset[str]]:
        """Responding brokers that own a bundle of the namespace, in order, with these bundles.

        Owners from the look at the whole cluster are read anew. The other brokers are read only if these owners no
        longer have all bundles of the namespace.
        """
        active = self.active()
        known = live_topics.owning(namespace, {broker: self.owned_by(broker) for broker in active})
        if self._shared:
            return known
        owned = self.reader.owned_by_each(list(known))
        bundles = {f"{namespace}/{bundle}" for bundle in self.reader.bundles(namespace) or ()}
        if bundles.difference(*live_topics.owning(namespace, owned).values()):
            owned |= self.reader.owned_by_each([broker for broker in active if broker not in owned])
        found = live_topics.owning(namespace, owned)
        return {broker: found[broker] for broker in sorted(found)}

    def _own_tries(self) -> set[datetime]:
        """Times of earlier tries of this step."""
        tried = self._ledger.intents(self._plan.plan_id, self._batch_id)
        return {intent.at for intent in tried if intent.step_id == self._step.step_id}

    def _require_owned(self, broker: str, bundles: Iterable[str]) -> None:
        """Checks that a broker still owns bundles: otherwise, reading their topics from it would load them there.

        Does nothing right before a call, where owners were read anew; the look at all steps shares one list of them.

        Raises:
            Drifted: If it does not own one.
        """
        if self._shared and (gone := sorted(set(bundles) - set(self.reader.owned_by(broker)))):
            raise Drifted(f"{broker} no longer owns {gone[0]}")


def _key(change: BundleChange) -> str:
    return f"{change.namespace}/{change.bundle}"
