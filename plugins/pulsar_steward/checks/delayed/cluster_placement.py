"""Capacity of the remaining brokers after the loss of one, in the cluster and in each isolation group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.checks.delayed.waiting import NOTHING_LOADED, all_on_one_host, brokers_by_host, host_of
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.checks.check import CheckContext, Queried, Row


class ClusterPlacementPolicy(Section):
    """Thresholds for the load that the remaining brokers would carry after one is lost."""

    warning_cpu_percent_after_loss: int = number(
        85, "mean of the rest; `loadBalancerBrokerOverloadedThresholdPercentage` by default"
    )
    critical_cpu_percent_after_loss: int = number(120, "a fifth more than there is")
    minimum_topics_per_namespace: int = number(
        1_000, "namespaces with fewer topics need no more bundles than they have"
    )


@dataclass(frozen=True)
class BrokerGroup:
    """The brokers that some namespaces are restricted to.

    Attributes:
        subject: Subject of a finding: the cluster, or the first of the namespaces.
        isolated: False for the whole cluster.
        namespaces: Number of namespaces that are restricted to these brokers; 0 for the whole cluster.
        brokers: Brokers that were read, by name: `broker`, `topics`, `cpu_percent`.
        unread: Names of the brokers that did not respond.
    """

    subject: str
    isolated: bool
    namespaces: int
    brokers: tuple[Row, ...]
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
        return sum(broker["topics"] for broker in self.brokers)

    @property
    def hosts(self) -> Mapping[str, Sequence[str]]:
        """Brokers of each host."""
        return brokers_by_host(broker["broker"] for broker in self.brokers)

    @property
    def fullest_host(self) -> tuple[str, int]:
        """The host with most of the brokers, and their number."""
        counts = {host: len(names) for host, names in self.hosts.items()}
        host = min(counts, key=lambda each: (-counts[each], each))
        return host, counts[host]

    def topics_after_loss(self, brokers: int = 1) -> int:
        """Topics per broker if `brokers` brokers fewer were left."""
        return self.topics // (len(self.brokers) - brokers)

    @cached_property
    def cpus(self) -> Mapping[str, float]:
        """CPU usage by host, where it is known: the highest that one of its brokers tells."""
        by_host: dict[str, float] = {}
        for broker in self.brokers:
            if broker["cpu_percent"] is not None:
                host = host_of(broker["broker"])
                by_host[host] = max(by_host.get(host, 0.0), broker["cpu_percent"])
        return by_host

    @property
    def cpu_percent_after_loss(self) -> int | None:
        """Mean CPU usage with one host fewer; None if all brokers share one, or a usage is not known."""
        if len(self.cpus) <= 1 or any(broker["cpu_percent"] is None for broker in self.brokers):  # one lost, one left
            return None
        return int(sum(self.cpus.values()) / (len(self.cpus) - 1))

    def headroom(self, ceiling: int) -> str:
        """Room of the fullest broker, and the load of each broker after a loss."""
        fullest = min(self.brokers, key=lambda broker: (-broker["topics"], broker["broker"]))
        room = max(ceiling - fullest["topics"], 0)
        words = (
            f"The fullest of {counted(len(self.brokers), 'broker')}, {fullest['broker']}, has room for"
            f" {counted(room, 'topic')}"
        )
        if fullest["cpu_percent"] is not None:
            words += f" and {100 - fullest['cpu_percent']:,.0f} % of its CPU"
        if len(self.brokers) > 1:
            words += f"; after the loss of one, each would have {counted(self.topics_after_loss(), 'topic')} on average"
        return words + "." + all_on_one_host([broker["broker"] for broker in self.brokers])

    def finding(self, hosts: int, ceiling: int, policy: ClusterPlacementPolicy) -> Finding | None:
        """At most one finding per group: no broker left, none to take over, or too little room to take over."""
        if len(self.brokers) <= 1:
            return self._few_left()
        if self.isolated and hosts > 1 and len(self.hosts) == 1:
            words = (
                f"{self.words} may be on brokers of one host only: {named([each['broker'] for each in self.brokers])}"
            )
            return self._found(Severity.WARNING, f"{words}; its loss stops them until it is back.")
        return self._after_loss(ceiling, policy)

    def _few_left(self) -> Finding | None:
        """Finding for a group with one responding broker, or none."""
        names, unread = [broker["broker"] for broker in self.brokers], named(self.unread)
        if not self.isolated:
            # One of several listed brokers responded: nothing more is known.
            words = f"{names[0]} is the only broker: its loss stops everything."
            return None if self.unread else self._found(Severity.INFO, words)
        if not names and not self.unread:
            return self._found(Severity.CRITICAL, f"{self.words} may be on no broker that is there.")
        if not names:
            words = f"{self.words} may be on no other brokers than {unread}, and none of them answered."
        elif self.unread:
            words = f"Of the brokers that {self.words} may be on, only {names[0]} answered, and not {unread}."
        else:
            words = f"{self.words} may be on {names[0]} only: its loss stops them until it is back."
        return self._found(Severity.WARNING, words)

    def _after_loss(self, ceiling: int, policy: ClusterPlacementPolicy) -> Finding | None:
        """Finding for the loss of one broker, or of the host with most brokers, if others remain."""
        host, brokers = self.fullest_host
        lost = brokers if len(self.hosts) > 1 else 1
        topics, cpu = self.topics_after_loss(lost), self.cpu_percent_after_loss
        troubles = []
        if topics >= ceiling:
            troubles.append(f"{counted(topics, 'topic')} on average (ceiling {ceiling:,})")
        if cpu is not None and cpu >= policy.warning_cpu_percent_after_loss:
            mean = int(sum(self.cpus.values()) / len(self.cpus))
            troubles.append(f"{cpu:,} % CPU on average, from {mean:,} % on {counted(len(self.cpus), 'host')}")
        if not troubles:
            return None
        # A single broker is lost at every restart; a host with several brokers is not.
        severe = self.topics_after_loss() >= ceiling or (
            cpu is not None and cpu >= policy.critical_cpu_percent_after_loss
        )
        who = f"host {host} with {lost:,}" if lost > 1 else "one"
        words = f"{self.words} would not fit after the loss of {who} of {counted(len(self.brokers), 'broker')}"
        severity = Severity.CRITICAL if severe else Severity.WARNING
        return self._found(severity, f"{words}: {' and '.join(troubles)}.", brokers_lost=lost)

    def _found(self, severity: Severity, words: str, brokers_lost: int = 1) -> Finding:
        figures = {"brokers": len(self.brokers), "namespaces": self.namespaces, "topics": self.topics}
        if len(self.brokers) > brokers_lost:
            figures |= {
                "brokers_lost": brokers_lost,
                "topics_per_broker_after_loss": self.topics_after_loss(brokers_lost),
            }
            if self.cpu_percent_after_loss is not None:
                figures["cpu_percent_after_loss"] = self.cpu_percent_after_loss
        return CHECK.finding(severity=severity, subject=self.subject, evidence=words, figures=figures)


# Each set of brokers that isolation policies allow for some namespaces.
ISOLATED = """
select list_sort(allowed_brokers) as brokers, min(namespace) as first, count(*) as namespaces
from namespaces where allowed_brokers is not null group by list_sort(allowed_brokers)
"""

OUTSIDE = """
with isolation as (select namespace, allowed_brokers from namespaces where allowed_brokers is not null)
select namespace, allowed_brokers, count(*) as outside, min({'bundle': bundle, 'owner': owner}) as lowest
from bundles join isolation using (namespace)
where owner is not null and not list_contains(allowed_brokers, owner)
group by namespace, allowed_brokers
"""

# Namespaces with many topics, and fewer bundles than allowed brokers.
CRAMPED = """
with sums as (select namespace, sum(topics)::bigint as topics from bundles group by namespace),
rooms as (
    select namespace, bundles, case when allowed_brokers is null
        then (select count(*) from brokers where read) else len(allowed_brokers) end as room
    from namespaces)
select namespace, topics, bundles, room from rooms join sums using (namespace)
where topics >= $minimum_topics_per_namespace and bundles < room and not is_heartbeat(namespace)
"""


def judge(queried: Queried, context: CheckContext[ClusterPlacementPolicy]) -> Judgement:
    """Checks that the remaining brokers could carry all topics and the CPU load, and that placement is allowed."""
    limits, ceiling = context.limits, context.policy.partition_ceiling.critical_topics_per_broker
    whole, isolated = _groups(queried, context.about.cluster)
    if not whole.brokers:
        return Judgement(cannot_tell="No broker was read.")
    hosts = len(whole.hosts)
    of_groups = [each for group in (whole, *isolated) if (each := group.finding(hosts, ceiling, limits)) is not None]
    outside, cramped = queried["outside"], queried["cramped"]
    found = [*of_groups, *map(_outside, outside.rows), *map(_cramped, cramped.rows)]
    quiet = whole.headroom(ceiling)
    return Judgement(
        findings=tuple(found),
        more=outside.more + cramped.more,
        graded=outside.more_by(Severity.WARNING) + cramped.more_by(Severity.INFO),
        quiet=quiet,
        cannot_tell=_unknown(whole, quiet),
    )


def _unknown(whole: BrokerGroup, quiet: str) -> str | None:
    """Reason why the absence of findings proves nothing."""
    if len(whole.brokers) == 1 and whole.unread:
        return f"Only {whole.brokers[0]['broker']} was read; what else there is did not answer: {named(whole.unread)}."
    if not whole.topics:
        return NOTHING_LOADED
    silent = [broker["broker"] for broker in whole.brokers if broker["cpu_percent"] is None]
    return f"{quiet} But brokers did not tell their CPU: {named(silent)}." if silent else None


def _groups(queried: Queried, cluster: str) -> tuple[BrokerGroup, list[BrokerGroup]]:
    """The whole cluster, and each set of brokers that isolation policies allow for some namespaces."""
    rows = queried["known"].rows
    known = {row["broker"]: row for row in rows if row["read"]}

    def group(subject: str, names: Sequence[str], namespaces: int, *, isolated: bool) -> BrokerGroup:
        read = tuple(known[name] for name in names if name in known)
        return BrokerGroup(subject, isolated, namespaces, read, tuple(name for name in names if name not in known))

    isolated = [
        group(row["first"], row["brokers"], row["namespaces"], isolated=True)
        for row in sorted(queried["isolated"].rows, key=lambda row: str(row["first"]))
    ]
    return group(cluster, sorted(row["broker"] for row in rows), 0, isolated=False), isolated


def _outside(row: Row) -> Finding:
    allowed = sorted(row["allowed_brokers"])
    return CHECK.finding(
        severity=Severity.WARNING,
        subject=row["namespace"],
        evidence=(
            f"{counted(row['outside'], 'bundle is', 'bundles are')} owned by brokers that isolation policies do not"
            f" leave to the namespace, {row['lowest']['bundle']} by {row['lowest']['owner']} among them; it may be on"
            f" {named(allowed) or 'none'}."
        ),
        figures={"bundles_outside": row["outside"], "brokers_allowed": len(allowed)},
    )


def _cramped(row: Row) -> Finding:
    return CHECK.finding(
        severity=Severity.INFO,
        subject=row["namespace"],
        evidence=(
            f"{counted(row['topics'], 'topic')} in {counted(row['bundles'], 'bundle')} can be on"
            f" {counted(row['bundles'], 'broker')} at most, though {row['room']:,} may have them."
        ),
        figures={"brokers_allowed": row["room"], "bundles": row["bundles"], "topics": row["topics"]},
    )


CHECK = Check(
    check_id="cluster-placement",
    harm=Harm.AT_RESTART,
    order=80,
    title="The cluster, or a group of its brokers, could not carry the loss of one, or holds what it should not",
    advice=(
        "Add brokers to the cluster or to the isolation group that would not fit.",
        "Give each isolation group two brokers at least, or a secondary group to fail over to.",
        "Unload bundles that are outside their group, one by one: setting the policy anew unloads them all at once.",
        "Split the bundles of namespaces that have fewer bundles than brokers, where they carry much.",
    ),
    source="docs/checks/cluster-placement.md; docs/knowledge.md E",
    policy=ClusterPlacementPolicy,
    cluster={
        "known": Query("select broker, read, coalesce(topics, 0) as topics, cpu_percent from brokers"),
        "isolated": Query(ISOLATED),
        "outside": Query(OUTSIDE, worst_first="outside desc, namespace"),
        "cramped": Query(CRAMPED, worst_first="topics desc, namespace"),
    },
    judge=judge,
)
