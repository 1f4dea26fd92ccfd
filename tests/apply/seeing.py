"""A worksite with eyes: what is carried out comes from plans that are made of snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulsar_steward.checks.registry import CHECKS
from pulsar_steward.collect.collecting import CollectParameters, collect
from pulsar_steward.collect.reading import TaskDivision, WrittenByTasks
from pulsar_steward.diagnose.diagnosing import diagnose
from pulsar_steward.planners.from_snapshot import moves_before, planning_facts_of
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.runtime.parallel import OnThreads
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder, snapshot_uri
from pulsar_steward.snapshots.read import open_snapshot
from tests.apply.worksite import said
from tests.builders import CLUSTER, NAMED

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.model.plan import Plan
    from tests.apply.worksite import Worksite


@dataclass
class Seeing:
    """A worksite, its snapshots a quarter of an hour apart, and the remedies whose checks it runs."""

    site: Worksite
    home: Path
    remedies: tuple[str, ...]
    runs: int = 0

    def observe(self) -> tuple[Plan, dict[str, Finding]]:
        """A recorded plan, and what is found, by subject."""
        site, threads = self.site, OnThreads(2)
        checks = tuple(check for check in CHECKS if check.remedied_by in self.remedies)
        site.clock.advance(minutes=15)
        order = CollectParameters(
            cluster=CLUSTER, taken_at=site.clock().replace(microsecond=0), policy=site.policy.collect
        )
        folder = SnapshotFolder(LocalFiles(), snapshot_uri(str(self.home), CLUSTER, order.taken_at))
        collect(
            site.settings, order, folder, WrittenByTasks(site.settings, folder, threads, TaskDivision(2, 1)), threads
        )
        diagnose(folder, site.policy, threads, checks)
        moves = moves_before(site.ledger, NAMED, order.taken_at, site.policy)
        planning = planning_facts_of(open_snapshot(folder.uri), site.policy, moves)
        told = {check.check_id for check in checks}
        return site.record(make_plan(planning)), {
            each.subject: each for each in planning.findings if each.check_id in told
        }

    def carry_out(self, plan: Plan, *step_ids: str, **around: Any) -> list[str]:
        """Approves some steps of the first batch, or all, and carries them out; what each came to."""
        self.runs += 1
        run = f"pulsar_remediate/manual/{self.runs}"
        self.site.approve(plan, *step_ids, run=run)
        outcomes = said(self.site.carry_out(plan, run, **around))
        if set(outcomes) == {"done"}:
            self.site.proved(plan, run)
        return outcomes
