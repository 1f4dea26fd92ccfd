"""The facts that guards may read before one step, from any source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from pulsar_steward.facts.unknown import VERSIONS_UNKNOWN, Unknown
from pulsar_steward.model.pulsar_versions import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pulsar_steward.facts.backlogs import Backlog, BacklogAges, PulsarsHold, Taken
    from pulsar_steward.facts.isolation import Isolation
    from pulsar_steward.facts.load_manager import AntiAffinityGroup, BrokerUsage, LoadManager, Traffic
    from pulsar_steward.facts.partitions import PartitionedTopic
    from pulsar_steward.facts.risks import MoveRisks
    from pulsar_steward.model.cluster import ClusterIdentity
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.model.step import (
        AddPartitions,
        BundleChange,
        ChangeSetting,
        DeleteSubscription,
        RaiseCoordinators,
    )
    from pulsar_steward.model.subscription import SubscriptionState


class Bookies(msgspec.Struct, frozen=True, kw_only=True):
    """Bookies for the ledgers of a namespace, as far as they are known.

    Attributes:
        groups: The bookie groups for its ledgers, and whether the namespace or the brokers set them, in words; empty:
            any bookie, or not known yet, as at planning.
        listed: Bookies of these groups that belong to the cluster, up or down, as brokers report them.
        writable: Those that the policy names (`collect.metrics_urls`) and that report that they take writes.
        read_only: Those that the policy names and that report that they do not.
    """

    groups: str = ""
    listed: int
    writable: int = 0
    read_only: int = 0

    @property
    def may_write(self) -> int:
        """Upper bound of the bookies that take writes."""
        return max(self.listed - self.read_only, 0)


def versions_in(told: Mapping[str, str | None]) -> tuple[str, ...] | Unknown:
    """The versions that brokers reported, each once, sorted; unknown if a broker reported none, or without brokers."""
    strange = sorted(broker for broker, version in told.items() if version is None or not VERSION.fullmatch(version))
    if strange:
        return Unknown(f"which version of Pulsar {strange[0]} runs is not known")
    if not told:
        return VERSIONS_UNKNOWN
    return tuple(sorted({version for version in told.values() if version is not None}))


def not_served(coordinator: int) -> str:
    """Words for a transaction coordinator with a bundle that no broker owns."""
    return f"no broker serves transaction coordinator {coordinator}"


def not_recovered(coordinator: int, state: str) -> str:
    """Words for a transaction coordinator that is not ready, with the state that its broker reports."""
    return f"transaction coordinator {coordinator} is {state}"


def subscription_unknown(change: DeleteSubscription) -> Unknown:
    """The state of the subscription is not known."""
    return Unknown(f"what subscription {change.subscription} of {change.topic} holds, and who uses it, is not known")


class ClusterFacts(Protocol):
    """Facts before one step; each is read when it is needed, and only once.

    A method that reads the live cluster raises `AdminError` if it cannot be read; then the step is not made.

    Attributes:
        now: The time of the look, UTC.
        planned_at: Time of the plan's own snapshot, UTC.
        seen_at: The same, or the time of a later snapshot that proposed the same.
        planned_for: The Pulsar cluster of the plan.
        planning: True at planning, with facts from a snapshot; False right before the call, with live facts.
        place_in_run: Number of the step's change in its run, from 1.
    """

    @property
    def now(self) -> datetime: ...  # noqa: D102 - said above

    @property
    def planned_at(self) -> datetime: ...  # noqa: D102 - said above

    @property
    def seen_at(self) -> datetime: ...  # noqa: D102 - said above

    @property
    def planned_for(self) -> ClusterIdentity: ...  # noqa: D102 - said above

    @property
    def planning(self) -> bool: ...  # noqa: D102 - said above

    @property
    def place_in_run(self) -> int: ...  # noqa: D102 - said above

    # -- the whole cluster

    def identity(self) -> ClusterIdentity:
        """The Pulsar cluster that responds."""

    def silent_brokers(self) -> tuple[str, ...]:
        """Listed brokers that did not respond."""

    def is_active(self, broker: str) -> bool:
        """True if the cluster lists the broker, and the broker responds."""

    def versions(self) -> tuple[str, ...] | Unknown:
        """Pulsar versions of the brokers that responded, each once: several while a cluster is being upgraded."""

    def read_only_bookies(self) -> tuple[str, ...]:
        """Bookies in the policy that take no writes."""

    def bookies(self, namespace: str) -> Bookies | Unknown:
        """The bookies for a namespace's ledgers, and how many of them are known to take writes."""

    def allowed_brokers(self, namespace: str) -> frozenset[str] | None:
        """Brokers that isolation policies allow for a namespace; None: every broker."""

    def isolation(self) -> Isolation | Unknown:
        """The isolation policies, with all namespaces, and with every running broker's load."""

    def anti_affinity(self, namespace: str) -> AntiAffinityGroup | Unknown | None:
        """The anti-affinity group of a namespace; None: it has no group."""

    def load_manager(self) -> LoadManager | Unknown:
        """The brokers' own load manager, and whether it sheds."""

    def usages(self) -> tuple[BrokerUsage, ...] | Unknown:
        """Usage of every active broker, as shedding compares it; read only if the load manager sheds."""

    def other_clusters(self, namespace: str) -> tuple[str, ...] | Unknown:
        """Other clusters that serve a namespace; the namespace's policies apply in all of them."""

    def scalable_topics(self, namespace: str) -> tuple[str, ...] | Unknown:
        """Scalable topics of a namespace, whose segments obey the namespace's settings (Pulsar 5)."""

    # -- what Steward did before

    def unproved_batch(self) -> str | None:
        """Another batch that changed the cluster since `seen_at` and was not proved, in words; None: there is none."""

    def changes_in_the_last_hour(self) -> int:
        """Number of calls that Steward made in this cluster."""

    def own_changes_to_come(self) -> int:
        """Number of earlier steps of this run that are not called yet; `changes_in_the_last_hour` lacks them."""

    def moved_at(self, change: BundleChange) -> datetime | None:
        """Time of Steward's last move of the bundle; None: none within the cooldown."""

    def circling(self, namespace: str) -> tuple[str, ...]:
        """Bundles of a namespace (``range``) that Steward moved away and back within the policy's time."""

    # -- a bundle

    def has_bundle(self, change: BundleChange) -> bool:
        """True if the namespace still has a bundle of exactly these boundaries."""

    def owner(self, change: BundleChange) -> str | Unknown | None:
        """Owner of the bundle, ``host:webport``; None: no broker; `Unknown`: it may be between two brokers."""

    def clients(self, change: BundleChange) -> int:
        """Producers and consumers that have to reconnect, also of a part before its split; 0: nobody owns it."""

    def traffic(self, change: BundleChange) -> Traffic | Unknown:
        """Traffic of the bundle; read only if the load manager sheds."""

    def move_risks(self, change: BundleChange) -> MoveRisks:
        """Risks of the change besides reconnecting clients."""

    # -- the transaction coordinators

    def raised_at(self, change: RaiseCoordinators) -> datetime | None:
        """Time of Steward's last raise of their number; None: none within the policy's rest time."""

    def restless_coordinators(self) -> tuple[str, ...]:
        """Coordinators that no broker serves, or that have not recovered, each in words, in order."""

    # -- a topic's partitions

    def partitioned_topic(self, change: AddPartitions) -> PartitionedTopic | Unknown:
        """The topic, with who consumes it and the limits of its partitions."""

    # -- a setting

    def setting(self, change: ChangeSetting) -> Setting | None:
        """Its value at the level that the change sets; None: not set there."""

    def inherited(self, change: ChangeSetting) -> Setting | None:
        """The value that applies if it is not set at that level; None: there is no value."""

    def largest_backlog(self, change: ChangeSetting) -> Backlog | Unknown:
        """The largest backlog of one of the setting's topics, with its holders."""

    def held_by_pulsar(self, change: ChangeSetting) -> PulsarsHold | Unknown:
        """What Pulsar's own cursors hold of the setting's topics, and their compaction thresholds."""

    def taken(self, change: ChangeSetting) -> Taken | Unknown:
        """Upper bound of the data that brokers delete at once for it, of all topics, loaded or not, and all cursors."""

    def backlog_ages(self, change: ChangeSetting) -> BacklogAges | Unknown:
        """Ages of the backlogs of an age quota's topics."""

    def retained_seconds(self, change: ChangeSetting) -> int | None:
        """Retention there in seconds; None: without time limit, or none at all."""

    def delayed_messages(self, change: ChangeSetting) -> int | Unknown:
        """Number of delayed messages of all subscriptions of the namespace, from brokers' metrics."""

    def quotas_are_checked(self) -> bool | Unknown:
        """True if brokers check backlog quotas at all (`backlogQuotaCheckEnabled`)."""

    def clock_difference(self) -> int | Unknown:
        """Largest difference between brokers' clocks, in milliseconds, accurate to 1 s."""

    # -- a subscription

    def subscription(self, change: DeleteSubscription) -> SubscriptionState | Unknown | None:
        """Its state; None: the topic has no subscription of this name."""

    def consumers_beside(self, change: DeleteSubscription) -> int | Unknown:
        """Consumers of the subscription with the same name on the topic's other partitions."""
