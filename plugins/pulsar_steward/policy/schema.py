"""The policy of one cluster: every key, its unit, its default and the reason for the default.

An unknown key is an error: a misspelt limit must not be silently absent.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, Field, create_model, model_validator

from pulsar_steward.checks.registry import CHECKS
from pulsar_steward.errors import PolicyError
from pulsar_steward.model.canonical import canonical_json
from pulsar_steward.model.isolation import Failover, FailoverLimits, IsolationPolicy
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.units import GIB
from pulsar_steward.policy.approval import ApprovalPolicy
from pulsar_steward.policy.guards import GuardsPolicy
from pulsar_steward.policy.layers import (
    CLUSTERS,
    KINDS,
    NAMESPACES,
    TENANTS,
    Layer,
    Layers,
    layer_troubles,
    merged,
    stack,
)
from pulsar_steward.policy.logical_clusters import LogicalClustersPolicy
from pulsar_steward.policy.names import (
    BrokerId,
    GroupName,
    NamespacePattern,
    Regex,
    SubscriptionPattern,
    TopicName,
    TopicPattern,
)
from pulsar_steward.policy.notify import NotifyPolicy
from pulsar_steward.policy.remedies import Remedies
from pulsar_steward.policy.trouble import models_in

if TYPE_CHECKING:
    from pulsar_steward.checks.backlog.growth import BacklogGrowingPolicy
    from pulsar_steward.checks.placement.broker_load import BrokerLoadSkewPolicy
    from pulsar_steward.checks.placement.bundle_load import BundleTopicSkewPolicy, HotBundlePolicy
    from pulsar_steward.checks.placement.coordinators import TcSkewPolicy


if TYPE_CHECKING:

    class CheckSections(Section):
        """Sections of the checks, each an attribute with the check's name; the registry knows their names."""

        # Sections that other code than the check itself reads; other checks need no line here.
        backlog_growing: BacklogGrowingPolicy = BacklogGrowingPolicy()
        broker_load_skew: BrokerLoadSkewPolicy = BrokerLoadSkewPolicy()
        bundle_topic_skew: BundleTopicSkewPolicy = BundleTopicSkewPolicy()
        hot_bundle: HotBundlePolicy = HotBundlePolicy()
        tc_skew: TcSkewPolicy = TcSkewPolicy()

        def __getattr__(self, name: str) -> Any:
            """Section of the check with this name."""

else:
    CheckSections = create_model(
        "CheckSections", __base__=Section, **{check.section: (check.policy, check.policy()) for check in CHECKS}
    )


class SubscriptionsPolicy(Section):
    """Deletion of abandoned subscriptions, with their unread messages; only proposed if this section allows it."""

    delete_abandoned: bool = Field(
        default=False, description="whether people are asked to delete what `subscription-abandoned` finds"
    )
    minimum_days: int = number(35, "without a consumer: five weeks, so that a job of every month is well", le=3650)
    growth_percent: int = number(
        25,
        "that a backlog may grow until it is deleted, at least, as nobody reads it: it is rounded up, so"
        " that no snapshot asks anew",
        ge=0,
        le=1000,
    )
    most_steps_per_plan: int = number(20, "deletions of one plan, the longest abandoned first", le=1000)
    protected_topics: tuple[TopicPattern, ...] = Field(
        (),
        description="topics (full names without `-partition-N`, or such as `persistent://tenant/name/*`) whose"
        " subscriptions all stay",
    )
    protected_subscriptions: tuple[SubscriptionPattern, ...] = Field(
        (), description="names of subscriptions (or such as `audit-*`) that stay on every topic"
    )


class HealthPolicy(Section):
    """Measurements after each move or split, and how much worse than right before it they may be.

    From half of a limit on, each measurement halves the pace of the batch's next changes.
    """

    watched_topics: int = number(
        20, "of each bundle, those of most clients, compared before and after; 0: none", ge=0, le=1000
    )
    return_seconds: int = number(30, "within which clients and coordinators have to be back", le=600)
    most_missing_clients_percent: int = percent(
        10, "producers or consumers that are not back by then: refused, or lost", ge=0
    )
    most_backlog_growth_percent: int = number(
        100, "of the watched topics' backlog meanwhile, once it is over `backlog_floor_messages`", ge=0
    )
    backlog_floor_messages: int = number(10_000, "backlog that is never trouble", ge=0)
    most_publish_milliseconds: int = number(
        1000, "99th percentile of publishing at the owner, where it was below it before"
    )


class HousekeepingPolicy(Section):
    """Snapshots that ``pulsar_housekeeping`` removes or compacts. The ledger is kept for ever, as it is a chain."""

    keep_snapshots_days: int = number(14, "from when a snapshot was taken", le=3650)
    keep_snapshots_least: int = number(12, "of the newest finished snapshots that stay whole at any age", le=1000)
    keep_topics_days: int = number(
        3,
        "after which topics, subscriptions, clients and metrics are removed, nearly all of a snapshot's size; "
        "findings, brokers, bundles and namespaces stay, and checks compare with it no more",
        le=3650,
    )
    unfinished_hours: int = number(24, "after which an unfinished snapshot counts as left behind")


class AdminPolicy(Section):
    """Limits of calls of the admin API."""

    connect_timeout_seconds: int = number(5, "to establish a connection", le=300)
    read_timeout_seconds: int = number(30, "between two pieces of an answer", le=3600)
    total_timeout_seconds: int = number(
        300, "for one whole call: connecting, redirects, and its answer to the end", le=3600
    )
    most_answer_megabytes: int = number(
        1024, "2^20 bytes of one answer, as sent and as unpacked; a larger one counts as none", le=65_536
    )
    read_attempts: int = number(3, "tries of a call that only looks; changes are tried once", le=10)
    redirects: int = number(5, "redirects followed within one call; two are usual", le=20)


class WantedGroup(Section):
    """A namespace isolation policy that is wanted: these namespaces on these brokers, and no others there."""

    name: GroupName = Field(description="of the isolation policy")
    namespaces: tuple[Regex, ...] = Field(
        min_length=1, description="regular expressions, each of a whole `tenant/namespace`: `shop/.*`"
    )
    primary: tuple[Regex, ...] = Field(
        min_length=1,
        description="regular expressions, each of a whole host of brokers, without a port: `10\\.0\\.1\\..*`",
    )
    secondary: tuple[Regex, ...] = Field((), description="the same, of brokers that help while too few of those run")
    min_available_brokers: int = number(1, "primary brokers that have to run; of fewer no policy is set", le=10_000)
    usage_threshold_percent: int = percent(80, "of a broker; brokers ask for it, and do not use it")

    @property
    def isolation(self) -> IsolationPolicy:
        """The isolation policy as brokers keep it."""
        limits = FailoverLimits(str(self.min_available_brokers), str(self.usage_threshold_percent))
        return IsolationPolicy(self.namespaces, self.primary, self.secondary, Failover(limits))


class BrokersPolicy(Section):
    """Brokers that are treated differently."""

    draining: tuple[BrokerId, ...] = Field(
        (), description="brokers (`host:webport`) about to be shut down: emptied, and never the target of a move"
    )
    groups: tuple[WantedGroup, ...] = Field(
        (), description="namespace isolation policies that are wanted; none: no isolation policy is proposed"
    )

    def group(self, name: str) -> WantedGroup | None:
        """The wanted group of this name."""
        return next((each for each in self.groups if each.name == name), None)

    @model_validator(mode="after")
    def _each_group_once(self) -> Self:
        names = [group.name for group in self.groups]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"groups: {', '.join(twice)} is there twice")
        return self


class ApplyPolicy(Section):
    """Pace and limits of the execution of approved steps."""

    bundle_moves_per_minute: int = number(60, "pace of moves and splits in this cluster")
    reconnecting_clients_per_minute: int = number(10_000, "pace of clients sent to reconnect")
    most_clients_per_step: int = number(20_000, "clients that one step may disturb", ge=0)
    intent_valid_seconds: int = number(10, "within which a recorded call leaves, or never", le=60)
    proof_timeout_seconds: int = number(60, "wait for the cluster to show a change")
    proof_wait_seconds: int = number(300, "wait for another batch's proof before the next one begins", ge=0)
    lease_seconds: int = number(60, "how long a writer that fell silent still holds the cluster", ge=5)
    lease_wait_seconds: int = number(1800, "wait for another writer of this cluster to finish", ge=0)
    members_at_once: int = number(1, "clusters of one logical cluster that are changed at the same time")
    protected_namespaces: tuple[NamespacePattern, ...] = Field(
        (), description="namespaces (`tenant/name`, or all of a tenant's: `tenant/*`) never to be changed"
    )


class EventsPolicy(Section):
    """Topic to which decisions and outcomes are published; the ledger has them in any case."""

    topic: TopicName | None = Field(
        "persistent://public/default/steward-events", description="a topic of the cluster itself; null: off"
    )
    timeout_seconds: int = number(5, "for connecting, and for each event", le=60)


class PlanPolicy(Section):
    """Conditions for a finding to become a proposal."""

    standing_snapshots: int = number(1, "snapshots in a row that have to show it first", le=1000)


class TrendsPolicy(Section):
    """Amount of history that each snapshot takes over from the one before."""

    most_snapshots: int = number(96, "a day of them, at one every 15 minutes", ge=2, le=1000)


MetricsUrl = Annotated[
    str, Field(pattern=r"^(bookie|zookeeper|zookeeper_admin|autorecovery)=https?://[^\s/@?#]+(/[^\s@?#]*)?$")
]
"""Address of a server's metrics: ``bookie=http://host:8000/metrics`` or ``zookeeper=http://host:7000/metrics``.

``autorecovery=...`` is a process that runs BookKeeper's auto recovery without a bookie.
"""


class CollectPolicy(Section):
    """Limits of collecting."""

    clients_per_subscription: int = percent(3, "worst consumers that are named, each", ge=0)
    recent_minutes: int = number(10, "a client that connected since then is a recent one", le=1440)
    drilled_topics: int = number(200, "suspects asked for their own statistics, at most", ge=0, le=10_000)
    drilled_from_consumed_bytes: int = number(
        10 * GIB, "kept by a topic though it is consumed; from here on it is asked why"
    )
    drill_calls_per_second: int = number(100, "that one broker is asked about suspects", le=1000)
    drill_seconds: int = number(60, "for the suspects of one broker; then the rest is left", le=3600)
    positions_bundles: int = number(
        5, "of each broker, the largest, asked for all their topics' hash positions", ge=0, le=1000
    )
    positions_from_topics: int = number(
        100, "loaded topics, from which on a bundle's hash positions are asked; fewer are hardly ever split", ge=2
    )
    positions_from_clients: int = number(500, "producers and consumers; the same")
    positions_from_megabytes: int = number(10, "bytes in and out, 10^6 a second; the same")
    metrics_megabytes: int = number(200, "of one broker's Prometheus text, read at most", le=4096)
    metrics_urls: tuple[MetricsUrl, ...] = Field(
        (),
        description="of bookies, ZooKeeper and autorecovery: `bookie=http://host:8000/metrics`; without a token. "
        "`zookeeper_admin=http://host:9990`: ZooKeeper's admin server, which tells its version",
    )


class KafkaPolicy(Section):
    """Limits of reading a Kafka cluster."""

    request_timeout_seconds: int = number(
        30, "for all metadata, and for brokers that do not answer in all; after it the snapshot is partial", le=600
    )
    total_seconds: int = number(300, "for all requests; the rest is left, and the snapshot is partial", le=3600)
    partitions_at_once: int = number(10_000, "whose offsets one request of the client asks for", le=100_000)
    groups_at_once: int = number(100, "consumer groups whose offsets are asked for side by side", le=1000)
    timed_partitions: int = number(
        5, "of each group, those of most lag: the age of the next message in each is asked", ge=0, le=1000
    )


class Policy(CheckSections, Remedies):
    """All thresholds and limits of one cluster, with the overrides of tenants and namespaces.

    Attributes:
        clusters: Sections by the name of a cluster, for a file shared by several clusters; removed by `for_cluster`.
        tenants: Sections of checks, and the permitted keys of `approval`, by tenant.
        namespaces: The same by ``tenant/namespace``.
    """

    admin: AdminPolicy = AdminPolicy()
    collect: CollectPolicy = CollectPolicy()
    kafka: KafkaPolicy = KafkaPolicy()
    trends: TrendsPolicy = TrendsPolicy()
    plan: PlanPolicy = PlanPolicy()
    brokers: BrokersPolicy = BrokersPolicy()
    approval: ApprovalPolicy = ApprovalPolicy()
    apply: ApplyPolicy = ApplyPolicy()
    guards: GuardsPolicy = GuardsPolicy()
    health: HealthPolicy = HealthPolicy()
    subscriptions: SubscriptionsPolicy = SubscriptionsPolicy()
    events: EventsPolicy = EventsPolicy()
    notify: NotifyPolicy = NotifyPolicy()
    housekeeping: HousekeepingPolicy = HousekeepingPolicy()
    logical_clusters: LogicalClustersPolicy = LogicalClustersPolicy()
    clusters: Layers = Field({}, description="any sections, for one cluster")
    tenants: Layers = Field(
        {},
        description="sections of checks that look at one namespace at a time, and `approval.never_ask`, for a tenant",
    )
    namespaces: Layers = Field({}, description="the same for one namespace")

    @model_validator(mode="after")
    def _overrides_hold(self) -> Self:
        if self.clusters or self.tenants or self.namespaces:
            found = layer_troubles(self.written(), SECTIONS)
            if found:
                raise ValueError("; ".join(str(each) for each in found))
        return self

    @property
    def digest(self) -> str:
        """SHA-256 of `document`; a plan names the policy that it was made under by this digest."""
        return hashlib.sha256(self.document()).hexdigest()

    def document(self) -> bytes:
        """The effective values and all overrides in canonical JSON, as the ledger stores them; contains no secret."""
        values = self.model_dump(mode="json")
        return canonical_json({name: value for name, value in values.items() if value or name not in KINDS})

    def for_cluster(self, cluster: str) -> Policy:
        """Policy of one cluster: its own values are in force, and overrides of other clusters are removed.

        Raises:
            PolicyError: If it has values for a cluster whose name differs from this one only in upper and lower case.
        """
        if not self.clusters:
            return self
        for name in self.clusters:
            if name != cluster and name.casefold() == cluster.casefold():
                raise PolicyError(
                    f"clusters.{name}: this policy has values for {name!r}, and {cluster!r} differs from that only in"
                    " upper and lower case: write both in the same way, here and in the connection"
                )
        return self._of(stack(self.written(), cluster), without={CLUSTERS})

    def for_namespace(self, namespace: str) -> Policy:
        """Policy of one namespace of this policy's cluster; of a tenant, if only the tenant is given."""
        if not self.tenants and not self.namespaces:
            return self
        return self._of(stack(self.written(), namespace=namespace), without={TENANTS, NAMESPACES})

    def written(self) -> dict[str, Any]:
        """The values that were set, as a document, without the defaults."""
        return self.model_dump(mode="json", exclude_unset=True)

    def _of(self, layers: list[Layer], *, without: set[str]) -> Policy:
        rest = {name: value for name, value in self.written().items() if name in set(KINDS) - without}
        return Policy.model_validate(merged(layers) | rest)


SECTIONS: dict[str, type[BaseModel]] = dict(models_in(Policy))
"""Sections of a policy by name."""
