"""Tasks of ``pulsar_observe``, besides the two Spark jobs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.apply.gate import looser_than_others
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.ledger.questions import why_unasked
from pulsar_steward.model.cluster import NamedCluster, named_clusters
from pulsar_steward.model.system import System
from pulsar_steward.orchestration import home
from pulsar_steward.orchestration.asked import QuestionBook, nobody_knows
from pulsar_steward.orchestration.contents import unasked_batches
from pulsar_steward.orchestration.context import TaskContext, open_context
from pulsar_steward.orchestration.grouping import grouped
from pulsar_steward.orchestration.publish import SnapshotView, decide
from pulsar_steward.orchestration.rolling_back import rolled_back_lately, without_rolled_back
from pulsar_steward.outside_text import shown
from pulsar_steward.planners.from_snapshot import moves_before, planning_facts_of
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.policy.files import unused_files
from pulsar_steward.snapshots.folder import stamp_of
from pulsar_steward.snapshots.latest import SnapshotShelf
from pulsar_steward.snapshots.read import open_snapshot

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from datetime import datetime

    from pulsar_steward.apply.context import LedgerContext
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.orchestration.asked import RejectedBatch, SilencedGoal
    from pulsar_steward.orchestration.publish import Publication
    from pulsar_steward.orchestration.run_states import RunStates
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.snapshots.read import Snapshot
    from pulsar_steward.snapshots.rows import SnapshotMeta

log = logging.getLogger(__name__)

LOOKED_AT = 10
"""Number of the newest snapshots among which a newer one is looked for."""


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """Result of planning.

    Attributes:
        plan_ids: Plans to ask about: the new one, and earlier ones with an open question that nobody was asked.
        reason: The reason for these plans, or for having none, as Airflow's pages show it.
    """

    plan_ids: tuple[str, ...] = ()
    reason: str


def prepare(clusters: str, at: datetime | None = None) -> list[dict[str, str]]:
    """Name and place of the next snapshot of each cluster.

    Args:
        clusters: Names of clusters, divided by commas.
        at: Time of the snapshots, UTC; None: now.

    Raises:
        ConfigurationError: If there is none, or one is not valid.
    """
    taken_at = f"{at or home.now():%Y%m%dT%H%M%SZ}"
    root = home.snapshots_uri()
    return [
        {
            "cluster": cluster,
            "taken_at": taken_at,
            "root": root,
            "snapshot": f"{root}/cluster={cluster}/taken_at={taken_at}",
        }
        for cluster in named_clusters(clusters)
    ]


def plan_snapshot(cluster: str, snapshot_uri: str, run: str, runs: RunStates | None = None) -> Planned:
    """Plans a diagnosed snapshot, and records the plan if approval is to be requested for it; none for Kafka.

    Args:
        cluster: The cluster.
        snapshot_uri: Its diagnosed snapshot.
        run: The planning run, ``dag/run``.
        runs: Airflow's state of the runs that ask for approval; None: there is no Airflow.

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
    if meta.system is not System.PULSAR:
        return Planned(reason=meta.system.only_looked_at)
    with open_context(cluster, run) as task:
        brokers = frozenset(row.broker for row in snapshot.brokers())
        seen = NamedCluster(cluster, meta.identity, brokers)
        if busy := _changing(task, seen, meta.taken_at):
            return Planned(reason=shown(busy))
        moves = moves_before(task.ledger, seen, meta.taken_at, task.policy)
        now = task.clock()
        if newer := _newer(snapshot_uri, cluster, now):
            return Planned(reason=f"a newer snapshot of {cluster} is planned instead: {newer}")
        book = QuestionBook(task.ledger, seen, task.policy, now, runs.has_ended if runs else nobody_knows)
        standing, rejected, silenced = book.standing(), book.rejected(), book.silenced()
        made = plan_around_noes(planning_facts_of(snapshot, task.policy, moves), rejected, silenced)
        made = msgspec.structs.replace(made, notes=(*made.notes, *notes_on_policies(task, seen)))
        made = without_rolled_back(made, rolled_back_lately(task.ledger, seen, task.policy.approval, now))
        view = SnapshotView.PARTIAL if meta.unread else SnapshotView.COMPLETE
        plan = grouped(made, view, standing, rejected, silenced, task.policy)
        for note in plan.notes:
            log.info("note: %s", note)
        publication = decide(plan, view, standing, rejected, silenced)
        if publication.publish and runs is not None and runs.asking_is_paused():
            log.warning("nobody is asked: %s", why_unasked(paused=True))
        return _recorded(task, plan, publication, brokers, now)


def plan_around_noes(
    facts: PlanningFacts, rejected: Collection[RejectedBatch], silenced: Collection[SilencedGoal]
) -> Plan:
    """The plan in which nothing waits for what nobody is asked about, as a person said no to it.

    Bundles are split alone where a person said no to moves of their parts: a split alone moves no client and is of use
    by itself. Splits to which a person said no keep no bundle of their namespace from other moves, groups of brokers no
    other group, and settings no other settings.
    """
    while True:
        made = make_plan(facts)
        noes = unasked_batches(made, rejected, silenced)
        stay = facts.parts_stay.union(batch.steps[0].change.namespace for batch in noes if batch.further_goals)
        unasked = facts.unasked.union(batch.changes for batch in noes if not batch.further_goals)
        if (stay, unasked) == (facts.parts_stay, facts.unasked):
            notes = (
                f"{batch.title}: not asked about, as a person said no to it; other changes need not wait for it."
                for batch in noes
            )
            return msgspec.structs.replace(made, notes=(*made.notes, *notes))
        facts = msgspec.structs.replace(facts, parts_stay=stay, unasked=unasked)


def notes_on_policies(task: LedgerContext, seen: NamedCluster) -> Iterator[str]:
    """Unused policy files, and reasons why changes under this name of the cluster will be refused.

    Raises:
        ConfigurationError: If the policy files may not be read.
        LedgerError: If the ledger cannot be read.
    """
    yield from unused_files()
    yield from looser_than_others(task.ledger, seen, task.policy)


def _recorded(
    task: TaskContext, plan: Plan, publication: Publication, brokers: frozenset[str], now: datetime
) -> Planned:
    changes = publication.questions
    if publication.record:
        task.ledger_writer.record_plan(plan, now, policy=task.policy, questions=changes, brokers=brokers)
        log.info("plan %s is recorded", plan.plan_id)
    elif changes.confirmed:
        task.ledger_writer.record_confirmations(plan, changes.confirmed, now)
    log.info("%s", shown(publication.reason))
    for end in changes.ended:
        log.info("question %d ended: %s", end.question_id, end.words)
    return Planned(plan_ids=publication.publish, reason=shown(publication.reason))


def _newer(snapshot_uri: str, cluster: str, now: datetime) -> str | None:
    """Name of a newer diagnosed snapshot: an earlier run's task may come late. One from the future is passed over."""
    root, _, own = snapshot_uri.rstrip("/").rsplit("/", 2)
    newest = SnapshotShelf(root).diagnosed(cluster, LOOKED_AT)
    names = (each.uri.rpartition("/")[2] for each in newest)
    return next((name for name in names if own < name <= f"taken_at={stamp_of(now)}"), None)


def _changing(task: TaskContext, seen: NamedCluster, taken_at: datetime) -> str | None:
    """Reason why a snapshot may have been taken during a change, or None."""
    lease = task.ledger.lease(seen)
    if lease is not None and lease.expires_at > task.clock():
        return f"{lease.holder} is changing the cluster: the next observation will see what came of it"
    if task.ledger.past(seen).changes_since(taken_at):
        return "the cluster was changed while it was observed: the next observation will see it whole"
    return None


def _log_findings(snapshot: Snapshot, meta: SnapshotMeta) -> None:
    if meta.unread:
        log.warning("the snapshot is partial: unread are %s", ", ".join(meta.unread))
    for verdict in snapshot.verdicts():
        log.info("%s: %s: %s", verdict.check_id, verdict.outlook, verdict.reason)
    for finding in snapshot.findings():
        log.warning("%s %s: %s", finding.severity, finding.check_id, finding.evidence)
