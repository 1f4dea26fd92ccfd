"""Facts for planners: one snapshot's facts, its findings, the policy, and recently moved bundles.

They contain all that decides a plan, so the same facts give the same plan, byte for byte.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.clients.consumers import subject_of
from pulsar_steward.checks.clients.subscription_abandoned import CHECK as SUBSCRIPTION_ABANDONED
from pulsar_steward.checks.clients.subscription_abandoned import AbandonedFigures
from pulsar_steward.decoding import decode
from pulsar_steward.facts.isolation import ISOLATION_UNKNOWN, Isolation
from pulsar_steward.facts.load_manager import MANAGER_UNKNOWN, USAGES_UNKNOWN, BrokerUsage, LoadManager
from pulsar_steward.facts.protocol import Bookies
from pulsar_steward.facts.unknown import BOOKIES_UNKNOWN, VERSIONS_UNKNOWN, Unknown
from pulsar_steward.model.cluster import ClusterIdentity
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.setting import Setting, SettingName
from pulsar_steward.model.step import Change, UnloadBundle
from pulsar_steward.model.subscription import Cursor, SubscriptionState, holding
from pulsar_steward.model.topics import PARTITION_END, namespace_of
from pulsar_steward.planners.bundles.facts import BundleFacts
from pulsar_steward.planners.partitions.facts import PartitionedFact
from pulsar_steward.planners.settings.facts import NamespaceFact, TopicSettings
from pulsar_steward.planners.unseen_names import UnseenNames
from pulsar_steward.policy.schema import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsar_steward.snapshots.read import Snapshot


class BrokerFact(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that the cluster lists; one that did not respond (`read`) is never a target."""

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
        versions: Pulsar versions of the brokers that were read, each once, sorted; unknown if one broker's is.
        tc_bundles: The bundles of ``pulsar/system`` with coordinators, in order of range.
        tc_allowed: Brokers allowed by isolation policies for ``pulsar/system``; None: every broker.
        namespaces: Namespaces with findings about settings, by name.
        topics: Topics with settings of their own and such findings, by name.
        subscriptions: Subscriptions with a finding of abandonment, by subject.
        partitioned: Topics with findings that more partitions may answer, by name.
        defaults: Brokers' values if a namespace sets nothing, as far as they are known.
        quotas_are_checked: True if all brokers check backlog quotas; None: not known.
        bookies: Bookies that brokers listed; unknown if they did not tell.
        backlog_caveats: Reasons why figures of backlogs are not exact, in sentences without their full stops.
        clocks_differ_milliseconds: Largest difference between brokers' clocks, to a second; None: not known.
        load_manager: The brokers' own load manager.
        usages: Figures that its load shedding compares, for every broker that was read.
        isolation: Isolation policies with what they divide, once what earlier planners of the same plan propose is
            carried out; unknown where no finding needs them.
        bundles: Business bundles with findings, and the load over time.
        findings: All listed findings of the snapshot.
        unlisted: Number of further findings by check and namespace; an empty name: of any namespace.
        moved_at: Time of Steward's last move of a bundle (``tenant/ns/range``), as far back as the cooldowns.
        circling: Namespaces with bundles that Steward moved away and back within the policy's time, with the bundles'
            ranges.
        coordinators_raised_at: Time of Steward's last raise of the number of coordinators, as far back as the pause
            after it.
        claimed: Namespaces whose bundles earlier planners of the same plan move or split: later planners leave them
            alone.
        claimed_settings: Namespaces whose settings earlier planners of the same plan change.
        proposed: Kinds of the batches that earlier planners of the same plan propose, but for `unasked`.
        moves: Moves of earlier planners of the same plan.
        parts_stay: Namespaces whose bundles are split without a move of parts, as a person said no to these moves.
        unasked: Changes of batches that nobody is asked about, as a person said no to them: they claim no namespace.
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
    tc_bundles: tuple[TcBundle, ...] = ()
    tc_allowed: tuple[str, ...] | None = None
    namespaces: tuple[NamespaceFact, ...] = ()
    topics: tuple[TopicSettings, ...] = ()
    subscriptions: tuple[SubscriptionFact, ...] = ()
    partitioned: tuple[PartitionedFact, ...] = ()
    defaults: dict[SettingName, Setting] = {}
    quotas_are_checked: bool | None = None
    bookies: Bookies | Unknown = BOOKIES_UNKNOWN
    backlog_caveats: tuple[str, ...] = ()
    clocks_differ_milliseconds: int | None = None
    load_manager: LoadManager | Unknown = MANAGER_UNKNOWN
    usages: tuple[BrokerUsage, ...] | Unknown = USAGES_UNKNOWN
    isolation: Isolation | Unknown = ISOLATION_UNKNOWN
    bundles: BundleFacts = BundleFacts()
    findings: tuple[Finding, ...] = ()
    unlisted: dict[str, dict[str, int]] = {}
    moved_at: dict[str, datetime] = {}
    circling: dict[str, tuple[str, ...]] = {}
    coordinators_raised_at: datetime | None = None
    claimed: frozenset[str] = frozenset()
    claimed_settings: frozenset[str] = frozenset()
    proposed: frozenset[str] = frozenset()
    moves: tuple[UnloadBundle, ...] = ()
    parts_stay: frozenset[str] = frozenset()
    unasked: frozenset[tuple[Change, ...]] = frozenset()
    unseen: tuple[UnseenNames, ...] = ()
    policy: Policy

    @property
    def moving(self) -> frozenset[str]:
        """Brokers from or to which earlier planners of the same plan move bundles."""
        return frozenset(broker for move in self.moves for broker in (move.source, move.target))

    def unlisted_in(self, namespace: str, check_id: str) -> int:
        """Number of a check's unlisted findings that are of a namespace, or may be."""
        by_name = self.unlisted.get(check_id, {})
        return by_name.get(namespace, 0) + by_name.get("", 0)


class SubscriptionFact(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription with a finding of abandonment.

    Attributes:
        subject: Subject of the finding.
        namespace: ``tenant/namespace``.
        topic: Full name of the topic, or of one partition.
        subscription: Its name.
        cursor: Its identity.
        state: Its state at the snapshot.
        consumers_beside: Consumers of the same-named subscription on the topic's other partitions.
        since: Time of the first of the consecutive snapshots without a consumer, UTC.
        entries_then: Its backlog at that time, in entries.
        seconds: Time from then to the snapshot.
    """

    subject: str
    namespace: str
    topic: str
    subscription: str
    cursor: Cursor
    state: SubscriptionState
    consumers_beside: int
    since: datetime
    entries_then: int
    seconds: int


_ABANDONED = f"""
    with told as (select *, regexp_replace(topic, '{PARTITION_END}', '') as whole, coalesce(consumers, 0) as connected
        from subscriptions where namespace in (select unnest($names))),
    beside as (select whole, subscription, sum(connected)::bigint as consumers from told group by whole, subscription),
    together as (select topic, list(subscription) as subscriptions from told group by topic)
    select namespace, topic, subscription, cursor_json, connected,
        coalesce(backlog_entries, 0) as entries, coalesce(t.backlog_bytes, 0) as topic_bytes,
        greatest(coalesce(last_consumed_milliseconds, 0), coalesce(last_acked_milliseconds, 0)) as moved_milliseconds,
        list_filter(subscriptions, lambda name: name <> subscription) as others,
        beside.consumers - connected as consumers_beside
    from told join (select topic, backlog_bytes from topics) t using (topic) join together using (topic)
        join beside using (whole, subscription)
        join (select topic, subscription, cursor_json, last_consumed_milliseconds, last_acked_milliseconds from drilled
            where cursor_json is not null) using (topic, subscription)"""


class _Abandoned(msgspec.Struct, frozen=True):
    namespace: str
    topic: str
    subscription: str
    cursor_json: str
    connected: int
    entries: int
    topic_bytes: int
    moved_milliseconds: int
    others: tuple[str, ...]
    consumers_beside: int


def subscription_facts(snapshot: Snapshot, findings: Iterable[Finding]) -> tuple[SubscriptionFact, ...]:
    """Facts of the subscriptions with warnings of abandonment and a known cursor, by subject.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    named = {
        each.subject: AbandonedFigures.of(each)
        for each in findings
        if each.check_id == SUBSCRIPTION_ABANDONED.check_id and each.severity.rank >= Severity.WARNING.rank
    }
    if not named:
        return ()
    rows = snapshot.select(_ABANDONED, _Abandoned, names=sorted(set(map(namespace_of, named))))
    found = {subject_of({"topic": row.topic, "subscription": row.subscription}): row for row in rows}
    return tuple(
        SubscriptionFact(
            subject=subject,
            namespace=row.namespace,
            topic=row.topic,
            subscription=row.subscription,
            cursor=(cursor := decode(row.cursor_json, Cursor)),
            state=SubscriptionState(
                consumers=row.connected,
                entries=row.entries,
                topic_bytes=row.topic_bytes,
                moved_milliseconds=row.moved_milliseconds,
                cursor=cursor,
                others=holding(row.others),
            ),
            consumers_beside=row.consumers_beside,
            since=datetime.fromtimestamp(named[subject].since_epoch_seconds, UTC),
            entries_then=named[subject].entries_then,
            seconds=named[subject].without_consumer_seconds,
        )
        for subject, row in sorted(found.items())
        if subject in named
    )
