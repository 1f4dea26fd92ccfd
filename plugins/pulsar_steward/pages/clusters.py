"""The clusters under Steward's care, one card each: condition, waiting questions, running changes, and their age."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from itertools import groupby, pairwise
from statistics import median
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.registry import BY_ID, checks_of
from pulsar_steward.errors import LedgerError, SnapshotError
from pulsar_steward.ledger.counts import LastChange, cluster_states
from pulsar_steward.ledger.halts import Halt
from pulsar_steward.ledger.questions import ASKING_DAG, RunningBatch, UnaskedQuestion, WaitingQuestion, why_unasked
from pulsar_steward.ledger.silences import Silence
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.health import ClusterHealth
from pulsar_steward.model.measures import (
    CLUSTER_BACKLOG,
    CLUSTER_CONSUMERS,
    CLUSTER_PRODUCERS,
    CLUSTER_SUBSCRIPTIONS,
    CLUSTER_TOPICS,
    IN_BYTES,
)
from pulsar_steward.model.risk import Worth, worth_of
from pulsar_steward.model.system import System
from pulsar_steward.model.trouble import Harm
from pulsar_steward.pages.sources import NotKnown
from pulsar_steward.pages.troubles import TREND, TroublesInShort, troubles_in_short
from pulsar_steward.report.overview import STALE_AT_LEAST, SnapshotSummary, summary_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.ledger.counts import ClusterStates
    from pulsar_steward.pages.sources import Sources
    from pulsar_steward.snapshots.read import Snapshot

STALE_AFTER = 3
"""Age from which a snapshot is stale, as a multiple of the usual interval between snapshots."""

USUAL_GAP = timedelta(minutes=15)
"""Interval that is assumed as long as there are fewer than two snapshots."""


class StewardActivity(StrEnum):
    """What Steward does for a cluster, in a few words; the first that applies."""

    HALTED = "halted"
    CHANGING = "changing the cluster"
    WAITING = "waiting for an answer"
    NOT_ASKED = "nobody was asked"
    BLIND = "not observing"
    OBSERVING = "observing"


class EarlierSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One earlier snapshot, for a trend."""

    taken_at: datetime
    critical: int
    warning: int
    partial: bool


class LastSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of the newest diagnosed snapshot.

    Attributes:
        system: System of the cluster; of Kafka, `topics` are partitions with a leader.
        stale: True: no newer snapshots came, so the summary may be outdated.
        span: When brokers were read, in words; None: at once, or it is not known. Ages count from `taken_at`.
        unread: Brokers and namespaces that could not be read; not empty: the snapshot is partial.
        critical: Critical findings, listed or not; the others likewise.
        listed: Number of all findings that are listed.
    """

    snapshot_id: str
    taken_at: datetime
    span: str | None
    age_seconds: float
    stale: bool
    unread: tuple[str, ...]
    system: System
    pulsar_cluster: str
    pulsar_version: str
    brokers: int
    brokers_read: int
    topics: int
    critical: int
    warning: int
    info: int
    listed: int
    checks_clear: int
    checks_unknown: int

    @property
    def found(self) -> int:
        """Number of all findings, listed or not."""
        return self.critical + self.warning + self.info

    @property
    def runs(self) -> str:
        """System and its version, as far as it is known."""
        return f"{self.system.called} {self.pulsar_version}".rstrip()


class ClusterCard(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of one cluster.

    Attributes:
        seen: The newest snapshot; None: there is none, for the reason in `trouble`.
        found: The worst troubles that it shows; None as well then.
        trouble: Reason why nothing is known of it.
        trend: Earlier snapshots, oldest first, the newest included.
        last_change: The batch with the most recently ended step; None: nothing was changed yet.
        silent: Silenced questions, the newest answer first.
        halted_elsewhere: Reason if it is halted by a switch outside of the ledger; None: it is not.
        unasked: Open questions that nobody was asked yet, oldest first.
        why_unasked: Reason why nobody was asked, with the remedy; None: there is no such question.
    """

    cluster: str
    health: ClusterHealth
    activity: StewardActivity
    seen: LastSnapshot | None
    found: TroublesInShort | None
    trouble: str | None
    halt: Halt | None
    waiting: tuple[WaitingQuestion, ...]
    running: RunningBatch | None
    trend: tuple[EarlierSnapshot, ...]
    last_change: LastChange | None
    silent: tuple[Silence, ...] = ()
    halted_elsewhere: str | None = None
    unasked: tuple[UnaskedQuestion, ...] = ()
    why_unasked: str | None = None


def cluster_cards(sources: Sources, only: str | None = None) -> tuple[ClusterCard, ...]:
    """Cards of all clusters, or of one; clusters that need attention come first.

    Raises:
        NotKnown: If neither the ledger nor the snapshots know that cluster.
    """
    names = set(sources.shelf.clusters())
    with one_moment(sources.engine) as connection:
        ledger = cluster_states(connection, sources.now(), names)
    known = names | ledger.clusters
    if only is not None and only not in known:
        raise NotKnown(f"no cluster {only!r} is known: it has no snapshot, and no plan in the ledger")
    cards = [_card(sources, ledger, name) for name in (known if only is None else {only})]
    return tuple(sorted(cards, key=_urgency))


def _urgency(card: ClusterCard) -> tuple[int, int, int, str]:
    """Order of cards: by health, then by the worst harm, and only then by what Steward does."""
    harm = Harm.worst_rank(each.harm for each in card.found.worst) if card.found else len(Harm)
    places = card.health.rank, harm, list(StewardActivity).index(card.activity)
    return *places, card.cluster


def _card(sources: Sources, ledger: ClusterStates, cluster: str) -> ClusterCard:
    try:
        seen, found, trend = _seen(sources, cluster)
        trouble = None if seen else "It was never observed, or its snapshots were removed."
    except SnapshotError as error:
        seen, found, trend, trouble = None, None, (), str(error)
    halt, elsewhere = ledger.halts.get(cluster), sources.halted_elsewhere(cluster)
    running = ledger.running.get(cluster)
    unasked = tuple(each for each in ledger.unasked if each.cluster == cluster)
    waiting = [each for each in ledger.waiting if each.cluster == cluster]
    activities = {
        StewardActivity.HALTED: halt or elsewhere,
        StewardActivity.CHANGING: running,
        StewardActivity.WAITING: waiting,
        StewardActivity.NOT_ASKED: unasked,
        StewardActivity.BLIND: seen is None or seen.stale,
    }
    return ClusterCard(
        cluster=cluster,
        health=_health(seen, found),
        activity=next((each for each, so in activities.items() if so), StewardActivity.OBSERVING),
        seen=seen,
        found=found,
        trouble=trouble,
        halt=halt,
        halted_elsewhere=elsewhere,
        waiting=tuple(
            sorted(  # by descending worth; with equal worth, the oldest first
                waiting,
                key=lambda each: _worths(sources, each.plan_id).get(each.batch_id, UNKNOWN).rank,
            )
        ),
        unasked=unasked,
        why_unasked=why_unasked(sources.is_paused(ASKING_DAG)) if unasked else None,
        silent=tuple(each for each in ledger.silent if each.cluster == cluster),
        running=running,
        trend=trend,
        last_change=ledger.changes.get(cluster),
    )


def _health(seen: LastSnapshot | None, found: TroublesInShort | None) -> ClusterHealth:
    worst = {each.severity for each in found.worst} if found else set()
    if seen is None:
        return ClusterHealth.UNKNOWN
    judged = found is None or found.all_judged
    known = not seen.stale and not seen.unread and seen.checks_clear and judged
    return ClusterHealth.of(critical=seen.critical or Severity.CRITICAL in worst, warning=worst, known=known)


def _seen(
    sources: Sources, cluster: str
) -> tuple[LastSnapshot | None, TroublesInShort | None, tuple[EarlierSnapshot, ...]]:
    newest = sources.newest(cluster)
    if newest is None:
        return None, None, ()
    earlier = reversed(sources.shelf.diagnosed(cluster, TREND, whole=False))
    trend = tuple(sources.kept.get(("earlier", each.uri), partial(_earlier, sources, each, newest)) for each in earlier)
    gaps = [(later.taken_at - earlier.taken_at).total_seconds() for earlier, later in pairwise(trend)]
    usual = timedelta(seconds=median(gaps)) if gaps else USUAL_GAP
    return seen_of(sources.summary(newest), sources.now(), usual), troubles_in_short(sources, newest), trend


def _earlier(sources: Sources, snapshot: Snapshot, newest: Snapshot) -> EarlierSnapshot:
    """Of an earlier snapshot the few figures of a trend alone are kept: 50 clusters have more than a thousand."""
    summary = sources.summary(snapshot) if snapshot.uri == newest.uri else summary_of(snapshot)
    return EarlierSnapshot(
        taken_at=summary.meta.taken_at,
        critical=summary.severities[Severity.CRITICAL],
        warning=summary.severities[Severity.WARNING],
        partial=bool(summary.meta.unread),
    )


def seen_of(summary: SnapshotSummary, now: datetime, gap: timedelta) -> LastSnapshot:
    """Summary of a snapshot, with its age."""
    meta, severities = summary.meta, summary.severities
    age = now - meta.taken_at
    return LastSnapshot(
        snapshot_id=meta.snapshot_id,
        taken_at=meta.taken_at,
        span=summary.span,
        age_seconds=max(age.total_seconds(), 0.0),
        stale=age > max(STALE_AFTER * gap, STALE_AT_LEAST),
        unread=meta.unread,
        system=meta.system,
        pulsar_cluster=meta.pulsar_cluster,
        pulsar_version=meta.pulsar_version,
        brokers=summary.brokers,
        brokers_read=summary.brokers_read,
        topics=summary.topics,
        critical=severities[Severity.CRITICAL],
        warning=severities[Severity.WARNING],
        info=severities[Severity.INFO],
        listed=sum(each.listed for each in summary.found.values()),
        checks_clear=summary.clear,
        checks_unknown=len(summary.unknown)
        + len(checks_of(meta.system).keys() - {each.check_id for each in summary.verdicts}),
    )


def title_of(check_id: str) -> str:
    """A check's title; its id if this version does not know it."""
    return BY_ID[check_id].title if check_id in BY_ID else check_id


UNKNOWN = Worth(critical=0, warnings=0)
"""Worth of a batch whose plan is no longer readable: it comes last."""


def _worths(sources: Sources, plan_id: str) -> Mapping[str, Worth]:
    """Worth of a plan's batches; cached, as a recorded plan never changes."""
    try:
        return sources.kept.get(
            ("worth", plan_id), lambda: {each.batch_id: worth_of(each) for each in sources.ledger.plan(plan_id).batches}
        )
    except LedgerError:  # a question is listed anyway
        return {}


TITLES = {
    CLUSTER_BACKLOG: "Backlog",
    CLUSTER_TOPICS: "Loaded topics",
    CLUSTER_SUBSCRIPTIONS: "Subscriptions",
    CLUSTER_PRODUCERS: "Producers",
    CLUSTER_CONSUMERS: "Consumers",
}


class FigureTrend(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of the cluster over time, oldest first."""

    measure: str
    title: str
    in_bytes: bool
    times: tuple[datetime, ...]
    values: tuple[float, ...]


def cluster_trends(sources: Sources, snapshot: Snapshot) -> tuple[FigureTrend, ...]:
    """Trends of the whole cluster; empty if only one snapshot has figures."""
    return sources.kept.get(("trends", snapshot.uri), lambda: _trends(snapshot))


def _trends(snapshot: Snapshot) -> tuple[FigureTrend, ...]:
    rows = groupby(snapshot.trends(), key=lambda row: row.measure)
    points = {measure: sorted((row.taken_at, row.value) for row in each) for measure, each in rows}
    return tuple(
        FigureTrend(
            measure=measure,
            title=title,
            in_bytes=measure in IN_BYTES,
            times=tuple(at for at, _ in points[measure]),
            values=tuple(value for _, value in points[measure]),
        )
        for measure, title in TITLES.items()
        if len(points.get(measure, ())) > 1
    )
