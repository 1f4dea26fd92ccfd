"""The policy of one cluster: every key, its unit, its default and why that default.

An unknown key is an error: a limit that is misspelt must not be silently absent.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from pulsar_steward.model.canonical import digest


class Section(BaseModel):
    """A part of the policy; frozen, and closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class AdminPolicy(Section):
    """How the admin API is called."""

    connect_timeout_seconds: int = Field(5, ge=1, le=300, description="to establish a connection")
    read_timeout_seconds: int = Field(30, ge=1, le=3600, description="between two pieces of an answer")
    total_timeout_seconds: int = Field(300, ge=1, le=3600, description="for one whole answer")
    read_attempts: int = Field(3, ge=1, le=10, description="tries of a call that only looks; changes are tried once")
    redirects: int = Field(5, ge=1, le=20, description="redirects followed within one call; two are usual")


class TcSkewPolicy(Section):
    """When uneven transaction coordinators are trouble, and how they are moved."""

    warning_spread_coordinators: int = Field(
        3, ge=2, description="most minus fewest on a broker; a freshly started cluster shows 2 (6/6/4)"
    )
    critical_share_percent: int = Field(
        75, ge=1, le=100, description="share of all coordinators on one broker, whose restart would stall that many"
    )
    cooldown_minutes: int = Field(30, ge=0, description="rest of a bundle after a move, against moving in circles")


class BundleTopicSkewPolicy(Section):
    """When topics crowd in few bundles of a namespace."""

    minimum_topics: int = Field(100, ge=1, description="namespaces with fewer topics are left alone")
    warning_times_mean: int = Field(3, ge=2, description="topics in the fullest bundle, as a multiple of the mean")
    warning_topics_per_bundle: int = Field(1000, ge=1, description="topics in one bundle that are too many anywhere")


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


class Policy(Section):
    """All thresholds and limits of one cluster."""

    admin: AdminPolicy = AdminPolicy()
    tc_skew: TcSkewPolicy = TcSkewPolicy()
    bundle_topic_skew: BundleTopicSkewPolicy = BundleTopicSkewPolicy()
    brokers: BrokersPolicy = BrokersPolicy()
    approval: ApprovalPolicy = ApprovalPolicy()
    apply: ApplyPolicy = ApplyPolicy()
    events: EventsPolicy = EventsPolicy()

    @property
    def digest(self) -> str:
        """SHA-256 of the effective values, so that a plan says which policy it rests on."""
        return digest(self.model_dump(mode="json"))
