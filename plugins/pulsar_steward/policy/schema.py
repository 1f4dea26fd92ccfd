"""The policy of one cluster: every key, its unit, its default and why that default.

An unknown key is an error: a limit that is misspelt must not be silently absent.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pulsar_steward.model.canonical import digest
from pulsar_steward.policy.checks.backlog import BacklogChecks
from pulsar_steward.policy.checks.clients import ClientsChecks
from pulsar_steward.policy.checks.delayed import DelayedChecks
from pulsar_steward.policy.checks.placement import PlacementChecks
from pulsar_steward.policy.checks.resources import ResourcesChecks
from pulsar_steward.policy.section import Section


class AdminPolicy(Section):
    """How the admin API is called."""

    connect_timeout_seconds: int = Field(5, ge=1, le=300, description="to establish a connection")
    read_timeout_seconds: int = Field(30, ge=1, le=3600, description="between two pieces of an answer")
    total_timeout_seconds: int = Field(300, ge=1, le=3600, description="for one whole answer")
    read_attempts: int = Field(3, ge=1, le=10, description="tries of a call that only looks; changes are tried once")
    redirects: int = Field(5, ge=1, le=20, description="redirects followed within one call; two are usual")


class BrokersPolicy(Section):
    """Brokers with a special part."""

    draining: tuple[str, ...] = Field(
        (), description="brokers (`host:webport`) about to be shut down: never the target of a move"
    )


class ApprovalPolicy(Section):
    """How long a question and its answer stand."""

    response_timeout_minutes: int = Field(24 * 60, ge=1, description="no answer by then is a rejection")
    valid_minutes: int = Field(60, ge=1, description="from the answer to the last change made under it")
    ask_again_minutes: int = Field(24 * 60, ge=0, description="rest of a proposal after somebody rejected it")
    assigned_users: tuple[str, ...] = Field((), description="who may answer; empty: everyone whom Airflow lets")


class ApplyPolicy(Section):
    """How fast and how carefully approved steps are carried out."""

    bundle_moves_per_minute: int = Field(60, ge=1, description="pace of moves and splits in this cluster")
    reconnecting_clients_per_minute: int = Field(10_000, ge=1, description="pace of clients sent to reconnect")
    most_clients_per_step: int = Field(20_000, ge=0, description="clients that one step may disturb")
    proof_timeout_seconds: int = Field(60, ge=1, description="wait for the cluster to show a change")
    lease_seconds: int = Field(60, ge=5, description="how long a writer that fell silent still holds the cluster")
    lease_wait_seconds: int = Field(1800, ge=0, description="wait for another writer of this cluster to finish")
    protected_namespaces: tuple[str, ...] = Field((), description="namespaces (`tenant/name`) never to be changed")


class EventsPolicy(Section):
    """Where decisions and outcomes are published; the ledger has them in any case."""

    topic: str | None = Field(
        "persistent://public/default/steward-events", description="a topic of the cluster itself; null: off"
    )
    timeout_seconds: int = Field(5, ge=1, le=60, description="for connecting, and for each event")


class PlanPolicy(Section):
    """When a finding becomes a proposal."""

    standing_snapshots: int = Field(1, ge=1, le=1000, description="snapshots in a row that have to show it first")


MetricsUrl = Annotated[str, Field(pattern=r"^(bookie|zookeeper)=https?://[^\s/@?#]+(/[^\s@?#]*)?$")]
"""``bookie=http://host:8000/metrics`` or ``zookeeper=http://host:7000/metrics``."""


class CollectPolicy(Section):
    """How much is looked at."""

    clients_per_subscription: int = Field(3, ge=0, le=100, description="worst consumers that are named, each")
    recent_minutes: int = Field(10, ge=1, le=1440, description="a client that connected since then is a recent one")
    drilled_topics: int = Field(200, ge=0, le=10_000, description="suspects asked for their own statistics, at most")
    drill_calls_per_second: int = Field(50, ge=1, le=1000, description="that one broker is asked about suspects")
    drill_seconds: int = Field(60, ge=1, le=3600, description="for the suspects of one broker; then the rest is left")
    metrics_megabytes: int = Field(200, ge=1, le=4096, description="of one broker's Prometheus text, read at most")
    metrics_urls: tuple[MetricsUrl, ...] = Field(
        (), description="of bookies and ZooKeeper, `bookie=http://host:8000/metrics`; asked without any token"
    )


class Policy(ResourcesChecks, ClientsChecks, PlacementChecks, BacklogChecks, DelayedChecks):
    """All thresholds and limits of one cluster."""

    admin: AdminPolicy = AdminPolicy()
    collect: CollectPolicy = CollectPolicy()
    plan: PlanPolicy = PlanPolicy()
    brokers: BrokersPolicy = BrokersPolicy()
    approval: ApprovalPolicy = ApprovalPolicy()
    apply: ApplyPolicy = ApplyPolicy()
    events: EventsPolicy = EventsPolicy()

    @property
    def digest(self) -> str:
        """SHA-256 of the effective values, so that a plan says which policy it rests on."""
        return digest(self.model_dump(mode="json"))
