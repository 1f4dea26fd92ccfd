"""Facts of the whole cluster, shared by the looks before each step of a batch, each with its greatest age.

For N changes on B brokers, these facts cost at most B + 3N calls, and one more call per broker for its version and
clock. Each change needs further calls of its own (owner and boundaries of its bundle, statistics, metrics, positions,
its setting). All brokers are read once. Before each change, three facts are read anew: the cluster's identity, its list
of brokers, and whether the target broker responds.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from pulsar_steward.apply.kept import KeptFacts
from pulsar_steward.errors import AdminError
from pulsar_steward.facts.isolation import Isolation
from pulsar_steward.facts.load_manager import USAGES_UNKNOWN, AntiAffinityGroup
from pulsar_steward.facts.protocol import Bookies, versions_in
from pulsar_steward.facts.unknown import CLOCKS_UNKNOWN, Unknown
from pulsar_steward.model.bundles import is_heartbeat
from pulsar_steward.model.isolation import AllowedBrokers
from pulsar_steward.model.measures import BOOKIE_STATUS
from pulsar_steward.model.units import counted
from pulsar_steward.pulsar.reader import groups_in

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.facts.load_manager import BrokerUsage, LoadManager
    from pulsar_steward.model.cluster import ClusterIdentity
    from pulsar_steward.model.isolation import IsolationPolicy
    from pulsar_steward.policy.schema import Policy

T = TypeVar("T")


def _host(bookie: str) -> str:
    """Host of a bookie by its id, ``host:port`` by default."""
    return bookie.rpartition(":")[0].strip("[]").lower()


ISOLATION_GROUPS, SECOND_GROUPS = "bookkeeperClientIsolationGroups", "bookkeeperClientSecondaryIsolationGroups"
STRICT_AFFINITY = "strictBookieAffinityEnabled"
"""Brokers' settings of the bookies for ledgers of namespaces without an affinity group (``broker.conf``)."""

MAX_NAMESPACES_ASKED = 2_000
"""Number of namespaces whose anti-affinity group is read, if the moved bundle's namespace is in a group."""


class WholeLook:
    """Facts of one whole cluster, for the steps of one batch; every method raises `AdminError` if it cannot be read.

    Args:
        reader: Reads the cluster.
        policy: Names the bookies, and the limit of topics to read one by one.
        seconds: A monotonic clock.
    """

    def __init__(self, reader: LiveReader, policy: Policy, seconds: Callable[[], float] = time.monotonic) -> None:
        self.reader = reader
        self.policy = policy
        self._kept = KeptFacts(seconds)
        self._whole_of: tuple[ClusterIdentity, frozenset[str]] | None = None

    def begin(self) -> None:
        """Begins another step: facts that are too old for it are dropped."""
        self._kept.begin()

    def called(self) -> None:
        """Drops facts that a call may have made stale."""
        self._kept.called()
        self.reader.called()

    def identity(self) -> ClusterIdentity:
        """Pulsar cluster that a broker reports."""
        return self._listed()[0]

    def listed(self) -> frozenset[str]:
        """Brokers that the cluster lists; a broker that was just killed is still listed."""
        return self._listed()[1]

    def _listed(self) -> tuple[ClusterIdentity, frozenset[str]]:
        def read() -> tuple[ClusterIdentity, frozenset[str]]:
            listed = frozenset(self.reader.brokers())
            return self.reader.identity(), listed

        found = self._kept.keep("listed", "brokers", read)
        if found != self._whole_of:
            self._whole_of = found
            self._kept.drop("whole")
        return found

    def _owned(self) -> dict[str, tuple[str, ...] | AdminError]:
        """Bundles of each listed broker, or the error of reading them."""
        listed = self.listed()

        def read() -> dict[str, tuple[str, ...] | AdminError]:
            self._kept.drop("whole")
            for broker in listed:
                self._kept.keep("listed", ("responds", broker), bool)
            return self.reader.owned_by_each(sorted(listed))

        return self._kept.keep("whole", "owned", read)

    def silent_brokers(self) -> tuple[str, ...]:
        """Listed brokers that did not respond, sorted."""
        return tuple(sorted(broker for broker, owned in self._owned().items() if isinstance(owned, AdminError)))

    def active(self) -> list[str]:
        """Listed brokers that responded, in order."""
        return sorted(self.listed().difference(self.silent_brokers()))

    def is_active(self, broker: str) -> bool:
        """True if the cluster lists the broker, and the broker itself responds in this look."""
        if broker not in self.active():
            return False
        self._kept.keep(
            "listed", ("responds", broker), lambda: self._owned().update(self.reader.owned_by_each([broker]))
        )
        return broker not in self.silent_brokers()

    def owned_by(self, broker: str) -> tuple[str, ...]:
        """Bundles (``tenant/ns/range``) of one broker, from the read of all brokers.

        The owner that permits a call is read anew, from the broker itself (`LiveReader.owned_by`).
        """
        owned = self._owned()[broker]
        if isinstance(owned, AdminError):
            raise owned
        return owned

    def of_whole(self, fact: Hashable, read: Callable[[], T]) -> T:
        """A fact that is as old as the read of all brokers at most."""
        self._owned()
        return self._kept.keep("whole", fact, read)

    def versions(self) -> tuple[str, ...] | Unknown:
        """Versions of all brokers that respond, as recent as the other facts of the whole cluster."""
        return versions_in({broker: version for broker, (version, _) in self._versions_and_clocks().items()})

    def clock_difference(self) -> int | Unknown:
        """Difference between the clocks furthest ahead and furthest behind, to about 1 s."""
        ahead = [each for _, each in self._versions_and_clocks().values()]
        known = [each for each in ahead if each is not None]
        return max(known) - min(known) if known and len(known) == len(ahead) else CLOCKS_UNKNOWN

    def _versions_and_clocks(self) -> dict[str, tuple[str, int | None]]:
        return self.of_whole("versions", lambda: self.reader.versions_and_clocks(self.active()))

    def read_only_bookies(self) -> tuple[str, ...]:
        """Bookies in the policy whose own metrics report that they take no writes."""
        return tuple(url for url, told in self._bookie_states().items() if min(told, default=1) <= 0)

    def configurations(self) -> tuple[dict[str, str], ...]:
        """Runtime configuration of every broker that responds."""
        return self.of_whole("configurations", lambda: self.reader.configurations(self.active()))

    def bookies(self, namespace: str) -> Bookies | Unknown:
        """Bookies that brokers list for a namespace's ledgers, and what those in the policy report.

        Of several bookies on one host, a metrics URL does not tell which one it is: it counts for a group only if all
        of its host are in it.
        """
        groups = self.of_whole(("bookie groups", namespace), lambda: self.reader.bookie_groups(namespace))
        whose = f"of {namespace}'s affinity group" if groups else "of the brokers' isolation groups"
        usual = groups or self._usual_groups(namespace)
        if isinstance(usual, Unknown):
            return usual
        there = listed = self.of_whole("listed bookies", self.reader.bookies)
        states = self._bookie_states()
        if usual:
            there = listed & self.of_whole(("bookies", usual), lambda: self.reader.bookies_in(usual))
            hosts = {_host(each) for each in there} - {_host(each) for each in listed - there}
            states = {url: told for url, told in states.items() if urlsplit(url).hostname in hosts}
        takes = [min(told, default=0) > 0 for told in states.values()]
        read_only = sum(min(told, default=1) <= 0 for told in states.values())
        of_groups = f"{whose} ({', '.join(usual)})" if usual else ""
        return Bookies(groups=of_groups, listed=len(there), writable=sum(takes), read_only=read_only)

    def _usual_groups(self, namespace: str) -> tuple[str, ...] | Unknown:
        """Groups of bookies for the ledgers of namespaces without one of their own; empty: any bookie.

        Such ledgers are made by a broker's own client, unless affinity is strict: what that leaves to them differs by
        version (apache/pulsar, `BrokerService`, `BookKeeperClientFactoryImpl`).
        """
        every = self.configurations()
        if any(each.get(STRICT_AFFINITY) == "true" for each in every):
            why = f"it has no affinity group, and brokers keep to these strictly ({STRICT_AFFINITY})"
            return Unknown(f"which bookies may have ledgers of {namespace} is not known: {why}")
        found = {groups_in(each.get(ISOLATION_GROUPS), each.get(SECOND_GROUPS)) for each in every}
        if len(found) != 1:
            why = f"it has no affinity group, and the brokers' {ISOLATION_GROUPS} differ"
            return Unknown(f"which bookies may have ledgers of {namespace} is not known: {why}")
        return found.pop()

    def _bookie_states(self) -> dict[str, list[float]]:
        """States (1: takes writes) of the bookies in the policy, by URL."""

        def read() -> dict[str, list[float]]:
            named = (each.partition("=") for each in self.policy.collect.metrics_urls)
            urls = [url for kind, _, url in named if kind == "bookie"]
            return {url: [each.value for each in self.reader.bookie_samples(url, BOOKIE_STATUS)] for url in urls}

        return self.of_whole("bookies", read)

    def allowed_brokers(self, namespace: str) -> frozenset[str] | None:
        """Listed brokers that isolation policies leave to a namespace; None: every broker."""
        return AllowedBrokers(self.policies(), self.listed()).of(namespace)

    def policies(self) -> dict[str, IsolationPolicy]:
        """Isolation policies that a step has to respect, by name."""
        return self.of_whole("isolation", self.reader.isolation_policies)

    def isolation(self) -> Isolation:
        """The isolation policies, all namespaces, and the load of every broker that responds."""
        return Isolation(
            policies=self.of_whole("isolation", self.reader.isolation_policies),
            loads=self.of_whole("loads", lambda: self.reader.loads(self.active())),
            namespaces=self.of_whole("namespaces", self.reader.namespaces),
        )

    def anti_affinity(self, namespace: str) -> AntiAffinityGroup | Unknown | None:
        """The anti-affinity group of a namespace, with its other namespaces on each broker; None: it has no group.

        If there is a group, the group of every namespace with a bundle is read: brokers list a group's namespaces for
        one tenant only, and sometimes responded to that with 500 (docs/pulsar-behaviour.md).
        """
        group = self._group(namespace)
        if group is None:
            return None
        placed = {broker: {bundle.rpartition("/")[0] for bundle in self.owned_by(broker)} for broker in self.active()}
        everyone = set[str]().union(*placed.values()) - {namespace}
        others = {each for each in everyone if not is_heartbeat(each)}
        if len(others) > MAX_NAMESPACES_ASKED:
            return Unknown(
                f"{namespace} is in the anti-affinity group {group}, and {counted(len(others), 'namespace')} may be in"
                f" it, too, more than the {MAX_NAMESPACES_ASKED:,} that are asked"
            )
        same = {each for each in others if (self._group(each) or "").lower() == group.lower()}
        return AntiAffinityGroup(group=group, others={broker: len(same & there) for broker, there in placed.items()})

    def _group(self, namespace: str) -> str | None:
        return self.of_whole(("group", namespace), lambda: self.reader.anti_affinity_group(namespace))

    def load_manager(self) -> LoadManager | Unknown:
        """Load manager, from the configuration of the broker that reported the cluster's identity."""
        self._listed()
        return self.reader.load_manager()

    def usages(self) -> tuple[BrokerUsage, ...] | Unknown:
        """Usage of every broker that responds, as the load manager's shedding compares it."""
        manager = self.load_manager()
        if isinstance(manager, Unknown):
            return manager

        def read() -> tuple[BrokerUsage, ...] | Unknown:
            found = [self.reader.usage(broker, manager) for broker in self.active()]
            known = tuple(each for each in found if each is not None)
            return known if known and len(known) == len(found) else USAGES_UNKNOWN

        return self.of_whole("usages", read)
