"""Facts for planners: one snapshot's facts, its findings, the policy, and the bundles that were moved lately.

Everything that decides a plan is in here, so that the same facts give the same plan, byte for byte.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from pulsar_steward.facts.load_manager import MANAGER_UNKNOWN, USAGES_UNKNOWN, BrokerUsage, LoadManager
from pulsar_steward.facts.unknown import VERSIONS_UNKNOWN, Unknown
from pulsar_steward.model.cluster import ClusterIdentity
from pulsar_steward.model.finding import Finding
from pulsar_steward.model.learned import Learned
from pulsar_steward.model.setting import Setting, SettingName
from pulsar_steward.planners.bundles.facts import BundleFacts
from pulsar_steward.planners.settings.facts import NamespaceFact, TopicSettings
from pulsar_steward.planners.subscriptions.facts import SubscriptionFact
from pulsar_steward.policy.schema import Policy


class BrokerFact(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that the cluster lists.

    Attributes:
        broker: ``host:webport``.
        read: True if it answered; one that did not is never a target.
    """

    broker: str
    read: bool


class TcBundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle of ``pulsar/system`` with the coordinators that it places.

    Attributes:
        bundle: The range in Pulsar's own writing.
        owner: ``host:webport``, or None where nobody owns it or that cannot be known.
        coordinators: Ids of the transaction coordinators in it, rising.
        positions: Hash positions of all topics in it, coordinators included, rising; what a split divides.
        producers: Connected producers of its topics.
        consumers: Connected consumers of its topics.
    """

    bundle: str
    owner: str | None
    coordinators: tuple[int, ...]
    positions: tuple[int, ...]
    producers: int = 0
    consumers: int = 0


class PlanningFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of one snapshot for planners.

    Attributes:
        cluster: The cluster's name in Steward's connections.
        snapshot_id: The snapshot.
        taken_at: Snapshot time, UTC: a planner's only "now".
        pulsar_cluster: The Pulsar cluster that was seen.
        unread: Brokers and namespaces that could not be read; not empty means partial.
        learned: How quickly topics were served again after a broker had gone; None: that was not seen.
        brokers: Every broker that the cluster lists, in order of id.
        versions: Pulsar versions of the brokers that were read, each once, sorted; or that one is not known.
        tcs_by_bundle: True if bundles place the coordinators; not so from Pulsar 5 on (PIP-473).
        tc_bundles: The bundles of ``pulsar/system`` that place coordinators, in order of range.
        tc_allowed: Brokers that isolation policies leave to ``pulsar/system``; None: every broker.
        namespaces: Namespaces with findings about settings, by name.
        topics: Topics with settings of their own that such findings are about, by name.
        subscriptions: Subscriptions that findings say are abandoned, by subject.
        defaults: Brokers' values where a namespace sets nothing, as far as they are known.
        quotas_are_checked: True if all brokers check backlog quotas; None: not known.
        backlog_caveats: How exact the figures of backlogs are, in sentences without their full stops.
        clocks_differ_milliseconds: Largest difference between brokers' clocks, to a second; None: not known.
        load_manager: The brokers' own load manager.
        usages: What its shedding compares, of every broker that was read.
        bundles: Business bundles that findings are about, and the load over time.
        findings: All findings of the snapshot.
        moved_at: Time of Steward's last move of a bundle (``tenant/ns/range``), as far as the cooldowns reach.
        circling: Namespaces of which Steward moved bundles away and back within the policy's time, with their ranges.
        coordinators_raised_at: Time of Steward's last raise of the number of coordinators, as far as its rest reaches.
        claimed: Namespaces of which earlier planners of the same plan move or split bundles: leave theirs alone.
        claimed_settings: Namespaces of which earlier planners of the same plan change settings.
        proposed: Kinds of the batches that earlier planners of the same plan propose.
        policy: Thresholds and limits.
    """

    cluster: str
    snapshot_id: str
    taken_at: datetime
    pulsar_cluster: ClusterIdentity
    unread: tuple[str, ...] = ()
    learned: Learned | None = None
    brokers: tuple[BrokerFact, ...]
    versions: tuple[str, ...] | Unknown = VERSIONS_UNKNOWN
    tcs_by_bundle: bool = True
    tc_bundles: tuple[TcBundle, ...] = ()
    tc_allowed: tuple[str, ...] | None = None
    namespaces: tuple[NamespaceFact, ...] = ()
    topics: tuple[TopicSettings, ...] = ()
    subscriptions: tuple[SubscriptionFact, ...] = ()
    defaults: dict[SettingName, Setting] = {}
    quotas_are_checked: bool | None = None
    backlog_caveats: tuple[str, ...] = ()
    clocks_differ_milliseconds: int | None = None
    load_manager: LoadManager | Unknown = MANAGER_UNKNOWN
    usages: tuple[BrokerUsage, ...] | Unknown = USAGES_UNKNOWN
    bundles: BundleFacts = BundleFacts()
    findings: tuple[Finding, ...] = ()
    moved_at: dict[str, datetime] = {}
    circling: dict[str, tuple[str, ...]] = {}
    coordinators_raised_at: datetime | None = None
    claimed: frozenset[str] = frozenset()
    claimed_settings: frozenset[str] = frozenset()
    proposed: frozenset[str] = frozenset()
    policy: Policy
