"""Facts of the whole cluster, shared by the checks before each step of a batch.

For N changes on B brokers, these facts cost at most B + 3N calls, and one more call per broker for its version and
clock. Each change needs further calls of its own (owner and boundaries of its bundle, statistics, metrics, positions,
its setting). All brokers are read once. Before each change, three facts are read anew: the cluster's identity, its list
of brokers, and whether the target broker responds.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.admin.isolation import IsolationPolicy, allowed_brokers
from pulsar_steward.errors import AdminError
from pulsar_steward.facts.load_manager import USAGES_UNKNOWN, AntiAffinityGroup, BrokerUsage, LoadManager
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.bundles import HEARTBEAT
from pulsar_steward.model.cluster import ClusterIdentity
from pulsar_steward.model.series import BOOKIE_STATUS
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.policy.schema import Policy

WHOLE_LOOK_SECONDS = 60.0
"""Time for which the responses of all brokers stay valid, while the list of brokers is the same.

It is as long as brokers keep their own statistics, the source for clients and backlogs. A broker that dies leaves the
list within 30 s (its metadata session), which is seen before the next change.
"""

INSTANT_SECONDS = 5.0
"""Time within which a second look without a call in between reuses the first: a look at one bundle may take as long."""

MAX_NAMESPACES_ASKED = 2_000
"""Number of namespaces whose anti-affinity group is read, if the moved bundle's namespace is in a group."""


class _ListedCluster(msgspec.Struct, frozen=True):
    """Identity of the cluster that responded, and its list of brokers."""

    at: float
    identity: ClusterIdentity
    listed: frozenset[str]


class _BrokerAnswers(msgspec.Struct, kw_only=True):
    """Responses of all listed brokers, and all facts of the whole cluster that were read since.

    Attributes:
        at: Time of the read.
        cluster: The cluster and its listed brokers.
        owned: Bundles of each broker, or the error of reading them.
        bundles: Bundles of namespaces, by namespace.
        isolation: The cluster's isolation policies; None: not read yet.
        groups: Anti-affinity groups of the namespaces that were read; None: no group.
        usages: Usages that the load manager's shedding compares; None: not read yet.
        read_only: Bookies that take no writes; None: not read yet.
        told: Version of each responding broker, and the milliseconds that its clock is ahead; None: not read yet.
    """

    at: float
    cluster: _ListedCluster
    owned: dict[str, tuple[str, ...] | AdminError]
    bundles: dict[str, tuple[str, ...] | None] = {}
    isolation: tuple[IsolationPolicy, ...] | None = None
    groups: dict[str, str | None] = {}
    usages: tuple[BrokerUsage, ...] | Unknown | None = None
    read_only: tuple[str, ...] | None = None
    told: dict[str, tuple[str, int | None]] | None = None


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
        self._seconds = seconds
        self._cluster: _ListedCluster | None = None
        self._answers: _BrokerAnswers | None = None
        self._confirmed: set[str] = set()

    def begin(self) -> None:
        """Begins another step: identity and list of brokers are read anew, unless they are younger than 5 s."""
        if self._cluster is not None and self._seconds() - self._cluster.at > INSTANT_SECONDS:
            self._look_again()

    def called(self) -> None:
        """Drops facts that a call may have made stale."""
        self._look_again()
        self.reader.called()

    def _look_again(self) -> None:
        self._cluster = None
        self._confirmed.clear()

    def identity(self) -> ClusterIdentity:
        """The Pulsar cluster that responds."""
        return self._now().identity

    def listed(self) -> frozenset[str]:
        """Brokers that the cluster lists; a broker that was just killed is still listed."""
        return self._now().listed

    def silent(self) -> frozenset[str]:
        """Listed brokers that did not respond."""
        return frozenset(broker for broker, owned in self._whole().owned.items() if isinstance(owned, AdminError))

    def active(self) -> list[str]:
        """Listed brokers that responded, in order."""
        return sorted(self.listed() - self.silent())

    def answers(self, broker: str) -> bool:
        """True if a broker is listed and responds in this look."""
        if broker not in self.listed() or broker in self.silent():
            return False
        if broker not in self._confirmed:
            answers = self._whole()
            answers.owned[broker] = self.reader.owned_by_each([broker])[broker]
            self._confirmed.add(broker)
        return broker not in self.silent()

    def owned_by(self, broker: str) -> tuple[str, ...]:
        """Bundles (``tenant/ns/range``) of one broker, from the read of all brokers.

        The owner that permits a call is read anew, from the broker itself (`LiveReader.owned_by`).
        """
        owned = self._whole().owned[broker]
        if isinstance(owned, AdminError):
            raise owned
        return owned

    def bundles(self, namespace: str) -> tuple[str, ...] | None:
        """A namespace's bundles in order, read once; None: there is no such namespace."""
        bundles = self._whole().bundles
        if namespace not in bundles:
            bundles[namespace] = self.reader.bundles(namespace)
        return bundles[namespace]

    def allowed(self, namespace: str) -> frozenset[str] | None:
        """Brokers that isolation policies allow for a namespace; None: every broker."""
        answers = self._whole()
        if answers.isolation is None:
            answers.isolation = self.reader.isolation_policies()
        allowed = allowed_brokers(answers.isolation, namespace, answers.cluster.listed)
        return None if allowed is None else frozenset(allowed)

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
        others = {each for each in everyone if not re.match(HEARTBEAT, each)}
        if len(others) > MAX_NAMESPACES_ASKED:
            return Unknown(
                f"{namespace} is in the anti-affinity group {group}, and {counted(len(others), 'namespace')} may be in"
                f" it, too, more than the {MAX_NAMESPACES_ASKED:,} that are asked"
            )
        same = {each for each in others if (self._group(each) or "").lower() == group.lower()}
        return AntiAffinityGroup(group=group, others={broker: len(same & there) for broker, there in placed.items()})

    def _group(self, namespace: str) -> str | None:
        groups = self._whole().groups
        if namespace not in groups:
            groups[namespace] = self.reader.anti_affinity_group(namespace)
        return groups[namespace]

    def load_manager(self) -> LoadManager | Unknown:
        """The load manager of the broker that reported the cluster's identity."""
        self._now()
        return self.reader.load_manager()

    def usages(self, manager: LoadManager) -> tuple[BrokerUsage, ...] | Unknown:
        """Usage of every responding broker, as the load manager's shedding compares it."""
        answers = self._whole()
        if answers.usages is None:
            found = [self.reader.usage(broker, manager) for broker in self.active()]
            known = tuple(each for each in found if each is not None)
            answers.usages = known if known and len(known) == len(found) else USAGES_UNKNOWN
        return answers.usages

    def read_only_bookies(self) -> tuple[str, ...]:
        """Bookies in the policy that take no writes."""
        answers = self._whole()
        if answers.read_only is None:
            named = (each.partition("=") for each in self.policy.collect.metrics_urls)
            urls = [url for kind, _, url in named if kind == "bookie"]
            answers.read_only = tuple(url for url in urls if self._takes_no_writes(url))
        return answers.read_only

    def clocks(self) -> dict[str, int | None]:
        """Milliseconds that each responding broker's clock is ahead of this machine's; None: not known."""
        return {broker: ahead for broker, (_, ahead) in self._told().items()}

    def versions(self) -> dict[str, str]:
        """Pulsar version of each responding broker."""
        return {broker: version for broker, (version, _) in self._told().items()}

    def _told(self) -> dict[str, tuple[str, int | None]]:
        answers = self._whole()
        if answers.told is None:
            answers.told = self.reader.versions_and_clocks(self.active())
        return answers.told

    def _takes_no_writes(self, url: str) -> bool:
        return any(sample.value <= 0 for sample in self.reader.bookie_samples(url, BOOKIE_STATUS))

    def _now(self) -> _ListedCluster:
        if self._cluster is None or self._seconds() - self._cluster.at > WHOLE_LOOK_SECONDS:
            at = self._seconds()
            listed = frozenset(self.reader.brokers())
            self._cluster = _ListedCluster(at, self.reader.identity(), listed)
        return self._cluster

    def _whole(self) -> _BrokerAnswers:
        """Responses of all brokers; read anew after 60 s, or if the list of brokers or the cluster changed."""
        now, answers = self._now(), self._answers
        known = answers is not None and (answers.cluster.identity, answers.cluster.listed) == (now.identity, now.listed)
        if answers is None or not known or self._seconds() - answers.at > WHOLE_LOOK_SECONDS:
            at = self._seconds()
            answers = _BrokerAnswers(at=at, cluster=now, owned=self.reader.owned_by_each(sorted(now.listed)))
            self._answers, self._confirmed = answers, set(now.listed)
        return answers
