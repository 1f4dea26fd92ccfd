"""Steward's whole way on a lab, without Airflow: it is observed here, planners propose, and `Hands` do the rest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.observing import observe
from lab.waiting import wait_until
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.finding import Severity
from pulsar_steward.planners.from_snapshot import moves_before, planning_facts_of
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.snapshots.folder import snapshot_uri
from pulsar_steward.snapshots.read import open_snapshot
from tests.live.hands import Hands

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.snapshots.read import Snapshot

SECOND_S = 5.0
"""Within which a second is over."""

GONE_WITHIN_S = 90.0
"""Brokers renew the statistics that a snapshot is made of every five seconds in these labs."""


@dataclass(frozen=True, kw_only=True)
class Healer(Hands):
    """Eyes beside the hands.

    Attributes:
        checks: Ids of those that look.
    """

    checks: tuple[str, ...]

    def observe(self) -> Snapshot:
        """Takes and diagnoses a snapshot; as its name is its second, one of the same second is waited out."""
        out = self.home / "snapshots"
        wait_until(
            lambda: not Path(snapshot_uri(str(out), self.cluster, datetime.now(UTC))).exists(),
            "a second without a snapshot",
            SECOND_S,
        )
        now = datetime.now(UTC)
        return open_snapshot(
            observe(self.lab, self.policy, cluster=self.cluster, out=out, taken_at=now, checks=self.checks)
        )

    def plan(self, snapshot: Snapshot) -> Plan:
        """Plan by the planners, written down."""
        moves = moves_before(self.ledger, NamedCluster(self.cluster), snapshot.meta().taken_at, self.policy)
        return self.recorded(make_plan(planning_facts_of(snapshot, self.policy, moves)))

    def until_gone(self, *troubles: tuple[str, str]) -> None:
        """Observes until none of these is found any more.

        Raises:
            NotReachedError: One still is, in the end.
        """
        wait_until(lambda: not found(self.observe()) & set(troubles), f"{troubles} are gone", GONE_WITHIN_S)


def found(snapshot: Snapshot) -> set[tuple[str, str]]:
    """Check and subject of every trouble in a snapshot; information is none."""
    trouble = Severity.WARNING.rank
    return {(each.check_id, each.subject) for each in snapshot.findings() if each.severity.rank >= trouble}
