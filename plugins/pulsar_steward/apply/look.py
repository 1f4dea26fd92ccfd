"""The live cluster, as it is looked at right before and right after a change. Cannot write."""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING

from pulsar_steward.admin.closing import Closing
from pulsar_steward.admin.isolation import allowed_brokers, isolation_policies
from pulsar_steward.admin.owner import OwnerReader
from pulsar_steward.admin.reader import Reader
from pulsar_steward.admin.statistics import clients_by_bundle, largest_backlog
from pulsar_steward.errors import AdminError, ConfigurationError, NotFound, Refused
from pulsar_steward.guard.view import BundleView, ClusterView, SettingView
from pulsar_steward.model.bundles import TC_TOPIC, BundleRange, position_of, range_holding, ranges_of
from pulsar_steward.model.setting import SettingName
from pulsar_steward.model.step import Change, ChangeSetting, UnloadBundle, present_owner

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from pulsar_steward.admin.settings import AdminSettings
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.model.step import BundleChange
    from pulsar_steward.policy.schema import Policy

STATISTICS_SECONDS = 60
"""How long a broker's statistics are kept: it refreshes them no more often itself."""


class Look(Closing):
    """Reads one cluster while a batch is carried out. Every method raises `AdminError` when it cannot be read."""

    def __init__(self, settings: AdminSettings) -> None:
        self._settings = settings
        self._reader = Reader(settings)
        self._readers: dict[str, Reader] = {}
        self._clients: dict[str, tuple[float, Mapping[str, int]]] = {}

    def close(self) -> None:
        """Closes the connections to all brokers."""
        for reader in (self._reader, *self._readers.values()):
            reader.close()

    @cached_property
    def pulsar_cluster(self) -> str:
        """The cluster's own name."""
        name = self._reader.runtime_configuration().get("clusterName")
        if not name:
            raise ConfigurationError("the broker's configuration has no clusterName: is this a broker's admin URL?")
        return name

    def brokers(self) -> tuple[str, ...]:
        """Brokers that the cluster lists; one that was killed a moment ago is still among them."""
        return self._reader.brokers()

    def owned_by(self, broker: str) -> tuple[str, ...]:
        """Bundles (``tenant/ns/range``) of one broker, asked of itself."""
        return self._at(broker).owned_bundles(self.pulsar_cluster, broker)

    def owner(self, namespace: str, bundle: str, *, likely: str, listed: Collection[str] | None = None) -> str | None:
        """Who owns a bundle: the likely broker is asked first, and all others where it does not.

        Args:
            namespace: ``tenant/namespace``.
            bundle: The range.
            likely: The broker to ask first.
            listed: The cluster's brokers, where the caller knows them already.

        Raises:
            AdminError: If nobody says so and a broker that may own it cannot be read.
        """
        key = f"{namespace}/{bundle}"
        failure: AdminError | None = None
        for broker in sorted(self.brokers() if listed is None else listed, key=lambda name: (name != likely, name)):
            try:
                if key in self.owned_by(broker):
                    return broker
            except AdminError as error:
                failure = error
        if failure is not None:
            raise failure
        return None

    def bundles(self, namespace: str) -> tuple[str, ...] | None:
        """A namespace's bundles in order; None where there is no such namespace."""
        try:
            return tuple(str(bundle) for bundle in ranges_of(self._reader.boundaries(namespace)))
        except NotFound:
            return None

    def own_setting(self, change: ChangeSetting) -> Setting | None:
        """The present value of what a change sets, at the same level; None where it is not set there.

        Raises:
            Refused: If nobody owns the topic's bundle: asking would load it.
        """
        if change.topic is None:
            return self._reader.own_settings(change.namespace).get(change.name)
        # Topic policies are answered by the owner of a partitioned topic's first partition (docs/findings.md).
        first = f"{change.topic}-partition-0" if self._reader.partitions(change.topic) else change.topic
        bundle = range_holding(ranges_of(self._reader.boundaries(change.namespace)), position_of(first))
        owner = self.owner(change.namespace, str(bundle), likely="")
        if owner is None:
            raise Refused(f"nobody owns the bundle of {change.topic}: what is set on it cannot be read without loading")
        with OwnerReader(self._settings, owner) as topics:
            return topics.own_settings(change.topic).get(change.name)

    def topic_in(self, namespace: str, bundle: str) -> str | None:
        """The name of a topic in an owned bundle; None where it holds none, or nobody owns it.

        Topics of Pulsar's own (``__change_events``) come last: brokers read these by themselves.
        """
        names = self._reader.topic_positions(namespace, bundle) or ()
        return min(names, key=lambda name: (name.rpartition("/")[2].startswith("__"), name), default=None)

    def positions(self, namespace: str, bundle: str) -> tuple[int, ...]:
        """The hash positions of the topics in an owned bundle, rising; empty where nobody owns it."""
        return tuple(sorted((self._reader.topic_positions(namespace, bundle) or {}).values()))

    def coordinators(self) -> int:
        """How many transaction coordinators the cluster has; 0 where transactions were never set up."""
        return self._reader.partitions(TC_TOPIC)

    def clients(self, broker: str, namespace: str, bundle: str) -> int:
        """Producers and consumers connected through a bundle, by its owner's statistics (up to a minute old).

        Right after a split these still know the whole only: each half then counts for all of it, rather than for none.
        """
        known = self._clients_of(broker)
        exact = known.get(f"{namespace}/{bundle}")
        if exact is not None:
            return exact
        wanted = BundleRange.parse(bundle)
        names = ((name.rpartition("/"), count) for name, count in known.items())
        same = ((BundleRange.parse(parts[2]), count) for parts, count in names if parts[0] == namespace)
        return sum(count for other, count in same if other.lower < wanted.upper and wanted.lower < other.upper)

    def _clients_of(self, broker: str) -> Mapping[str, int]:
        read_at, known = self._clients.get(broker, (float("-inf"), {}))
        if time.monotonic() - read_at > STATISTICS_SECONDS:
            known = clients_by_bundle(self._at(broker).topic_statistics(), broker)
            self._clients[broker] = time.monotonic(), known
        return known

    def view(self, change: Change, policy: Policy, now: datetime, moved_at: datetime | None) -> ClusterView:
        """What the guards look at before this change."""
        listed = frozenset(self.brokers())
        policies = isolation_policies(self._reader.isolation_policies(self.pulsar_cluster))
        allowed = allowed_brokers(policies, change.namespace, listed)
        return ClusterView(
            now=now,
            brokers=self._answering(listed, change),
            allowed=None if allowed is None else frozenset(allowed),
            bundle=None if isinstance(change, ChangeSetting) else self._bundle(change, listed, moved_at),
            setting=self._setting(change, listed) if isinstance(change, ChangeSetting) else None,
            policy=policy,
        )

    def _setting(self, change: ChangeSetting, listed: Collection[str]) -> SettingView:
        """The setting; for a size quota also what it would bound, asked of the brokers that own the namespace."""
        if change.name is not SettingName.SIZE_QUOTA or change.after is None:
            return SettingView(now=self.own_setting(change))
        owners = [broker for broker in sorted(listed) if self._owns_some(broker, change.namespace)]
        largest = (largest_backlog(self._at(each).topic_statistics(), change.namespace, each) for each in owners)
        return SettingView(now=self.own_setting(change), largest_backlog_bytes=max(largest, default=0))

    def _owns_some(self, broker: str, namespace: str) -> bool:
        return any(bundle.startswith(f"{namespace}/0x") for bundle in self.owned_by(broker))

    def _bundle(self, change: BundleChange, listed: Collection[str], moved_at: datetime | None) -> BundleView:
        owner = self.owner(change.namespace, change.bundle, likely=present_owner(change), listed=listed)
        return BundleView(
            exists=change.bundle in (self.bundles(change.namespace) or ()),
            owner=owner,
            clients=self.clients(owner, change.namespace, change.bundle) if owner else 0,
            moved_at=moved_at,
        )

    def _answering(self, listed: frozenset[str], change: Change) -> frozenset[str]:
        if isinstance(change, UnloadBundle) and change.target in listed:
            try:
                self.owned_by(change.target)
            except AdminError:
                return listed - {change.target}
        return listed

    def _at(self, broker: str) -> Reader:
        if broker not in self._readers:
            self._readers[broker] = self._reader.at(broker)
        return self._readers[broker]
