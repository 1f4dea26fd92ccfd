"""Whether the brokers that are left could carry the loss of one, in the cluster and in each isolation group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.catalog.delayed import CLUSTER_PLACEMENT
from pulsar_steward.model.finding import Finding, Severity
from steward_spark.checks.check import MOST_FINDINGS, Check, Judgement
from steward_spark.checks.common.listing import worst
from steward_spark.checks.common.worst import named
from steward_spark.checks.delayed._groups import Group, groups
from steward_spark.checks.delayed._misplaced import few_bundles, misplaced

if TYPE_CHECKING:
    from pyspark.sql import Row

    from pulsar_steward.policy.checks.delayed import ClusterPlacementPolicy
    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames


def _judge(frames: Frames, policy: Policy) -> Judgement:
    limits, ceiling = policy.cluster_placement, policy.partition_ceiling.critical_topics_per_broker
    whole, isolated = groups(frames)
    if not whole.brokers:
        return Judgement(cannot_tell="No broker was read.")
    of_groups = [finding for group in (whole, *isolated) if (finding := _of_group(group, ceiling, limits)) is not None]
    outside, more_outside = worst(*misplaced(frames))
    cramped, more_cramped = worst(*few_bundles(frames, limits, len(whole.brokers)))
    found = [*of_groups, *(_outside(row) for row in outside), *(_cramped(row) for row in cramped)]
    found.sort(key=lambda finding: -finding.severity.rank)
    quiet = _headroom(whole, ceiling)
    silent = [broker.name for broker in whole.brokers if broker.cpu_percent is None]
    if not found and silent:
        return Judgement(cannot_tell=f"{quiet} But brokers did not tell their CPU: {named(silent)}.")
    return Judgement(
        findings=tuple(found[:MOST_FINDINGS]),
        more=max(len(found) - MOST_FINDINGS, 0) + more_outside + more_cramped,
        quiet=quiet,
    )


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
    return Finding(
        check_id=CLUSTER_PLACEMENT.check_id, severity=severity, subject=group.subject, evidence=words, figures=figures
    )


def _outside(row: Row) -> Finding:
    allowed = sorted(row["allowed_brokers"])
    return Finding(
        check_id=CLUSTER_PLACEMENT.check_id,
        severity=Severity.WARNING,
        subject=row["namespace"],
        evidence=(
            f"{row['outside']:,} bundles are owned by brokers that isolation policies do not leave to the namespace,"
            f" {row['bundle']} by {row['owner']} among them; it may be on {named(allowed) or 'none'}."
        ),
        figures={"bundles_outside": row["outside"], "brokers_allowed": len(allowed)},
    )


def _cramped(row: Row) -> Finding:
    return Finding(
        check_id=CLUSTER_PLACEMENT.check_id,
        severity=Severity.INFO,
        subject=row["namespace"],
        evidence=(
            f"{row['topics']:,} topics in {row['bundles']:,} bundles can be on {row['bundles']:,} brokers at most,"
            f" though {row['room']:,} may have them."
        ),
        figures={"brokers_allowed": row["room"], "bundles": row["bundles"], "topics": row["topics"]},
    )


CHECK = Check(CLUSTER_PLACEMENT, _judge)
