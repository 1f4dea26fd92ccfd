"""Groups of brokers that some namespaces are restricted to, and their capacity after a loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulsar_steward.checks.delayed.hosts import brokers_by_host, host_of
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class ReadBroker:
    """A broker that was read."""

    name: str
    topics: int
    cpu_percent: float | None


@dataclass(frozen=True)
class BrokerGroup:
    """The brokers that some namespaces are restricted to.

    Attributes:
        subject: Subject of a finding: the cluster, or the first of the namespaces.
        isolated: False for the whole cluster.
        namespaces: Number of namespaces that are restricted to these brokers; 0 for the whole cluster.
        brokers: Brokers that were read, by name.
        unread: Names of those that did not respond.
    """

    subject: str
    isolated: bool
    namespaces: int
    brokers: tuple[ReadBroker, ...]
    unread: tuple[str, ...]

    @property
    def words(self) -> str:
        """Name of the group, as the beginning of a sentence."""
        if not self.isolated:
            return "Everything"
        further = counted(self.namespaces - 1, "more namespace")
        others = f" and {further} with the same brokers" if self.namespaces > 1 else ""
        return f"{self.subject}{others}"

    @property
    def topics(self) -> int:
        """Number of topics loaded on these brokers."""
        return sum(broker.topics for broker in self.brokers)

    @property
    def hosts(self) -> Mapping[str, Sequence[str]]:
        """Brokers of each host."""
        return brokers_by_host(broker.name for broker in self.brokers)

    @property
    def fullest_host(self) -> tuple[str, int]:
        """The host with most of the brokers, and their number."""
        counts = {host: len(names) for host, names in self.hosts.items()}
        host = min(counts, key=lambda each: (-counts[each], each))
        return host, counts[host]

    def topics_after_loss(self, brokers: int = 1) -> int:
        """Topics per broker if there were so many fewer."""
        return self.topics // (len(self.brokers) - brokers)

    @property
    def known_cpus(self) -> int:
        """Number of hosts with a known CPU usage."""
        return len(self._cpu_by_host())

    @property
    def cpu_percent(self) -> int:
        """Mean CPU usage of the hosts."""
        by_host = self._cpu_by_host()
        return int(sum(by_host.values()) / len(by_host))

    @property
    def cpu_percent_after_loss(self) -> int | None:
        """Mean CPU usage with one host fewer; None if all brokers share one, or a usage is not known."""
        by_host = self._cpu_by_host()
        if len(by_host) < 2 or any(broker.cpu_percent is None for broker in self.brokers):  # noqa: PLR2004 - one lost, one left
            return None
        return int(sum(by_host.values()) / (len(by_host) - 1))

    def _cpu_by_host(self) -> dict[str, float]:
        by_host: dict[str, float] = {}
        for broker in self.brokers:
            if broker.cpu_percent is not None:
                host = host_of(broker.name)
                by_host[host] = max(by_host.get(host, 0.0), broker.cpu_percent)
        return by_host
