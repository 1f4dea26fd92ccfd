"""Tasks of ``pulsar_observe``, besides the two Spark jobs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.orchestration import home
from pulsar_steward.orchestration.asked import QuestionBook
from pulsar_steward.orchestration.context import TaskContext, open_context
from pulsar_steward.orchestration.grouping import grouped
from pulsar_steward.orchestration.publish import SnapshotView, decide
from pulsar_steward.orchestration.rolled_back import rolled_back_lately, without_rolled_back
from pulsar_steward.outside_text import shown
from pulsar_steward.planners.from_snapshot import moves_before, planning_facts_of
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.snapshots.read import open_snapshot

if TYPE_CHECKING:
    from datetime import datetime

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.orchestration.publish import Publication
    from pulsar_steward.snapshots.read import Snapshot
    from pulsar_steward.snapshots.rows import SnapshotMeta

log = logging.getLogger(__name__)


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """Result of planning: the plan to ask about, or the reason why there is none, as Airflow's pages show it."""

    plan_id: str | None
    reason: str


def prepare(cluster: str, at: datetime | None = None) -> dict[str, str]:
    """Name and place of the next snapshot of a cluster."""
    taken_at = f"{at or home.now():%Y%m%dT%H%M%SZ}"
    root = home.snapshots_uri()
    return {
        "cluster": cluster,
        "taken_at": taken_at,
        "root": root,
        "snapshot": f"{root}/cluster={cluster}/taken_at={taken_at}",
    }


def plan_snapshot(cluster: str, snapshot_uri: str, run: str) -> Planned:
    """Plans a diagnosed snapshot, and records the plan if approval is to be requested for it.

    Raises:
        SnapshotError: If the snapshot does not exist or is not finished.
        ConfigurationError: If it is of another cluster.
        LedgerError: If the ledger cannot be used.
    """
    snapshot = open_snapshot(snapshot_uri)
    meta = snapshot.meta()
    if meta.cluster != cluster:
        raise ConfigurationError(f"the snapshot {snapshot_uri} is of cluster {meta.cluster!r}, not {cluster!r}")
    _log_findings(snapshot, meta)
    with open_context(cluster, run) as task:
        if busy := _changing(task, meta.taken_at):
            return Planned(plan_id=None, reason=shown(busy))
        moves = moves_before(task.ledger, cluster, meta.taken_at, task.policy)
        now = task.clock()
        made = make_plan(planning_facts_of(snapshot, task.policy, moves))
        made = without_rolled_back(made, rolled_back_lately(task.ledger, cluster, task.policy.approval, now))
        view = SnapshotView.PARTIAL if meta.unread else SnapshotView.COMPLETE
        book = QuestionBook(task.ledger, cluster, task.policy, now)
        standing, rejected, silenced = book.standing(), book.rejected(), book.silenced()
        plan = grouped(made, view, standing, rejected, silenced, task.policy)
        for note in plan.notes:
            log.info("note: %s", note)
        publication = decide(plan, view, standing, rejected, book.older_plans(), silenced)
        return _recorded(task, plan, publication, now)


def _recorded(task: TaskContext, plan: Plan, publication: Publication, now: datetime) -> Planned:
    changes = publication.questions
    if publication.record:
        task.ledger_writer.record_plan(
            plan, now, supersede=publication.supersede, policy=task.policy, questions=changes
        )
    elif changes.confirmed:
        task.ledger_writer.record_confirmations(plan, changes.confirmed, now)
    for older in publication.supersede:
        log.info("plan %s is superseded by %s", older, plan.plan_id)
    for end in changes.ended:
        log.info("question %d ended: %s", end.question_id, end.words)
    return Planned(plan_id=plan.plan_id if publication.ask else None, reason=shown(publication.reason))


def _changing(task: TaskContext, taken_at: datetime) -> str | None:
    """Reason why a snapshot may show a cluster in the middle of a change, or None."""
    lease = task.ledger.lease(task.cluster)
    if lease is not None and lease.expires_at > task.clock():
        return f"{lease.holder} is changing the cluster: the next observation will see what came of it"
    if task.ledger.changes_since(task.cluster, taken_at):
        return "the cluster was changed while it was observed: the next observation will see it whole"
    return None


def _log_findings(snapshot: Snapshot, meta: SnapshotMeta) -> None:
    if meta.unread:
        log.warning("the snapshot is partial: unread are %s", ", ".join(meta.unread))
    for verdict in snapshot.verdicts():
        log.info("%s: %s: %s", verdict.check_id, verdict.outlook, verdict.reason)
    for finding in snapshot.findings():
        log.warning("%s %s: %s", finding.severity, finding.check_id, finding.evidence)
