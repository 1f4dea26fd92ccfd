"""Ledgers with too few copies: by settings, and by the metrics of BookKeeper's auditor and replication workers.

No gauge reports their number: BookKeeper 4.16 and 4.17 have a variable for it that nothing sets. Two figures are
judged: the ledgers that an audit found, less the ledgers copied since; and the findings of the auditor's periodic
checks, if switched on. An audit finds uncopied ledgers of the audit before again, and one lost bookie is audited twice
within a second. So the findings of audits are never added up.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Check, Judgement, Query, unread_servers
from pulsar_steward.checks.earlier import looking_back
from pulsar_steward.model.broker_defaults import WRITE_QUORUM
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, time_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.checks.check import CheckContext, Queried, Row
    from pulsar_steward.model.finding import Finding

FOUND = "replication_auditor_NUM_UNDER_REPLICATED_LEDGERS_sum"
AUDITS = "replication_auditor_NUM_UNDER_REPLICATED_LEDGERS_count"
COPIED = "replication_replication_worker_rereplicate_count"
DELETED = "replication_replication_worker_exceptions_BKNoSuchLedgerExistsOnMetadataServerException"
NO_COPY = "replication_auditor_NUM_LEDGERS_HAVING_NO_REPLICA_OF_AN_ENTRY"
BELOW_ACK_QUORUM = "replication_auditor_NUM_LEDGERS_HAVING_LESS_THAN_AQ_REPLICAS_OF_AN_ENTRY"
BELOW_WRITE_QUORUM = "replication_auditor_NUM_LEDGERS_HAVING_LESS_THAN_WQ_REPLICAS_OF_AN_ENTRY"
OVERDUE = "replication_auditor_NUM_UNDERREPLICATED_LEDGERS_ELAPSED_RECOVERY_GRACE_PERIOD"

GAUGES = {
    "no_copy": "without any copy of an entry",
    "below_ack_quorum": "with fewer copies of an entry than the ack quorum",
    "below_write_quorum": "with fewer copies of an entry than the write quorum",
    "overdue": "longer without a copy than the recovery's grace period",
}
"""Findings of the auditor's periodic checks, the worst first."""

KINDS = ("bookie", "autorecovery")
"""Kinds of servers that may run auto recovery."""

CRITICAL = ("no_copy", "below_ack_quorum")
COUNTERS = ("found", "audits", "copied", "failed", "deleted")


class LedgersUnderReplicatedPolicy(Section):
    """Thresholds for ledgers with too few copies."""

    UNORDERED = frozenset({"ledgers"})

    window_minutes: int = number(1440, "earlier snapshots from which is told what was found and what was copied since")
    warning_ledgers: int = number(1, "that wait for a copy, at least, or that a periodic check found")
    critical_ledgers: int = number(1, "without any copy of an entry, or with fewer than the ack quorum")
    warning_copies: int = number(
        1, "of each entry of new ledgers, or fewer, though there are more bookies; 0: never", ge=0
    )


def figures_in(samples: str) -> str:
    """SQL for auto recovery by samples of processes: counts since their start, results of periodic checks."""
    columns = {
        "started": f"series = '{STARTED}'",
        "found": f"series = '{FOUND}' and success",
        "audits": f"series = '{AUDITS}' and success",
        "copied": f"series = '{COPIED}' and success",
        "failed": f"series = '{COPIED}' and not success",
        "deleted": f"series = '{DELETED}'",
        "no_copy": f"series = '{NO_COPY}'",
        "below_ack_quorum": f"series = '{BELOW_ACK_QUORUM}'",
        "below_write_quorum": f"series = '{BELOW_WRITE_QUORUM}'",
        "overdue": f"series = '{OVERDUE}'",
    }
    figures = ", ".join(f"max(value) filter ({condition}) as {name}" for name, condition in columns.items())
    return f"""
    with told as (select *, labels_json->>'success' is distinct from 'false' as success from {samples}
        where source_kind in {KINDS} and isfinite(value))
    select source, {figures} from told group by source
    having found is not null or copied is not null
    """


READ = f"select distinct source from process_samples where source_kind in {KINDS}"
"""Servers that were read, with or without auto recovery."""

# A namespace's own setting; the default (the smallest of all brokers) has no namespace.
FEW = f"""
with quorums as (
    select namespace, write_quorum as copies from persistence
    union all select null, min(try_cast(value as bigint)) from setting('{WRITE_QUORUM}'))
select namespace, copies, bookies from quorums cross join snapshot
where copies <= $warning_copies and copies < bookies
"""


@dataclass(frozen=True)
class Interval:
    """Work of auto recovery from one snapshot to the next one, over all processes that report it.

    Attributes:
        until: Time of the later snapshot.
        found: Ledgers with too few copies that audits found, counted once for each audit.
        audits: Audits that found such ledgers; one for each lost bookie.
        copied: Ledgers that have all copies again.
        failed: Attempts after which a ledger still had too few copies.
        deleted: Ledgers that were deleted before they had all copies.
    """

    until: datetime
    found: float = 0.0
    audits: float = 0.0
    copied: float = 0.0
    failed: float = 0.0
    deleted: float = 0.0

    @property
    def in_an_audit(self) -> float:
        """Mean number of ledgers per audit: there were at least so many."""
        return self.found / self.audits if self.audits else 0.0


@dataclass(frozen=True)
class Recovery:
    """Work of auto recovery since the audit with the most ledgers still waiting.

    Attributes:
        found: Mean number of ledgers per audit; 0: no audit found any.
        audits: Audits between the two snapshots.
        copied: Ledgers that have all copies again since.
        failed: Attempts since after which a ledger still had too few copies.
        stuck: True if all attempts since the snapshot before failed.
        waiting: Minimum number of ledgers that still wait.
        auditor: Process that found such ledgers last; None: none were found.
        since: Time of the snapshot before these audits; None: all snapshots show some.
    """

    found: int = 0
    audits: int = 0
    copied: int = 0
    failed: int = 0
    stuck: bool = False
    waiting: int = 0
    auditor: str | None = None
    since: datetime | None = None

    @classmethod
    def of(cls, queried: Queried, context: CheckContext[LedgersUnderReplicatedPolicy]) -> Recovery:
        """Adds up the growth of each process's counters from snapshot to snapshot."""
        taken_at = context.about.taken_at
        told: dict[str, list[tuple[datetime, Row]]] = defaultdict(list)
        for row in queried["figures_before"].rows:
            told[row["source"]].append((row["taken_at"], row))
        for row in queried["figures"].rows:
            told[row["source"]].append((taken_at, row))
        looks = sorted({*(each.taken_at for each in context.about.earlier), taken_at})
        first_look = min((moment for rows in told.values() for moment, _ in rows), default=taken_at).timestamp()
        sums = {moment: dict.fromkeys(COUNTERS, 0.0) for moment in looks}
        finds: list[tuple[datetime, str]] = []
        for source, rows in told.items():
            for moment, grown in _growth(rows, first_look):
                for name, value in grown.items():
                    sums[moment][name] += value
                if grown["found"] > 0:
                    finds.append((moment, source))
        if not finds:
            return cls()
        intervals = [Interval(moment, **sums[moment]) for moment in looks]
        number = max(
            (each for each, interval in enumerate(intervals) if interval.found),
            key=lambda each: (_left(intervals[each:]), each),
        )
        since = intervals[number:]
        copied, failed = (sum(getattr(each, name) for each in since) for name in ("copied", "failed"))
        stuck = since[-1].failed > 0 and since[-1].copied == 0
        before = [each for each in looks if each < since[0].until]
        return cls(
            found=int(since[0].in_an_audit),
            audits=int(since[0].audits),
            copied=int(copied),
            failed=int(failed),
            stuck=stuck,
            waiting=max(int(_left(since)), int(stuck)),
            auditor=max(finds)[1],
            since=before[-1] if before else None,
        )


def _left(intervals: Sequence[Interval]) -> float:
    """Ledgers that an audit of the first interval found, less the ledgers copied or deleted since."""
    return intervals[0].in_an_audit - sum(each.copied + each.deleted for each in intervals)


def _growth(rows: Sequence[tuple[datetime, Row]], first_look: float) -> Iterator[tuple[datetime, dict[str, float]]]:
    """Yields the growth of a process's counters before each snapshot.

    Counts before its first snapshot are left out, unless the process started after the first look. Otherwise the copies
    could be missing: replication workers that copied the ledgers of an old audit may have restarted since.
    """
    before: Row | None = None
    for moment, row in sorted(rows, key=lambda each: each[0]):
        if before is not None and before["started"] == row["started"]:
            yield moment, {name: max(0.0, (row[name] or 0) - (before[name] or 0)) for name in COUNTERS}
        elif row["started"] is not None and row["started"] >= first_look:
            yield moment, {name: row[name] or 0.0 for name in COUNTERS}
        before = row


def judge(queried: Queried, context: CheckContext[LedgersUnderReplicatedPolicy]) -> Judgement:
    """One finding of ledgers that wait for copies, and one for each setting by which new ledgers have too few."""
    few = tuple(_few(row, context.about.cluster) for row in queried["few"].rows)
    rows = queried["figures"].rows
    gauges = {name: int(max((row[name] or 0 for row in rows), default=0)) for name in GAUGES}
    recovery = Recovery.of(queried, context)
    limits = context.limits
    critical = any(gauges[name] >= limits.critical_ledgers for name in CRITICAL)
    if critical or max(recovery.waiting, *gauges.values()) >= limits.warning_ledgers:
        auditors = sorted(str(row["source"]) for row in rows if any(row[name] for name in GAUGES))
        auditor = recovery.auditor or next(iter(auditors), str(rows[0]["source"]))
        finding = CHECK.finding(
            severity=Severity.CRITICAL if critical else Severity.WARNING,
            subject=auditor,
            evidence=" ".join(_sentences(auditor, gauges, recovery)),
            figures={
                **gauges,
                "audits": recovery.audits,
                "ledgers_copied": recovery.copied,
                "ledgers_found": recovery.found,
                "ledgers_waiting": recovery.waiting,
                "tries_failed": recovery.failed,
            },
        )
        few = (finding, *few)
    if few:
        return Judgement(findings=few, more=queried["few"].more, graded=queried["few"].more_by(Severity.INFO))
    missing = unread_servers(context, KINDS, {row["source"] for row in queried["read"].rows}) or _missing(queried)
    if missing:
        return Judgement(quiet="Nothing was judged.", cannot_tell=missing)
    if not recovery.audits:
        return Judgement(quiet="The auditor found no ledger with too few copies.")
    found = counted(recovery.found, "ledger")
    return Judgement(quiet=f"An audit found {found} with too few copies, and as many have all of them again.")


def _few(row: Row, cluster: str) -> Finding:
    """By the brokers' default a warning; for a namespace somebody chose it, so that it is information."""
    copies, bookies = row["copies"], row["bookies"]
    default = row["namespace"] is None
    who = f"where a namespace sets nothing else ({WRITE_QUORUM})" if default else "by the namespace's own policy"
    return CHECK.finding(
        severity=Severity.WARNING if default else Severity.INFO,
        subject=cluster if default else row["namespace"],
        evidence=(
            f"New ledgers have {counted(copies, 'copy', 'copies')} of each entry {who}, on {bookies:,} bookies:"
            f" without {'one' if copies == 1 else copies} of them a part of the data cannot be read, and with the disks"
            " it is lost."
        ),
        figures={"bookies": bookies, "copies": copies},
    )


def _missing(queried: Queried) -> str | None:
    rows = queried["figures"].rows
    if not rows:
        return (
            "No process of auto recovery was read: collect.metrics_urls has to name the bookies that run it, or"
            " autorecovery=http://HOST:PORT/metrics."
        )
    if all(row["found"] is None for row in rows):
        return "None of the processes that were read is the auditor: collect.metrics_urls has to name all of them."
    if not queried["figures_before"].rows:
        return "Needs an earlier snapshot with the same metrics: what was found is compared with what was copied since."
    return None


def _sentences(auditor: str, gauges: Mapping[str, int], recovery: Recovery) -> Iterator[str]:
    told = [f"{counted(gauges[name], 'ledger')} {words}" for name, words in GAUGES.items() if gauges[name]]
    if told:
        yield f"The last periodic check of the auditor in {auditor} found {', '.join(told)}."
    if recovery.waiting:
        since = "" if recovery.since is None else f" since the snapshot of {time_in_words(recovery.since)}"
        average = f" on average in each of {recovery.audits:,} audits" if recovery.audits > 1 else ""
        failed = f"; {counted(recovery.failed, 'try', 'tries')} did not complete a ledger" if recovery.failed else ""
        lately = ", and none did since the snapshot before" if recovery.stuck else ""
        yield (
            f"The auditor in {auditor} found {counted(recovery.found, 'ledger')} with too few copies{average}{since};"
            f" {counted(recovery.copied, 'has', 'have')} all of them again since: at least"
            f" {counted(recovery.waiting, 'waits', 'wait')}{failed}{lately}."
        )


CHECK = Check(
    check_id="ledgers-under-replicated",
    beware={Harm.AT_RESTART: "Take no bookie down."},
    harm=Harm.AT_RESTART,
    headlines={Harm.AT_RESTART: "Another lost bookie may lose data: ledgers have fewer copies than they should"},
    order=48,
    title="Ledgers have fewer copies than they should",
    advice=(
        "List them: `bookkeeper shell listunderreplicated`; and the bookies that are there: `listbookies -rw`, `-ro`.",
        "Bring the bookie that is gone back, with its disks: what it holds counts again.",
        "Look whether enough writable bookies are left to copy to: as many as an ensemble, in as many racks.",
        "Look whether auto recovery runs and is not turned off: `bookkeeper shell autorecovery -status`.",
        "Take no other bookie down before all are copied: the next one may hold the last copy.",
        "Too few by a setting: E, Qw and Qa of 2 or 3, with room for it; older ledgers keep the copies they have.",
    ),
    source="docs/knowledge.md C, step 1: resources",
    policy=LedgersUnderReplicatedPolicy,
    shards={"figures": Query(figures_in("process_samples")), "read": Query(READ)},
    earlier={"figures_before": looking_back(figures_in("metrics"))},
    cluster={"few": Query(FEW, worst_first="namespace nulls first")},
    judge=judge,
)
