"""Composition of a check-up's document from a diagnosed snapshot, and the plan that would follow from it."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from pulsar_steward.logs.patterns import LOG_CHECKS
from pulsar_steward.model.finding import Outlook, Severity
from pulsar_steward.model.tables import BUNDLES, NAMESPACES
from pulsar_steward.report.checkup.checks import check_reports
from pulsar_steward.report.checkup.document import (
    FORMAT,
    VERSION,
    About,
    CheckReport,
    Checkup,
    CheckupOutcome,
    Counts,
    Unread,
)
from pulsar_steward.report.checkup.measures import measures_of
from pulsar_steward.report.checkup.planning import planning_of
from pulsar_steward.report.overview import span_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.logs.reading import LogsRead
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.snapshots.read import Snapshot
    from pulsar_steward.snapshots.rows import BrokerRow, SnapshotMeta


def checkup_of(snapshot: Snapshot, plan: Plan, policy: Policy, logs: LogsRead | None = None) -> Checkup:
    """The check-up of a snapshot.

    Args:
        snapshot: A diagnosed snapshot.
        plan: The planners' result for it.
        policy: The cluster's thresholds and limits, as used for the plan.
        logs: Result of reading the cluster's logs, the last step of the guide; None: none were read.

    Raises:
        SnapshotError: If the snapshot cannot be read or was not diagnosed.
    """
    checks = check_reports(snapshot.findings(), snapshot.verdicts())
    of_logs = check_reports(logs.findings, logs.verdicts, LOG_CHECKS) if logs is not None else ()
    every = (*checks, *of_logs)
    counts = counts_of(every)
    return Checkup(
        format=FORMAT,
        version=VERSION,
        steward_version=steward_version(),
        policy_digest=plan.policy_digest,
        outcome=outcome_of(counts),
        about=_about(snapshot),
        counts=counts,
        checks=every,
        planning=planning_of(plan, checks, policy),
        measures=measures_of(snapshot),
    )


def outcome_of(counts: Counts) -> CheckupOutcome:
    """Overall outcome: information is no problem, but health is not known unless at least one check is clear."""
    if counts.critical or counts.warning:
        return CheckupOutcome.FINDINGS
    return CheckupOutcome.HEALTHY if counts.checks_clear else CheckupOutcome.COULD_NOT_LOOK


def counts_of(checks: Sequence[CheckReport]) -> Counts:
    """Number of findings by severity, and of checks by outlook."""
    severities = Counter(finding.severity for check in checks for finding in check.findings)
    outlooks = Counter(check.outlook for check in checks)
    return Counts(
        critical=severities[Severity.CRITICAL],
        warning=severities[Severity.WARNING],
        info=severities[Severity.INFO],
        checks_clear=outlooks[Outlook.CLEAR],
        checks_unknown=outlooks[Outlook.UNKNOWN],
    )


def steward_version() -> str:
    """Installed version of Steward; ``unknown`` if it is only on the path."""
    try:
        return version("pulsar-steward")
    except PackageNotFoundError:
        return "unknown"


def _about(snapshot: Snapshot) -> About:
    meta, brokers = snapshot.meta(), snapshot.brokers()
    return About(
        snapshot_id=meta.snapshot_id,
        cluster=meta.cluster,
        pulsar_cluster=meta.pulsar_cluster,
        pulsar_version=meta.pulsar_version,
        load_manager=meta.load_manager.rpartition(".")[2],
        taken_at=meta.taken_at,
        span=span_in_words(snapshot.read_span()),
        complete=not meta.unread,
        unread=tuple(_unread(meta, brokers)),
        brokers=len(brokers),
        brokers_read=sum(row.read for row in brokers),
        namespaces=snapshot.table(NAMESPACES, ["namespace"]).num_rows,
        bundles=snapshot.table(BUNDLES, ["bundle"]).num_rows,
        topics=sum(row.topics or 0 for row in brokers),
        coordinators=meta.coordinators,
    )


def _unread(meta: SnapshotMeta, brokers: Sequence[BrokerRow]) -> Iterator[Unread]:
    failures = {row.broker: row.failure for row in brokers}
    for name in meta.unread_brokers:
        yield Unread(kind="broker", name=name, reason=failures.get(name))
    for name in meta.unread_namespaces:
        yield Unread(kind="namespace", name=name, reason=None)
