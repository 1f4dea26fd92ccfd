"""Facts for planners: one snapshot's facts, its findings, the policy, and recently moved bundles.

They contain all that decides a plan, so the same facts give the same plan, byte for byte.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from pulsar_steward.facts.load_manager import MANAGER_UNKNOWN, USAGES_UNKNOWN, BrokerUsage, LoadManager
from pulsar_steward.facts.unknown import VERSIONS_UNKNOWN, Unknown
from pulsar_steward.model.cluster import ClusterIdentity
from pulsar_steward.model.finding import Finding
from pulsar_steward.model.setting import Setting, SettingName
from pulsar_steward.planners.bundles.facts import BundleFacts
from pulsar_steward.planners.settings.facts import NamespaceFact, TopicSettings
from pulsar_steward.planners.subscriptions.facts import SubscriptionFact
from pulsar_steward.planners.unseen_names import UnseenNames
from pulsar_steward.policy.schema import Policy


class BrokerFact(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that the cluster lists.

    Attributes:
        broker: ``host:webport``.
        read: True if it responded; a broker that did not respond is never a target.
    """

    broker: str
    read: bool


class TcBundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle of ``pulsar/system`` with transaction coordinators.

    Attributes:
        bundle: The range as Pulsar writes it.
        owner: ``host:webport``; None if it has no owner, or the owner is not known.
        coordinators: Ids of the transaction coordinators in it, rising.
        positions: Hash positions of all its topics, coordinators included, rising; a split divides these.
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
        taken_at: Snapshot time, UTC: the only current time of a planner.
        pulsar_cluster: The Pulsar cluster of the snapshot.
        unread: Brokers and namespaces that could not be read; not empty means partial.
        brokers: Every broker that the cluster lists, in order of id.
        versions: Pulsar versions of the brokers that were read, each once, sorted; unknown if one of them is.
        tcs_by_bundle: True if bundles place the coordinators; not so from Pulsar 5 on (PIP-473).
        tc_bundles: The bundles of ``pulsar/system`` with coordinators, in order of range.
        tc_allowed: Brokers allowed by isolation policies for ``pulsar/system``; None: every broker.
        namespaces: Namespaces with findings about settings, by name.
        topics: Topics with settings of their own and such findings, by name.
        subscriptions: Subscriptions with a finding of abandonment, by subject.
        defaults: Brokers' values if a namespace sets nothing, as far as they are known.
        quotas_are_checked: True if all brokers check backlog quotas; None: not known.
        backlog_caveats: Reasons why figures of backlogs are not exact, in sentences without their full stops.
        clocks_differ_milliseconds: Largest difference between brokers' clocks, to a second; None: not known.
        load_manager: The brokers' own load manager.
        usages: Figures that its load shedding compares, for every broker that was read.
        bundles: Business bundles with findings, and the load over time.
        findings: All listed findings of the snapshot.
        unlisted: Number of further findings by check.
        moved_at: Time of Steward's last move of a bundle (``tenant/ns/range``), as far back as the cooldowns.
        circling: Namespaces with bundles that Steward moved away and back within the policy's time, with the bundles'
            ranges.
        coordinators_raised_at: Time of Steward's last raise of the number of coordinators, as far back as the pause
            after it.
        claimed: Namespaces whose bundles earlier planners of the same plan move or split: later planners leave them
            alone.
        claimed_settings: Namespaces whose settings earlier planners of the same plan change.
        proposed: Kinds of the batches that earlier planners of the same plan propose.
        unseen: Names in the policy that match nothing in the cluster.
        policy: Thresholds and limits.
    """

    cluster: str
    snapshot_id: str
    taken_at: datetime
    pulsar_cluster: ClusterIdentity
    unread: tuple[str, ...] = ()
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
    unlisted: dict[str, int] = {}
    moved_at: dict[str, datetime] = {}
    circling: dict[str, tuple[str, ...]] = {}
    coordinators_raised_at: datetime | None = None
    claimed: frozenset[str] = frozenset()
    claimed_settings: frozenset[str] = frozenset()
    proposed: frozenset[str] = frozenset()
    unseen: tuple[UnseenNames, ...] = ()
    policy: Policy
