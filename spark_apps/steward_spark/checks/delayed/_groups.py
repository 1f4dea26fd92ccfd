"""Brokers as isolation policies divide them, and what each group would carry if it lost one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark programmer reads

if TYPE_CHECKING:
    from steward_spark.frames import Frames


@dataclass(frozen=True)
class Broker:
    """A broker that was read."""

    name: str
    topics: int
    cpu_percent: float | None

    @property
    def host(self) -> str:
        """Its host: brokers on the same one report the same CPU."""
        return self.name.rpartition(":")[0]


@dataclass(frozen=True)
class Group:
    """The brokers that some namespaces may be on.

    Attributes:
        subject: What a finding is about: the cluster, or the first of the namespaces.
        isolated: False for the whole cluster.
        namespaces: How many namespaces may be on these brokers only; 0 for the whole cluster.
        brokers: Those that were read, by name.
    """

    subject: str
    isolated: bool
    namespaces: int
    brokers: tuple[Broker, ...]

    @property
    def words(self) -> str:
        """The group as the beginning of a sentence."""
        if not self.isolated:
            return "Everything"
        others = f" and {self.namespaces - 1:,} more namespaces with the same brokers" if self.namespaces > 1 else ""
        return f"{self.subject}{others}"

    @property
    def topics(self) -> int:
        """Topics that are loaded on these brokers."""
        return sum(broker.topics for broker in self.brokers)

    @property
    def topics_after_loss(self) -> int:
        """Topics for each broker if there were one fewer."""
        return self.topics // (len(self.brokers) - 1)

    @property
    def known_cpus(self) -> int:
        """Hosts that told their CPU."""
        return len(self._cpu_by_host())

    @property
    def cpu_percent(self) -> int:
        """Mean use of the hosts' CPUs."""
        by_host = self._cpu_by_host()
        return int(sum(by_host.values()) / len(by_host))

    @property
    def cpu_percent_after_loss(self) -> int | None:
        """Mean use if there were one host fewer; None where all brokers share one, or not all have told."""
        by_host = self._cpu_by_host()
        if len(by_host) < 2 or any(broker.cpu_percent is None for broker in self.brokers):  # noqa: PLR2004 - one lost, one left
            return None
        return int(sum(by_host.values()) / (len(by_host) - 1))

    def _cpu_by_host(self) -> dict[str, float]:
        by_host: dict[str, float] = {}
        for broker in self.brokers:
            if broker.cpu_percent is not None:
                by_host[broker.host] = max(by_host.get(broker.host, 0.0), broker.cpu_percent)
        return by_host


def groups(frames: Frames) -> tuple[Group, list[Group]]:
    """The whole cluster, and each set of brokers that isolation policies leave to some namespaces."""
    rows = frames.brokers.where("read").select("broker", "topics", "cpu_percent").collect()
    known = {row["broker"]: Broker(row["broker"], row["topics"] or 0, row["cpu_percent"]) for row in rows}
    sets = (
        frames.namespaces.where("allowed_brokers is not null")
        .groupBy(F.array_sort("allowed_brokers").alias("brokers"))
        .agg(F.min("namespace").alias("first"), F.count("*").alias("namespaces"))
        .collect()
    )
    isolated = [
        Group(row["first"], True, row["namespaces"], tuple(known[each] for each in row["brokers"] if each in known))
        for row in sorted(sets, key=lambda row: row["first"])
    ]
    return Group(frames.about.cluster, False, 0, tuple(known[name] for name in sorted(known))), isolated
