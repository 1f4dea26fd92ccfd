"""Whether the brokers that are left could carry the loss of one, in the cluster and in each isolation group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import MAX_FINDINGS, Check, Judgement, Question
from pulsar_steward.checks.words import named
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answers, CheckContext, Row


class ClusterPlacementPolicy(Section):
    """When the brokers that are left could not carry what one that is lost leaves to them."""

    warning_cpu_percent_after_loss: int = Field(
        85, ge=1, description="mean of the rest; `loadBalancerBrokerOverloadedThresholdPercentage` by default"
    )
    critical_cpu_percent_after_loss: int = Field(120, ge=1, description="a fifth more than there is")
    minimum_topics_per_namespace: int = Field(
        1_000, ge=1, description="namespaces with fewer topics need no more bundles than they have"
    )


# Each set of brokers that isolation policies leave to some namespaces.
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

# Namespaces of many topics with fewer bundles than the brokers that they may be on.
CRAMPED = """
with sums as (select namespace, sum(topics)::bigint as topics from bundles group by namespace),
rooms as (
    select namespace, bundles, case when allowed_brokers is null
        then (select count(*) from brokers where read) else len(allowed_brokers) end as room
    from namespaces)
select namespace, topics, bundles, room from rooms join sums using (namespace)
where topics >= $minimum_topics_per_namespace and bundles < room and not is_heartbeat(namespace)
"""


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


def judge(answers: Answers, context: CheckContext[ClusterPlacementPolicy]) -> Judgement:
    """What is left has to carry all topics, and the work of the CPUs; and everything has to be where it may be."""
    limits, ceiling = context.limits, context.policy.partition_ceiling.critical_topics_per_broker
    whole, isolated = _groups(answers, context.about.cluster)
    if not whole.brokers:
        return Judgement(cannot_tell="No broker was read.")
    of_groups = [finding for group in (whole, *isolated) if (finding := _of_group(group, ceiling, limits)) is not None]
    outside, cramped = answers["outside"], answers["cramped"]
    found = [*of_groups, *map(_outside, outside.rows), *map(_cramped, cramped.rows)]
    found.sort(key=lambda finding: -finding.severity.rank)
    quiet = _headroom(whole, ceiling)
    silent = [broker.name for broker in whole.brokers if broker.cpu_percent is None]
    if not found and silent:
        return Judgement(cannot_tell=f"{quiet} But brokers did not tell their CPU: {named(silent)}.")
    return Judgement(
        findings=tuple(found[:MAX_FINDINGS]),
        more=max(len(found) - MAX_FINDINGS, 0) + outside.more + cramped.more,
        quiet=quiet,
    )


def _groups(answers: Answers, cluster: str) -> tuple[Group, list[Group]]:
    """The whole cluster, and each set of brokers that isolation policies leave to some namespaces."""
    known = {row["broker"]: Broker(row["broker"], row["topics"], row["cpu_percent"]) for row in answers["known"].rows}
    isolated = [
        Group(row["first"], True, row["namespaces"], tuple(known[each] for each in row["brokers"] if each in known))
        for row in sorted(answers["isolated"].rows, key=lambda row: str(row["first"]))
    ]
    return Group(cluster, False, 0, tuple(known[name] for name in sorted(known))), isolated


def _headroom(group: Group, ceiling: int) -> str:
    """How much more the fullest broker could take, and what one would carry after a loss."""
    fullest = min(group.brokers, key=lambda broker: (-broker.topics, broker.name))
    room = max(ceiling - fullest.topics, 0)
    words = f"The fullest of {len(group.brokers):,} brokers, {fullest.name}, has room for {room:,} topics"
    if fullest.cpu_percent is not None:
        words += f" and {100 - fullest.cpu_percent:,.0f} % of its CPU"
    if len(group.brokers) > 1:
        words += f"; after the loss of one, each would have {group.topics_after_loss:,} topics on average"
    return words + "."


def _of_group(group: Group, ceiling: int, policy: ClusterPlacementPolicy) -> Finding | None:
    """At most one finding a group: none left, none to take over, or too little room to take over."""
    if not group.brokers:
        return _finding(group, Severity.CRITICAL, f"{group.words} may be on no broker that was read.")
    if len(group.brokers) == 1:
        if not group.isolated:
            return _finding(
                group, Severity.INFO, f"{group.brokers[0].name} is the only broker: its loss stops everything."
            )
        words = f"{group.words} may be on {group.brokers[0].name} only: its loss stops them until it is back."
        return _finding(group, Severity.WARNING, words)
    return _after_loss(group, ceiling, policy)


def _after_loss(group: Group, ceiling: int, policy: ClusterPlacementPolicy) -> Finding | None:
    topics, cpu = group.topics_after_loss, group.cpu_percent_after_loss
    troubles = []
    if topics >= ceiling:
        troubles.append(f"{topics:,} topics on average (ceiling {ceiling:,})")
    if cpu is not None and cpu >= policy.warning_cpu_percent_after_loss:
        hosts = group.known_cpus
        troubles.append(f"{cpu:,} % CPU on average, from {group.cpu_percent:,} % on {hosts:,} hosts")
    if not troubles:
        return None
    severe = topics >= ceiling or (cpu is not None and cpu >= policy.critical_cpu_percent_after_loss)
    lost = f"{group.words} would not fit after the loss of one of {len(group.brokers):,} brokers"
    words = f"{lost}: {' and '.join(troubles)}."
    return _finding(group, Severity.CRITICAL if severe else Severity.WARNING, words)


def _finding(group: Group, severity: Severity, words: str) -> Finding:
    figures = {"brokers": len(group.brokers), "namespaces": group.namespaces, "topics": group.topics}
    if len(group.brokers) > 1:
        figures["topics_per_broker_after_loss"] = group.topics_after_loss
        if group.cpu_percent_after_loss is not None:
            figures["cpu_percent_after_loss"] = group.cpu_percent_after_loss
    return Finding(check_id=CHECK.check_id, severity=severity, subject=group.subject, evidence=words, figures=figures)


def _outside(row: Row) -> Finding:
    allowed = sorted(row["allowed_brokers"])
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.WARNING,
        subject=row["namespace"],
        evidence=(
            f"{row['outside']:,} bundles are owned by brokers that isolation policies do not leave to the namespace,"
            f" {row['lowest']['bundle']} by {row['lowest']['owner']} among them; it may be on"
            f" {named(allowed) or 'none'}."
        ),
        figures={"bundles_outside": row["outside"], "brokers_allowed": len(allowed)},
    )


def _cramped(row: Row) -> Finding:
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.INFO,
        subject=row["namespace"],
        evidence=(
            f"{row['topics']:,} topics in {row['bundles']:,} bundles can be on {row['bundles']:,} brokers at most,"
            f" though {row['room']:,} may have them."
        ),
        figures={"brokers_allowed": row["room"], "bundles": row["bundles"], "topics": row["topics"]},
    )


CHECK = Check(
    check_id="cluster-placement",
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
        "known": Question("select broker, coalesce(topics, 0) as topics, cpu_percent from brokers where read"),
        "isolated": Question(ISOLATED),
        "outside": Question(OUTSIDE, worst_first="outside desc, namespace"),
        "cramped": Question(CRAMPED, worst_first="topics desc, namespace"),
    },
    judge=judge,
)
