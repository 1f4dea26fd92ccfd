"""The questions that a guard may ask before one step, whoever answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pulsar_steward.facts.unknown import VERSIONS_UNKNOWN, Unknown
from pulsar_steward.model.pulsar_versions import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pulsar_steward.facts.backlogs import BacklogAges
    from pulsar_steward.facts.load_manager import AntiAffinityGroup, BrokerUsage, LoadManager
    from pulsar_steward.facts.risks import MoveRisks
    from pulsar_steward.model.cluster import ClusterIdentity
    from pulsar_steward.model.loss import Loss
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.model.step import BundleChange, ChangeSetting, DeleteSubscription, RaiseCoordinators
    from pulsar_steward.model.subscription import SubscriptionState


def versions_in(told: Mapping[str, str | None]) -> tuple[str, ...] | Unknown:
    """The versions that brokers told, each once, sorted; not known where one told none, or there is no broker."""
    strange = sorted(broker for broker, version in told.items() if version is None or not VERSION.fullmatch(version))
    if strange:
        return Unknown(f"which version of Pulsar {strange[0]} runs is not known")
    if not told:
        return VERSIONS_UNKNOWN
    return tuple(sorted({version for version in told.values() if version is not None}))


def not_served(coordinator: int) -> str:
    """A transaction coordinator of which nobody owns the bundle."""
    return f"no broker serves transaction coordinator {coordinator}"


def not_recovered(coordinator: int, state: str) -> str:
    """A transaction coordinator that does not work yet, by the state that its broker tells."""
    return f"transaction coordinator {coordinator} is {state}"


def subscription_unknown(change: DeleteSubscription) -> Unknown:
    """Nobody tells of the subscription."""
    return Unknown(f"what subscription {change.subscription} of {change.topic} holds, and who uses it, is not known")


class ClusterFacts(Protocol):
    """Facts before one step; nothing is read that is not asked for, and nothing twice.

    A method that reads the live cluster raises `AdminError` where it cannot be read: the step is not made then.

    Attributes:
        now: The time of the look, UTC.
        seen_at: When the snapshot was taken that the plan rests on, UTC.
        planned_for: The Pulsar cluster that the plan is for; None: the plan does not say.
        planning: Whether a snapshot answers, at planning, and not the cluster, right before the call.
        place_in_run: Which change of its run the step is, from 1.
    """

    @property
    def now(self) -> datetime: ...  # noqa: D102 - said above

    @property
    def seen_at(self) -> datetime: ...  # noqa: D102 - said above

    @property
    def planned_for(self) -> ClusterIdentity | None: ...  # noqa: D102 - said above

    @property
    def planning(self) -> bool: ...  # noqa: D102 - said above

    @property
    def place_in_run(self) -> int: ...  # noqa: D102 - said above

    # -- the whole cluster

    def identity(self) -> ClusterIdentity:
        """The Pulsar cluster that answers."""

    def silent_brokers(self) -> tuple[str, ...]:
        """Brokers that the cluster lists, and that did not answer."""

    def is_active(self, broker: str) -> bool:
        """True if the cluster lists the broker, and it answers."""

    def versions(self) -> tuple[str, ...] | Unknown:
        """Pulsar versions of the brokers that answered, each once: several while a cluster is being upgraded."""

    def read_only_bookies(self) -> tuple[str, ...]:
        """Bookies that take no writes, of those that the policy names."""

    def allowed_brokers(self, namespace: str) -> frozenset[str] | None:
        """Brokers that isolation policies leave to a namespace; None: every broker."""

    def anti_affinity(self, namespace: str) -> AntiAffinityGroup | Unknown | None:
        """The anti-affinity group of a namespace; None: it is in none."""

    def load_manager(self) -> LoadManager | Unknown:
        """The brokers' own load manager, and whether it sheds."""

    def usages(self) -> tuple[BrokerUsage, ...] | Unknown:
        """Usage of every active broker, as its shedding compares it; asked only where it sheds."""

    def other_clusters(self, namespace: str) -> tuple[str, ...] | Unknown:
        """Clusters besides this one that serve a namespace, whose policies are common to all of them."""

    # -- what Steward did before

    def unproved_batch(self) -> str | None:
        """Another batch that changed the cluster since `seen_at` and was not proved, in words; None: there is none."""

    def changes_in_the_last_hour(self) -> int:
        """Calls that Steward made in this cluster."""

    def moved_at(self, change: BundleChange) -> datetime | None:
        """Time of Steward's last move of the bundle; None: not as far back as the cooldown looks."""

    def circling(self, namespace: str) -> tuple[str, ...]:
        """Bundles of a namespace (``range``) that Steward moved away and back within the policy's time."""

    # -- a bundle

    def has_bundle(self, change: BundleChange) -> bool:
        """True if the namespace still has a bundle of exactly these boundaries."""

    def owner(self, change: BundleChange) -> str | Unknown | None:
        """Owner of the bundle, ``host:webport``; None: nobody; `Unknown`: it may be on its way from one to another."""

    def clients(self, change: BundleChange) -> int:
        """Producers and consumers that have to reconnect; 0 where nobody owns the bundle."""

    def throughput(self, change: BundleChange) -> float | Unknown:
        """Bytes a second in and out of the bundle; asked only where the load manager sheds."""

    def move_risks(self, change: BundleChange) -> MoveRisks:
        """Risks of the change beyond reconnecting clients."""

    # -- the transaction coordinators

    def raised_at(self, change: RaiseCoordinators) -> datetime | None:
        """Time of Steward's last raise of their number; None: not as far back as their rest looks."""

    def restless_coordinators(self) -> tuple[str, ...]:
        """Coordinators that no broker serves, or that have not recovered, each with what is wrong, in their order."""

    # -- a setting

    def setting(self, change: ChangeSetting) -> Setting | None:
        """Its value where the change would set it; None: not set there."""

    def inherited(self, change: ChangeSetting) -> Setting | None:
        """The value that applies where it is not set there; None: none does."""

    def largest_backlog(self, change: ChangeSetting) -> int | Unknown:
        """Bytes of the largest backlog of a topic that the setting is for, by statistics up to a minute old."""

    def eviction_loss(self, change: ChangeSetting) -> Loss | Unknown:
        """Loss at once by a size quota that evicts."""

    def backlog_ages(self, change: ChangeSetting) -> BacklogAges | Unknown:
        """Ages of the backlogs that an age quota is for."""

    def retained_seconds(self, change: ChangeSetting) -> int | None:
        """Retention there in seconds; None: without limit in time, or not at all."""

    def delayed_messages(self, change: ChangeSetting) -> int | Unknown:
        """Of all subscriptions of the namespace, as brokers' metrics tell."""

    def quotas_are_checked(self) -> bool | Unknown:
        """True if brokers check backlog quotas at all (`backlogQuotaCheckEnabled`)."""

    def clock_difference(self) -> int | Unknown:
        """Largest difference between brokers' clocks, in milliseconds, to a second."""

    # -- a subscription

    def subscription(self, change: DeleteSubscription) -> SubscriptionState | Unknown | None:
        """Its state; None: the topic has none of this name."""

    def consumers_beside(self, change: DeleteSubscription) -> int | Unknown:
        """Consumers of the subscription of the same name on the topic's other partitions."""
