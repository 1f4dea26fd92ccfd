"""All checks on one snapshot; findings and verdicts are written next to its other tables."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.registry import CHECKS, VIEWS
from pulsar_steward.diagnose.runner import fitting, judged, query_sets_of, with_those_they_rest_on
from pulsar_steward.diagnose.running import QueryFailed, SnapshotSources, about_of, ask, reads
from pulsar_steward.diagnose.shards import views_needed, words_needed
from pulsar_steward.diagnose.trends import NAME, failovers, trends, trends_queries
from pulsar_steward.model.finding import Outlook, Severity, Verdict
from pulsar_steward.model.system import System
from pulsar_steward.model.tables import FAILOVERS, FINDINGS, METRICS, SMALL, SMALL_BEFORE, SNAPSHOT, TRENDS, VERDICTS
from pulsar_steward.model.units import named
from pulsar_steward.snapshots.database import rows_of
from pulsar_steward.snapshots.folder import LOOK_BACK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.checks.check import AboutSnapshot, Check, Judgement
    from pulsar_steward.model.finding import Finding, Unlisted
    from pulsar_steward.model.tables import Table
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.runtime.parallel import MapOver
    from pulsar_steward.snapshots.folder import SnapshotFolder


Key = tuple[str, str]
"""Check id and subject, which identify a finding across snapshots."""


@dataclass(frozen=True)
class FindingAge:
    """Age of a finding in an earlier snapshot."""

    first_seen: datetime
    snapshots_in_a_row: int


@dataclass(frozen=True)
class Diagnosis:
    """Diagnosis of an earlier snapshot.

    Attributes:
        judged: Ids of the checks with a result other than "unknown".
        stood: Age of each finding.
    """

    judged: frozenset[str]
    stood: Mapping[Key, FindingAge]


def earlier_diagnoses(folders: Iterable[SnapshotFolder]) -> Iterator[Diagnosis]:
    """Yields the diagnoses of snapshots, each read on demand."""
    for folder in folders:
        (about,) = folder.read(SNAPSHOT).select(["taken_at"]).to_pylist()
        verdicts = folder.read(VERDICTS).select(["check_id", "outlook"]).to_pylist()
        stood = {
            (each["check_id"], each["subject"]): FindingAge(
                each["first_seen"] or about["taken_at"], each["snapshots_in_a_row"] or 1
            )
            for each in folder.read(FINDINGS).to_pylist()
        }
        judged = frozenset(each["check_id"] for each in verdicts if each["outlook"] != Outlook.UNKNOWN.value)
        yield Diagnosis(judged=judged, stood=stood)


def with_history(findings: Sequence[Finding], taken_at: datetime, earlier: Iterable[Diagnosis]) -> list[Finding]:
    """Adds their age to findings.

    Args:
        findings: Findings of this snapshot.
        taken_at: Its time, UTC.
        earlier: Diagnoses of earlier snapshots of the cluster, newest first; read only as far as needed.
    """
    known: dict[Key, FindingAge] = {}
    unsettled = {finding.check_id for finding in findings}
    for diagnosis in earlier if unsettled else ():
        settled = unsettled & diagnosis.judged
        known |= {key: stood for key, stood in diagnosis.stood.items() if key[0] in settled}
        unsettled -= settled
        if not unsettled:
            break
    return [_stood(finding, known.get((finding.check_id, finding.subject)), taken_at) for finding in findings]


def _stood(finding: Finding, before: FindingAge | None, taken_at: datetime) -> Finding:
    if before is None:
        return msgspec.structs.replace(finding, first_seen=taken_at, snapshots_in_a_row=1)
    in_a_row = before.snapshots_in_a_row + 1
    return msgspec.structs.replace(finding, first_seen=before.first_seen, snapshots_in_a_row=in_a_row)


log = logging.getLogger(__name__)

MAX_NAMESPACES = 1_000
"""Number of namespaces and severities by which a verdict tells findings apart that are only counted."""

TOPICS_A_SHARD = 20_000
"""Minimum number of topics in a shard: a query on a tiny shard takes 0.3 s, nearly all of it for query planning."""


def diagnose(
    folder: SnapshotFolder, policy: Policy, map_over: MapOver, checks: Sequence[Check] = CHECKS, threads: int = 1
) -> None:
    """Writes the tables `findings`, `verdicts`, `trends` and `failovers`, replacing earlier ones.

    Args:
        folder: The snapshot's own folder.
        policy: Thresholds and limits.
        map_over: Runs the queries on shards; their tables are passed as paths.
        checks: The checks.
        threads: Threads of one shard's database.

    Raises:
        SnapshotError: If the snapshot is not finished, or cannot be read.
    """
    folder.require_finished()
    (about,) = folder.read(SNAPSHOT).select(["system"]).to_pylist()
    checks = fitting(checks, System(about["system"] or System.PULSAR))
    earlier = folder.earlier(LOOK_BACK)
    try:
        _diagnose(folder, earlier, policy, map_over, checks, threads)
    except Exception:
        whole = [each for each in earlier if each.is_whole()]
        if len(whole) == len(earlier):
            raise
        log.warning("passed over damaged snapshots: %s", ", ".join(each.uri for each in earlier if each not in whole))
        _diagnose(folder, whole, policy, map_over, checks, threads)


def _diagnose(
    folder: SnapshotFolder,
    earlier: Sequence[SnapshotFolder],
    policy: Policy,
    map_over: MapOver,
    checks: Sequence[Check],
    threads: int,
) -> None:
    earlier_queries = [each for check in with_those_they_rest_on(checks) for each in check.earlier.values()]
    looked_back = _small_tables_in([each.sql for each in earlier_queries])
    before = [SnapshotSources({t.name: each.source(t) for t in looked_back}, each.shards()) for each in earlier]
    snapshot = SnapshotSources({table.name: folder.source(table) for table in SMALL}, folder.shards(), before)
    about = about_of(snapshot)
    snapshot = _worth_their_tasks(snapshot, about.topics)
    query_sets = query_sets_of(checks, about, policy)
    of_trends = trends_queries(about, policy)
    queried = ask(snapshot, [*query_sets, of_trends], VIEWS, map_over, threads)
    results = judged(checks, query_sets, queried)
    verdicts = [verdict_of(each.check, each.judgement, about) for each in results]
    for verdict in verdicts:
        log.info("%s: %s: %s", verdict.check_id, verdict.outlook.value, verdict.reason)
    found = [finding for each in results for finding in each.judgement.findings]
    findings = with_history(found, about.taken_at, earlier_diagnoses(earlier))
    folder.begin_diagnosis()
    own = queried[NAME]
    if isinstance(own, QueryFailed):
        raise own
    folder.write(TRENDS, trends(own, of_trends.context, earlier[0].read(TRENDS) if earlier else None))
    folder.write(FAILOVERS, rows_of(FAILOVERS, failovers(query_sets, queried)))
    folder.write(FINDINGS, rows_of(FINDINGS, [_row(finding) for finding in findings]))
    folder.write(VERDICTS, rows_of(VERDICTS, [msgspec.to_builtins(verdict) for verdict in verdicts]))


def verdict_of(check: Check, judgement: Judgement, about: AboutSnapshot) -> Verdict:
    """Verdict of a check: its findings count, but "clear" requires that all of its data was read."""
    check_id = check.check_id
    if judgement.findings:
        worst = max(judgement.findings, key=lambda finding: finding.severity.rank)
        more = len(judgement.findings) - 1 + judgement.more
        reason = worst.evidence + (f" And {more:,} more." if more else "")
        return Verdict(
            check_id=check_id,
            outlook=Outlook.FOUND,
            reason=reason,
            more=judgement.more,
            more_json=_graded(judgement.graded),
        )
    if judgement.cannot_tell is not None:
        return Verdict(check_id=check_id, outlook=Outlook.UNKNOWN, reason=judgement.cannot_tell)
    if about.unread:
        reason = f"{judgement.quiet} But not everything could be read: {', '.join(about.unread)}."
        return Verdict(check_id=check_id, outlook=Outlook.UNKNOWN, reason=reason)
    if about.metrics_cut_off and reads(check, METRICS.name, VIEWS):
        reason = (
            f"{judgement.quiet} But of the metrics of {named(about.metrics_cut_off)} only the beginning was read, as"
            " they are larger than collect.metrics_megabytes."
        )
        return Verdict(check_id=check_id, outlook=Outlook.UNKNOWN, reason=reason)
    return Verdict(check_id=check_id, outlook=Outlook.CLEAR, reason=judgement.quiet)


def _graded(unlisted: Mapping[Unlisted, int]) -> str:
    """`Verdict.graded` as JSON: the largest `MAX_NAMESPACES` numbers, and all others without their namespace."""
    found: defaultdict[Severity, Counter[str]] = defaultdict(Counter)
    largest_first = sorted(unlisted.items(), key=lambda each: (-each[1], each[0]))
    for place, ((severity, namespace), number) in enumerate(largest_first):
        found[severity][namespace if place < MAX_NAMESPACES else ""] += number
    return msgspec.json.encode(found, order="sorted").decode()


def _worth_their_tasks(snapshot: SnapshotSources, topics: int) -> SnapshotSources:
    """Combines small shards into fewer and larger ones."""
    most = max(1, topics // TOPICS_A_SHARD)
    earlier = [replace(each, shards=_at_most(most, each.shards)) for each in snapshot.earlier]
    return replace(snapshot, shards=_at_most(most, snapshot.shards), earlier=earlier)


def _at_most(most: int, shards: Sequence[Mapping[str, Sequence[str]]]) -> list[dict[str, list[str]]]:
    """Combines the files of shards, so that there are at most `most` shards."""
    made: list[dict[str, list[str]]] = [{} for _ in shards[:most]]
    for number, shard in enumerate(shards):
        for table, places in shard.items():
            made[number % most].setdefault(table, []).extend(places)
    return made


def _small_tables_in(queries: Sequence[str]) -> list[Table]:
    """Small tables, including earlier findings, that queries on earlier snapshots name, and `SNAPSHOT`.

    A view that they name counts with what it names, as without a table it has no rows.
    """
    words = words_needed(views_needed(VIEWS, queries), queries)
    return [table for table in SMALL_BEFORE if table is SNAPSHOT or table.name in words]


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
