"""Disks of bookies that fill up, read-only bookies, and ensembles with more bookies than there are."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query, RowCheck, grouped, unread_servers
from pulsar_steward.checks.earlier import apart, looking_back
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.measures import BOOKIE_STATUS
from pulsar_steward.model.section import Section, number, percent
from pulsar_steward.model.trouble import Harm, by_severity
from pulsar_steward.model.units import DAY, HOUR, counted, seconds_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.checks.check import CheckContext, Queried, Row

WRITABLE = "bookie_ledger_writable_dirs"
DIRECTORY = "^bookie_ledger_dir_(.+)_usage$"
"""Series of a ledger directory's disk, in percent; its name contains the path, with `_` for each non-letter."""


class BookieDiskPolicy(Section):
    """Thresholds for the disks of bookies' ledger directories."""

    UNORDERED = frozenset({"hours"})

    window_minutes: int = number(720, "earlier snapshots from which growth is told")
    minimum_minutes: int = number(30, "over which a disk has to have filled, for a forecast")
    warning_percent: int = percent(85, "of a disk in use: time to order the next one")
    critical_percent: int = percent(92, "the same: major compaction may have stopped at 90")
    full_percent: int = percent(95, "where the bookie stops writing: its `diskUsageThreshold`")
    forecast_from_percent: int = percent(
        60, "of a disk in use; below it growth is left alone, as a new disk fills quickly"
    )
    warning_hours: int = number(48, "until it is full at the rate seen: time to act in daylight")
    critical_hours: int = number(6, "the same: time to act is running out")


def disks_in(samples: str) -> str:
    """SQL for the use of each ledger directory's disk, by samples of processes."""
    return f"""
    select source, regexp_extract(series, '{DIRECTORY}', 1) as directory, max(value) as percent
    from {samples} where source_kind = 'bookie' and regexp_matches(series, '{DIRECTORY}') and isfinite(value)
    group by source, series
    """


STATES = f"""
select source, min(value) filter (series = '{BOOKIE_STATUS}') as status,
    min(value) filter (series = '{WRITABLE}') as writable_directories
from process_samples where source_kind = 'bookie' group by source
"""
"""Bookies that were read; `status`: 1 takes writes, 0 is read-only, -1 is not registered; null if not reported."""

LONGEST_FORECAST_SECONDS = 100 * DAY
"""Longest forecast: if a disk fills more slowly, a few hours of growth say nothing."""


@dataclass(frozen=True)
class Disk:
    """A ledger directory's disk.

    Attributes:
        row: Its row of `disks_in`.
        per_hour: Percent by which it fills per hour; 0: no growth, or unknown.
        seconds_left: Time until the bookie stops writing to it; None: no growth, or too slow for a forecast.
        full_percent: Percent in use at which the bookie stops writing to it.
        rank: 2 critical, 1 warning, 0 neither.
    """

    row: Row
    per_hour: float
    seconds_left: float | None
    full_percent: int
    rank: int

    @classmethod
    def of(cls, row: Row, before: Sequence[Row], context: CheckContext[BookieDiskPolicy]) -> Disk:
        """Judges a disk by its use, and by its growth since earlier snapshots.

        The lower of two rates counts: since the first and since the last of them, as compaction frees much at once.
        """
        limits, percent, now = context.limits, row["percent"], context.about.taken_at
        older = sorted(
            ((now - each["taken_at"]).total_seconds(), each["percent"])
            for each in before
            if apart(now, each["taken_at"])
        )
        per_hour, left = 0.0, None
        if older and older[-1][0] >= 60 * limits.minimum_minutes:
            rates = [float(percent - then) / seconds for seconds, then in (older[0], older[-1])]
            per_hour = max(0.0, min(rates)) * HOUR
        if per_hour > 0 and percent >= limits.forecast_from_percent:
            seconds = max(0.0, limits.full_percent - percent) / per_hour * HOUR
            left = seconds if seconds <= LONGEST_FORECAST_SECONDS else None
        soon = inf if left is None else left
        critical = percent >= limits.critical_percent or soon <= limits.critical_hours * HOUR
        warning = percent >= limits.warning_percent or soon <= limits.warning_hours * HOUR
        return cls(row, per_hour, left, limits.full_percent, 2 if critical else int(warning))


def judge(queried: Queried, context: CheckContext[BookieDiskPolicy]) -> Judgement:
    """A finding for each bookie that is read-only, or whose disk is full or soon will be."""
    before = grouped(queried["disks_before"].rows, "source", "directory")
    disks: dict[str, list[Disk]] = defaultdict(list)
    for row in queried["disks"].rows:
        disks[row["source"]].append(Disk.of(row, before[row["source"], row["directory"]], context))
    for each in disks.values():
        each.sort(key=lambda disk: (-disk.rank, -disk.row["percent"], disk.row["directory"]))
    states = sorted(queried["states"].rows, key=lambda row: str(row["source"]))
    told = [row["status"] for row in states if row["status"] is not None]
    none_writable = bool(told) and max(told) <= 0
    found = [
        _finding(row, disks.get(row["source"], []), none_writable=none_writable)
        for row in states
        if _takes_no_writes(row) or any(disk.rank for disk in disks.get(row["source"], []))
    ]
    found.sort(key=lambda finding: (-finding.figures.get("fullest_percent", 0), finding.subject))
    fullest = max((disk.row["percent"] for each in disks.values() for disk in each), default=0.0)
    missing = unread_servers(context, ("bookie",), {row["source"] for row in states})
    if not missing and not states:
        missing = (
            "No bookie's metrics were read: collect.metrics_urls has to name them (bookie=http://HOST:PORT/metrics)."
        )
    elif not missing and (silent := [row["source"] for row in states if row["source"] not in disks]):
        missing = f"The disks of {', '.join(silent)} are not in the metrics."
    return Judgement(
        findings=tuple(found),
        quiet=f"Of {counted(len(disks), 'bookie')}, the fullest disk has {fullest:.0f} % in use.",
        cannot_tell=missing,
    )


def _takes_no_writes(state: Row) -> bool:
    return state["status"] is not None and bool(state["status"] <= 0)


def _finding(state: Row, disks: Sequence[Disk], *, none_writable: bool) -> Finding:
    no_writes = _takes_no_writes(state)
    rank = max((disk.rank for disk in disks), default=0)
    figures = {"read_only": int(state["status"] == 0), "ledger_directories": len(disks)}
    if no_writes and not figures["read_only"]:
        figures["unregistered"] = 1
    if disks:
        figures["fullest_percent"] = max(int(disk.row["percent"]) for disk in disks)
    if (left := [disk.seconds_left for disk in disks if disk.seconds_left is not None]) and rank:
        figures["seconds_until_full"] = int(min(left))
    if state["writable_directories"] is not None:
        figures["writable_directories"] = int(state["writable_directories"])
    critical = rank > 1 or (no_writes and none_writable)
    return BOOKIE_DISK.finding(
        severity=Severity.CRITICAL if critical else Severity.WARNING,
        subject=state["source"],
        evidence=" ".join(_sentences(state, disks, none_writable=none_writable)),
        figures=figures,
    )


def _sentences(state: Row, disks: Sequence[Disk], *, none_writable: bool) -> Iterator[str]:
    if _takes_no_writes(state):
        others = "no bookie that tells its state takes writes" if none_writable else "all writes go to the others"
        how = "read-only" if state["status"] == 0 else "not registered in the metadata store"
        yield f"Bookie {state['source']} is {how}: {others}."
    if not disks:
        return
    worst, *others_on = disks
    forecast = ""
    if worst.row["percent"] >= worst.full_percent:
        forecast = f": it has come to the {worst.full_percent} % at which the bookie stops writing to it"
    elif worst.seconds_left is not None:
        left = seconds_in_words(worst.seconds_left, rounded=True)
        forecast = f", {worst.per_hour:.2f} % more each hour: the bookie stops writing to it in {left}"
    yield (
        f"On bookie {state['source']}, the disk of ledger directory {worst.row['directory']} has"
        f" {worst.row['percent']:.1f} % in use{forecast}."
    )
    if also := sum(bool(disk.rank) for disk in others_on):
        yield f"Of its {len(disks):,} directories, {counted(also, 'other fills up', 'others fill up')} as well."


BOOKIE_DISK = Check(
    check_id="bookie-disk",
    harm=Harm.SOON,
    order=47,
    title="A bookie's disk fills up, or a bookie is read-only",
    advice=(
        "Find what is stored for long: checks retention-unbounded, retention-too-long, backlog-growing.",
        "Add bookies: new ledgers go there at once; what is written stays where it is until it is deleted.",
        "Look whether garbage collection runs: `isForceGCAllowWhenNoSpace`, `gcWaitTime`, compaction thresholds.",
        "Read-only with room left: somebody set it (`bookkeeper shell readonly`), or another directory is full.",
    ),
    source="docs/knowledge.md C; docs/checks/bookie-disk.md",
    policy=BookieDiskPolicy,
    shards={"disks": Query(disks_in("process_samples")), "states": Query(STATES)},
    earlier={"disks_before": looking_back(disks_in("metrics"))},
    judge=judge,
)


class EnsembleTooLargePolicy(Section):
    """Thresholds for ensembles compared with the number of bookies."""

    information_spare_bookies: int = number(
        1,
        "bookies beyond an ensemble that may be away before no ledger can be made; with fewer it is"
        " information, and nothing where there is one bookie alone",
        ge=0,
    )


DEFAULT = "managedLedgerDefaultEnsembleSize"

# A namespace's own setting; the default (the largest of all brokers) has no namespace.
FOUND = f"""
with sizes as (
    select namespace, ensemble from persistence
    union all select null, max(try_cast(value as bigint)) from setting('{DEFAULT}')),
judged as (
    select namespace, ensemble, bookies, ensemble > bookies as too_large,
        bookies > 1 and ensemble > bookies - $information_spare_bookies as close
    from sizes cross join snapshot where ensemble is not null and bookies > 0)
select * from judged where too_large or close
"""
BOOKIES = f"""
select coalesce(bookies, 0) as bookies,
    (select count(*) from setting('{DEFAULT}') where try_cast(value as bigint) is not null) as told
from snapshot
"""


def _evidence(row: Row) -> str:
    ensemble, bookies = row["ensemble"], row["bookies"]
    who = (
        f"where a namespace sets nothing else ({DEFAULT})"
        if row["namespace"] is None
        else "by the namespace's own policy"
    )
    words = f"Each ledger is spread over {counted(ensemble, 'bookie')} {who}, and the cluster has {bookies:,}: "
    if row["too_large"]:
        words += (
            "no new ledger can be made, so no topic can be loaded, and those that are loaded stop at their next one."
        )
    else:
        may = bookies - ensemble
        words += f"{'while one is' if not may else f'while {may + 1:,} are'} away, no new ledger can be made."
    return words


# A finding for each namespace with such an ensemble, and one for the brokers' default.
ENSEMBLE_TOO_LARGE = RowCheck(
    check_id="ensemble-too-large",
    headlines={Harm.CUT_OFF: "NO NEW LEDGER CAN BE MADE: fewer bookies than a ledger needs"},
    harm=by_severity(Harm.CUT_OFF, Harm.SETTING),
    order=45,
    title="Ledgers are spread over as many bookies as there are, or more",
    advice=(
        "More than there are: lower it at once (`pulsar-admin namespaces set-persistence NS -e E -w QW -a QA`).",
        "Or bring missing bookies back: `pulsar-admin bookies list-bookies` names all that belong to the cluster.",
        "As many as there are: add a bookie, so that one may be away.",
        "What is written already stays where it is; only new ledgers follow the setting.",
    ),
    source="docs/knowledge.md C: ensembles (E, Qw, Qa) that do not fit the bookies",
    policy=EnsembleTooLargePolicy,
    remedied_by="persistence",
    cluster={"found": Query(FOUND, worst_first="too_large desc, ensemble desc, namespace"), "bookies": Query(BOOKIES)},
    severity=lambda row: Severity.CRITICAL if row["too_large"] else Severity.INFO,
    subject="namespace",
    evidence=_evidence,
    figures=("bookies", "ensemble"),
    missing=(
        lambda queried, _context: (
            None if queried["bookies"].one["bookies"] else "The brokers did not tell which bookies there are."
        ),
        lambda queried, _context: None if queried["bookies"].one["told"] else f"{DEFAULT} was not read of any broker.",
    ),
    quiet=lambda queried, _context: (
        f"No ensemble takes more bookies than it should: the cluster has {queried['bookies'].one['bookies']:,}."
    ),
)
