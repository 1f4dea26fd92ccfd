"""Troubles of a cluster's newest snapshot, as a check-up tells them: one line each, and a page for each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.registry import BY_ID, checks_of
from pulsar_steward.errors import ConfigurationError, LedgerError
from pulsar_steward.ledger.history import plan_lines
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.model.finding import Finding, Severity, by_size
from pulsar_steward.model.measures import TOPIC_BACKLOG
from pulsar_steward.model.topics import partitioned_topic
from pulsar_steward.model.trouble import Harm, is_topic
from pulsar_steward.pages.sources import NotKnown
from pulsar_steward.report.checkup.compose import (
    check_reports,
    counts_of,
    no_longer_judged,
    outcome_of,
    trouble_report,
    troubles_found,
)
from pulsar_steward.report.checkup.document import Counts, NoLongerJudged, SinceLook, TroubleReport, pressing
from pulsar_steward.report.checkup.terminal import (
    MOST_TROUBLES,
    after_headline,
    before_proposal,
    verdict,
    with_no_longer_judged,
)
from pulsar_steward.report.since import since_look

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.pages.sources import Sources
    from pulsar_steward.snapshots.read import Snapshot

FindingKey = tuple[str, str, str]
"""A finding's check, severity and subject."""

TREND = 24
"""Number of snapshots in a card's or a trouble's trend."""

LINE = 2
"""Points that a line needs."""

LISTED = 10
"""Number of subjects that a trouble's page lists."""


class TroubleLine(msgspec.Struct, frozen=True, kw_only=True):
    """A trouble in a line: its headline, and the words after it."""

    trouble_id: str
    harm: Harm
    severity: Severity
    headline: str
    words: str


class TroublesInShort(msgspec.Struct, frozen=True, kw_only=True):
    """The first screen of a snapshot.

    Attributes:
        verdict: Overall result: how many troubles and findings, and how many of these are listed.
        worst: The worst troubles that are more than information, at most five.
        more: Number of further ones.
        all_judged: Whether each check that found trouble before can still judge.
    """

    verdict: str
    worst: tuple[TroubleLine, ...]
    more: int
    all_judged: bool


class ClusterTroubles(msgspec.Struct, frozen=True, kw_only=True):
    """All troubles of a snapshot.

    Attributes:
        counts: Findings and checks of the snapshot, as a check-up counts them.
        no_longer_judged: Checks that found trouble before and cannot judge this snapshot.
        plan_id: The plan with the proposals; None: none was recorded.
        reports: The troubles, the worst first.
        met: By trouble: its listed findings that do the harm.
        of: The trouble of each listed finding.
    """

    counts: Counts
    no_longer_judged: tuple[NoLongerJudged, ...]
    plan_id: str | None
    reports: tuple[TroubleReport, ...]
    met: Mapping[str, tuple[Finding, ...]]
    of: Mapping[FindingKey, str]

    @property
    def in_short(self) -> TroublesInShort:
        """The worst ones."""
        pressed = pressing(self.reports)
        words = verdict(outcome_of(self.counts), self.counts, self.reports)
        return TroublesInShort(
            verdict=with_no_longer_judged(words, self.counts, self.no_longer_judged),
            all_judged=not self.no_longer_judged,
            worst=tuple(
                TroubleLine(
                    trouble_id=each.trouble_id,
                    harm=each.harm,
                    severity=each.severity,
                    headline=each.headline,
                    words=after_headline(each),
                )
                for each in pressed[:MOST_TROUBLES]
            ),
            more=max(len(pressed) - MOST_TROUBLES, 0),
        )


class TroubleTrend(msgspec.Struct, frozen=True, kw_only=True):
    """A topic's backlog in bytes, or a number of findings, over the last snapshots, oldest first; a known limit."""

    subject: str
    in_bytes: bool
    times: tuple[datetime, ...]
    values: tuple[float, ...]
    limit: float | None


class TroubleView(msgspec.Struct, frozen=True, kw_only=True):
    """A trouble's page.

    Attributes:
        words: The trouble in a sentence, without its headline and its plans.
        plan_id: The plan with its batch; None: nothing is proposed.
        affected: The largest subjects that it meets; of partitions of one topic the largest.
        partitions: Further partitions of the topic of each of these.
        more: Number of further subjects, listed or not.
        trend: A figure of the largest one; None: no snapshot has one.
        kind: Kind of batches that are for such a trouble; None: there is none.
    """

    trouble: TroubleReport
    words: str
    plan_id: str | None
    affected: tuple[Finding, ...]
    partitions: tuple[int, ...]
    more: int
    trend: TroubleTrend | None
    kind: str | None


def troubles_in(sources: Sources, snapshot: Snapshot) -> ClusterTroubles:
    """Troubles of a snapshot, with what the cluster's newest plan proposes for them.

    Raises:
        SnapshotError: If the snapshot cannot be read.
    """
    return _kept(sources, snapshot, _newest_plan(sources, sources.summary(snapshot).meta.cluster))


def troubles_in_short(sources: Sources, snapshot: Snapshot) -> TroublesInShort:
    """The same for the first screen; kept for more snapshots, as it is small.

    Raises:
        SnapshotError: If the snapshot cannot be read.
    """
    plan = _newest_plan(sources, sources.summary(snapshot).meta.cluster)
    return sources.kept.get(_key(snapshot, plan), lambda: _kept(sources, snapshot, plan).in_short)


def all_troubles(sources: Sources, snapshot: Snapshot) -> tuple[TroubleReport, ...]:
    """All troubles of a snapshot, the worst first."""
    return troubles_in(sources, snapshot).reports


def troubles_since(sources: Sources, snapshot: Snapshot, span: timedelta) -> SinceLook | None:
    """Difference from the cluster's snapshot that was the newest one a span ago; None: there is none.

    Raises:
        SnapshotError: If a snapshot cannot be read.
    """
    troubles = all_troubles(sources, snapshot)

    def kept(earlier: str, compare: Callable[[], SinceLook]) -> SinceLook:
        return sources.kept.get(("since", snapshot.uri, earlier), compare)

    return since_look(snapshot, span, troubles, now=sources.now(), kept=kept)


def sparks(sources: Sources, snapshot: Snapshot) -> dict[str, TroubleTrend]:
    """Trends of the troubles on the first screen, by trouble; those without one are left out.

    Raises:
        SnapshotError: If the snapshot cannot be read.
    """
    found = troubles_in(sources, snapshot)
    trends = {
        each.trouble_id: _trend(sources, snapshot, by_size(found.met[each.trouble_id])[0])
        for each in found.in_short.worst
    }
    return {name: trend for name, trend in trends.items() if trend is not None}


def trouble_view(sources: Sources, snapshot: Snapshot, trouble_id: str) -> TroubleView:
    """A trouble of a snapshot.

    Raises:
        NotKnown: If the snapshot does not show it.
        SnapshotError: If the snapshot cannot be read.
    """
    found = troubles_in(sources, snapshot)
    trouble = next((each for each in found.reports if each.trouble_id == trouble_id), None)
    if trouble is None:
        raise NotKnown(f"the newest snapshot shows no trouble {trouble_id!r}: it is over, or it does other harm by now")
    affected = by_size(found.met[trouble_id])
    together: dict[str, list[Finding]] = {}
    for each in affected:
        together.setdefault(_without_partition(each.subject), []).append(each)
    shown = list(together.values())[:LISTED]
    kinds = (BY_ID[each].remedied_by for each in trouble.check_ids if each in BY_ID)
    return TroubleView(
        trouble=trouble,
        words=before_proposal(trouble),
        plan_id=found.plan_id if trouble.batch_id else None,
        affected=tuple(alike[0] for alike in shown),
        partitions=tuple(len(alike) - 1 for alike in shown),
        more=max(trouble.affected - sum(map(len, shown)), 0),
        trend=_trend(sources, snapshot, affected[0]),
        kind=next(filter(None, kinds), None),
    )


def _without_partition(subject: str) -> str:
    """A subject with its partitioned topic in place of a partition."""
    name, blank, rest = subject.partition(" ")
    return f"{partitioned_topic(name) if is_topic(name) else name}{blank}{rest}"


def _newest_plan(sources: Sources, cluster: str) -> Plan | None:
    """The cluster's newest plan; None: there is none that can be read, which only hides what is proposed."""
    try:
        with one_moment(sources.engine) as connection:
            lines = plan_lines(connection, cluster, sources.now(), 1)
        plan_id = lines[0].plan_id if lines else None
        return sources.kept.get(("plan", plan_id), lambda: sources.ledger.plan(plan_id)) if plan_id else None
    except (ConfigurationError, LedgerError):
        return None


def _key(snapshot: Snapshot, plan: Plan | None) -> tuple[str, str, str | None]:
    return "troubles", snapshot.uri, plan.plan_id if plan else None


def _kept(sources: Sources, snapshot: Snapshot, plan: Plan | None) -> ClusterTroubles:
    return sources.kept_large.get(_key(snapshot, plan), lambda: _composed(sources, snapshot, plan))


def _composed(sources: Sources, snapshot: Snapshot, plan: Plan | None) -> ClusterTroubles:
    summary = sources.summary(snapshot)
    checks = check_reports(snapshot.findings(as_judged=True), summary.verdicts, checks_of(summary.meta.system))
    joined, proposed = troubles_found(checks), (plan.batches, plan.notes) if plan else ((), ())
    meta, partial = summary.meta, bool(summary.meta.unread)
    return ClusterTroubles(
        counts=counts_of(checks),
        no_longer_judged=no_longer_judged(snapshot, summary.verdicts, sources.summary),
        plan_id=plan.plan_id if plan else None,
        reports=tuple(
            trouble_report(each, *proposed, meta.servers, cluster=meta.cluster, partial=partial) for each in joined
        ),
        met={each.trouble_id: each.met for each in joined},
        of={
            (one.check_id, one.severity.value, one.subject): each.trouble_id for each in joined for one in each.findings
        },
    )


def _counts(sources: Sources, snapshot: Snapshot, largest: Finding) -> TroubleTrend | None:
    """Findings like this one by snapshot, listed or not; None: it was always this one alone."""
    cluster = sources.summary(snapshot).meta.cluster
    past = [sources.summary(each) for each in sources.shelf.diagnosed(cluster, TREND, whole=False)]
    past = [each for each in past if not each.meta.unread]  # the number of a partial snapshot is a lower bound
    seen = [(each.meta.taken_at, each.found.get((largest.check_id, largest.severity))) for each in reversed(past)]
    values = [float(each.count) if each else 0.0 for _, each in seen]
    if len(values) < LINE or max(values) <= 1:
        return None
    return TroubleTrend(
        subject=f"{largest.check_id}, {largest.severity}",
        in_bytes=False,
        times=tuple(at for at, _ in seen),
        values=tuple(values),
        limit=None,
    )


def _trend(sources: Sources, snapshot: Snapshot, largest: Finding) -> TroubleTrend | None:
    """Backlog of the largest subject, where snapshots have it, else how many findings there were."""
    subject = largest.subject.partition(" ")[0]
    rows = sources.kept_large.get(("trend rows", snapshot.uri), snapshot.trends)
    points = [row for row in rows if (row.measure, row.subject) == (TOPIC_BACKLOG, subject)]
    if len(points) < LINE:
        return _counts(sources, snapshot, largest)
    limit = largest.figures.get("limit_bytes", 0)
    return TroubleTrend(
        subject=subject,
        in_bytes=True,
        times=tuple(row.taken_at for row in points),
        values=tuple(row.value for row in points),
        limit=limit if limit > 0 else None,
    )
