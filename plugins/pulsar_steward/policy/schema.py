"""The policy of one cluster: every key, its unit, its default and the reason for the default.

An unknown key is an error: a misspelt limit must not be silently absent.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, model_validator

from pulsar_steward.errors import PolicyError
from pulsar_steward.model.canonical import canonical_json
from pulsar_steward.model.section import Section
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
from pulsar_steward.policy.names import BrokerId, NamespacePattern, TopicName  # noqa: TC001 - pydantic reads it
from pulsar_steward.policy.notify import NotifyPolicy
from pulsar_steward.policy.remedies import Remedies
from pulsar_steward.policy.sections import CheckSections, HealthPolicy, HousekeepingPolicy, SubscriptionsPolicy
from pulsar_steward.policy.trouble import models_in


class AdminPolicy(Section):
    """Limits of calls of the admin API."""

    connect_timeout_seconds: int = Field(5, ge=1, le=300, description="to establish a connection")
    read_timeout_seconds: int = Field(30, ge=1, le=3600, description="between two pieces of an answer")
    total_timeout_seconds: int = Field(
        300, ge=1, le=3600, description="for one whole call: connecting, redirects, and its answer to the end"
    )
    most_answer_megabytes: int = Field(
        1024, ge=1, le=65_536, description="2^20 bytes of one answer, as sent and as unpacked; a larger one is none"
    )
    read_attempts: int = Field(3, ge=1, le=10, description="tries of a call that only looks; changes are tried once")
    redirects: int = Field(5, ge=1, le=20, description="redirects followed within one call; two are usual")


class BrokersPolicy(Section):
    """Brokers that are treated differently."""

    draining: tuple[BrokerId, ...] = Field(
        (), description="brokers (`host:webport`) about to be shut down: emptied, and never the target of a move"
    )


class ApplyPolicy(Section):
    """Pace and limits of the execution of approved steps."""

    bundle_moves_per_minute: int = Field(60, ge=1, description="pace of moves and splits in this cluster")
    reconnecting_clients_per_minute: int = Field(10_000, ge=1, description="pace of clients sent to reconnect")
    most_clients_per_step: int = Field(20_000, ge=0, description="clients that one step may disturb")
    intent_valid_seconds: int = Field(
        10, ge=1, le=60, description="from a call's record to its leaving; held up longer, it is not sent"
    )
    proof_timeout_seconds: int = Field(60, ge=1, description="wait for the cluster to show a change")
    proof_wait_seconds: int = Field(300, ge=0, description="wait for another batch's proof before the next one begins")
    lease_seconds: int = Field(60, ge=5, description="how long a writer that fell silent still holds the cluster")
    lease_wait_seconds: int = Field(1800, ge=0, description="wait for another writer of this cluster to finish")
    protected_namespaces: tuple[NamespacePattern, ...] = Field(
        (), description="namespaces (`tenant/name`, or all of a tenant's: `tenant/*`) never to be changed"
    )


class EventsPolicy(Section):
    """Topic to which decisions and outcomes are published; the ledger has them in any case."""

    topic: TopicName | None = Field(
        "persistent://public/default/steward-events", description="a topic of the cluster itself; null: off"
    )
    timeout_seconds: int = Field(5, ge=1, le=60, description="for connecting, and for each event")


class PlanPolicy(Section):
    """Conditions for a finding to become a proposal."""

    standing_snapshots: int = Field(1, ge=1, le=1000, description="snapshots in a row that have to show it first")


class TrendsPolicy(Section):
    """Amount of history that each snapshot takes over from the one before."""

    most_snapshots: int = Field(96, ge=2, le=1000, description="a day of them, at one every 15 minutes")


MetricsUrl = Annotated[str, Field(pattern=r"^(bookie|zookeeper|autorecovery)=https?://[^\s/@?#]+(/[^\s@?#]*)?$")]
"""Address of a server's metrics: ``bookie=http://host:8000/metrics`` or ``zookeeper=http://host:7000/metrics``.

``autorecovery=...`` is a process that runs BookKeeper's auto recovery without a bookie.
"""


class CollectPolicy(Section):
    """Limits of collecting."""

    clients_per_subscription: int = Field(3, ge=0, le=100, description="worst consumers that are named, each")
    recent_minutes: int = Field(10, ge=1, le=1440, description="a client that connected since then is a recent one")
    drilled_topics: int = Field(200, ge=0, le=10_000, description="suspects asked for their own statistics, at most")
    drilled_from_consumed_bytes: int = Field(
        10 * GIB, ge=1, description="kept by a topic though it is consumed; from here on it is asked why"
    )
    drill_calls_per_second: int = Field(100, ge=1, le=1000, description="that one broker is asked about suspects")
    drill_seconds: int = Field(60, ge=1, le=3600, description="for the suspects of one broker; then the rest is left")
    positions_bundles: int = Field(
        5, ge=0, le=1000, description="of each broker, the largest, asked for all their topics' hash positions"
    )
    positions_from_topics: int = Field(
        100, ge=2, description="loaded topics from which a bundle may be among them; fewer are hardly ever split"
    )
    positions_from_clients: int = Field(500, ge=1, description="producers and consumers; the same")
    positions_from_megabytes: int = Field(10, ge=1, description="bytes in and out, 10^6 a second; the same")
    metrics_megabytes: int = Field(200, ge=1, le=4096, description="of one broker's Prometheus text, read at most")
    metrics_urls: tuple[MetricsUrl, ...] = Field(
        (),
        description="of bookies, ZooKeeper and autorecovery: `bookie=http://host:8000/metrics`; without a token",
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
