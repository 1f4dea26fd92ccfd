"""All checks on one snapshot; what they found, and what they can say, is written beside its other tables."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from pulsar_steward.collect.arrow import schema_of
from pulsar_steward.model.finding import Finding, Outlook, Verdict
from pulsar_steward.model.tables import FINDINGS, TRENDS, VERDICTS
from steward_spark.checks.check import Judgement
from steward_spark.checks.registry import CHECKS
from steward_spark.grounds import grounds_of, say, stands
from steward_spark.history import LOOK_BACK, earlier_diagnoses, with_history
from steward_spark.holding import held
from steward_spark.overriding import judge
from steward_spark.place import DIAGNOSED_NOTE, SnapshotPlace
from steward_spark.trends import trends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from pulsar_steward.model.tables import Table
    from pulsar_steward.policy.schema import Policy
    from steward_spark.checks.check import Check
    from steward_spark.frames import About, Frames

log = logging.getLogger(__name__)

DEFECT = "The check itself failed, which is a defect: "
"""Begins the reason of a verdict of which the next try may say something else."""

AT_ONCE = 3
"""Checks at a time: while one is planned, which Spark does in one thread, others are computed."""


def diagnose(spark: SparkSession, uri: str, policy: Policy, checks: Sequence[Check] = CHECKS) -> str:
    """Writes the tables `findings`, `verdicts` and `trends`, in place of earlier ones, and returns the snapshot's URI.

    What the same code has already found under the same policy after the same snapshots is left as it is.

    Args:
        spark: The session.
        uri: The snapshot's own folder.
        policy: Thresholds and limits.
        checks: What is looked for.

    Raises:
        SnapshotError: If the snapshot is not finished.
    """
    place = SnapshotPlace(spark, uri)
    place.require_finished()
    earlier = place.earlier(LOOK_BACK)
    with held(spark, place, earlier) as frames:
        grounds = grounds_of(policy.for_cluster(frames.about.cluster), checks, earlier)
        if stands(place, grounds):
            log.info("%s was diagnosed already: neither policy, code nor earlier snapshots changed", place.name)
            return place.uri
        place.remove_note(DIAGNOSED_NOTE)
        found, verdicts = judged(frames, policy, checks)
        findings = with_history(found, frames.about.taken_at, earlier_diagnoses(earlier))
        place.write(TRENDS, trends(frames, policy).coalesce(1))
    for table, rows in ((FINDINGS, [_row(finding) for finding in findings]), (VERDICTS, _plain(verdicts))):
        place.write(table, spark.createDataFrame(_arrow(table, rows)).coalesce(1))
    if not any(verdict.reason.startswith(DEFECT) for verdict in verdicts):
        say(place, grounds)
    return place.uri


def judged(frames: Frames, policy: Policy, checks: Sequence[Check]) -> tuple[list[Finding], list[Verdict]]:
    """What the checks found, and a verdict for each of them."""
    findings: list[Finding] = []
    verdicts: list[Verdict] = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        judgements = pool.map(lambda check: _judged(check, frames, policy), checks)
        for check, judgement in zip(checks, judgements, strict=True):
            findings += judgement.findings
            verdicts.append(_told(check, judgement, frames.about))
    return findings, verdicts


def _told(check: Check, judgement: Judgement, about: About) -> Verdict:
    verdict = verdict_of(check.info.check_id, judgement, about)
    log.info("%s: %s: %s", verdict.check_id, verdict.outlook.value, verdict.reason)
    return verdict


def _judged(check: Check, frames: Frames, policy: Policy) -> Judgement:
    """What one check says; one that breaks says that it cannot tell, and does not take the others with it."""
    try:
        # Spark's pages show it beside each job.
        frames.topics.sparkSession.sparkContext.setJobDescription(check.info.check_id)
        return judge(check, frames, policy)
    except Exception as error:
        log.exception("%s is broken on this snapshot", check.info.check_id)
        first_line = str(error).partition("\n")[0]
        return Judgement(cannot_tell=f"{DEFECT}{type(error).__name__}: {first_line}")


def verdict_of(check_id: str, judgement: Judgement, about: About) -> Verdict:
    """What a check can say: what it found stands, but silence means health only where everything was read."""
    if judgement.findings:
        worst = max(judgement.findings, key=lambda finding: finding.severity.rank)
        more = len(judgement.findings) - 1 + judgement.more
        reason = worst.evidence + (f" And {more:,} more." if more else "")
        return Verdict(check_id=check_id, outlook=Outlook.FOUND, reason=reason, more=judgement.more)
    if judgement.cannot_tell is not None:
        return Verdict(check_id=check_id, outlook=Outlook.UNKNOWN, reason=judgement.cannot_tell)
    if about.unread:
        reason = f"{judgement.quiet} But not everything could be read: {', '.join(about.unread)}."
        return Verdict(check_id=check_id, outlook=Outlook.UNKNOWN, reason=reason)
    return Verdict(check_id=check_id, outlook=Outlook.CLEAR, reason=judgement.quiet)


def _row(finding: Finding) -> dict[str, object]:
    return {
        "check_id": finding.check_id,
        "severity": finding.severity.value,
        "subject": finding.subject,
        "evidence": finding.evidence,
        "figures_json": msgspec.json.encode(finding.figures, order="sorted").decode(),
        "first_seen": finding.first_seen,
        "snapshots_in_a_row": finding.snapshots_in_a_row,
    }


def _plain(verdicts: Sequence[Verdict]) -> list[dict[str, object]]:
    return [msgspec.to_builtins(verdict) for verdict in verdicts]


def _arrow(table: Table, rows: Sequence[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=schema_of(table))
