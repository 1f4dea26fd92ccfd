"""Verdicts on restarts and the report on an upgrade, kept beside a snapshot: pages read no large table for them."""

from __future__ import annotations

import logging
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.errors import ConfigurationError, StewardError
from pulsar_steward.model.system import System
from pulsar_steward.model.tables import RESTARTS, UPGRADE
from pulsar_steward.planners.restarts.facts import restart_facts
from pulsar_steward.planners.restarts.judge import restart_verdicts
from pulsar_steward.planners.restarts.model import RestartReason, RestartVerdict, State
from pulsar_steward.planners.upgrade.compose import upgrade_report
from pulsar_steward.planners.upgrade.facts import upgrade_facts, versions_of
from pulsar_steward.planners.upgrade.model import Part, UpgradeLine, UpgradeReport
from pulsar_steward.snapshots.database import rows_of
from pulsar_steward.snapshots.read import open_snapshot

if TYPE_CHECKING:
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.snapshots.folder import SnapshotFolder
    from pulsar_steward.snapshots.read import Snapshot

log = logging.getLogger(__name__)


class _Restart(msgspec.Struct, frozen=True):
    broker: str
    subject: str
    state: State
    words: str
    source: str


class _Line(msgspec.Struct, frozen=True):
    part: str
    subject: str
    state: State
    words: str
    sources: tuple[str, ...]
    before: str | None
    after: str | None


def foretell(folder: SnapshotFolder, policy: Policy) -> None:
    """Writes the tables `restarts` and `upgrade` of a diagnosed snapshot; without them it is a snapshot all the same.

    Args:
        folder: The snapshot's own folder.
        policy: The cluster's policy.
    """
    try:
        snapshot = open_snapshot(folder.uri)
        if snapshot.meta().system is not System.PULSAR:
            return
        facts, lines = restart_facts(snapshot), list[UpgradeLine]()
        try:
            lines += upgrade_report(upgrade_facts(snapshot, facts)).lines
        except ConfigurationError as error:
            log.info("no upgrade is reported on: %s", error)
        told = [msgspec.to_builtins(each) | {"part": each.part.name} for each in lines]
        reasons = [
            {"broker": each.broker, **msgspec.to_builtins(reason)}
            for each in restart_verdicts(facts, policy)
            for reason in each.reasons
        ]
        folder.write(RESTARTS, rows_of(RESTARTS, reasons))
        folder.write(UPGRADE, rows_of(UPGRADE, told))
    except StewardError as error:
        log.warning("what restarts and an upgrade would do is not told: %s", error)


def kept_restarts(snapshot: Snapshot) -> tuple[RestartVerdict, ...]:
    """Verdicts on the restart of each broker, by id; none: the snapshot has none.

    Raises:
        SnapshotError: If it cannot be read.
    """
    if not snapshot.has(RESTARTS.name):
        return ()
    meta = snapshot.meta()
    return tuple(
        RestartVerdict(
            broker=broker,
            snapshot_id=meta.snapshot_id,
            taken_at=meta.taken_at,
            reasons=tuple(
                RestartReason(subject=row.subject, state=row.state, words=row.words, source=row.source) for row in rows
            ),
        )
        for broker, rows in groupby(snapshot.rows(RESTARTS, _Restart), lambda row: row.broker)
    )


def kept_upgrade(snapshot: Snapshot) -> UpgradeReport | None:
    """The report on an upgrade; None: the snapshot has none.

    Raises:
        ConfigurationError: If no broker is left to be upgraded, or the report is not about such a cluster.
        SnapshotError: If it cannot be read.
    """
    if not snapshot.has(UPGRADE.name):
        return None
    meta = snapshot.meta()
    return UpgradeReport(
        cluster=meta.cluster,
        snapshot_id=meta.snapshot_id,
        versions=versions_of(snapshot.brokers()),
        unread=meta.unread,
        lines=tuple(
            UpgradeLine(
                part=Part[row.part],
                subject=row.subject,
                state=row.state,
                words=row.words,
                sources=row.sources,
                before=row.before,
                after=row.after,
            )
            for row in snapshot.rows(UPGRADE, _Line)
        ),
    )
