"""Latency of the metadata store as brokers see it, and the time lost in its stalls.

Judged is the time since the snapshot before, or since the process's start if there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Question
from pulsar_steward.checks.earlier import WINDOW, WINDOW_MINUTES, looking_back
from pulsar_steward.checks.resources.metadata_operations import OPERATIONS, SPANS, WAITING, operations_in
from pulsar_steward.checks.resources.silence import brokers_of, silent_in
from pulsar_steward.checks.words import named
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answers, CheckContext, Row


class MetadataLatencyPolicy(Section):
    """Thresholds for the latency of the metadata store as brokers measure it."""

    window_minutes: int = Field(WINDOW_MINUTES, ge=1, description=WINDOW)
    minimum_operations: int = Field(
        20, ge=1, description="operations of a kind since the snapshot before; the mean of fewer says nothing"
    )
    warning_mean_milliseconds: int = Field(
        100,
        ge=1,
        description="mean of a kind of operation; 2 to 7 on a busy machine, 25 in the first seconds of a broker",
    )
    critical_mean_milliseconds: int = Field(1000, ge=1, description="the same, when every topic load is felt")
    settling_minutes: int = Field(
        10,
        ge=1,
        description="age of a process until which a mean since its start is information only: it is of the start",
    )
    minimum_slow_operations: int = Field(
        10, ge=1, description="operations over a second, or reads that failed; fewer are left alone"
    )
    warning_slow_percent: int = Field(1, ge=1, le=100, description="operations over a second, of all of a kind")
    warning_lost_percent: int = Field(
        5,
        ge=1,
        description="time that operations over a second took, of the time between two snapshots (many may wait at once,"
        " so it may be over 100): a warning where some took over 5 s, or where two snapshots in a row show it",
    )
    warning_failed_percent: int = Field(
        1, ge=1, le=100, description="reads that failed, of all; one of a node that is not there does not fail"
    )


HEARD = f"select distinct source from process_samples where series = '{OPERATIONS}'"

FOUND = """
with judged as (
    select *, coalesce(grown_operations >= $minimum_operations and mean_ms >= $critical_mean_milliseconds, false)
            as standing,
        coalesce(grown_operations >= $minimum_operations and mean_ms >= $warning_mean_milliseconds, false) as late,
        coalesce(since is null and seconds < 60 * $settling_minutes, false) as settling,
        coalesce(grown_over_1000 >= $minimum_slow_operations and slow_percent >= $warning_slow_percent, false)
            as many_slow,
        coalesce(grown_over_1000 >= $minimum_slow_operations and lost_percent >= $warning_lost_percent, false) as lost,
        slow_before >= $minimum_slow_operations and lost_percent_before >= $warning_lost_percent as lost_before,
        coalesce(since is not null and grown_over_5000 >= 1, false) as stalled,
        operation = 'get' and grown_failed >= $minimum_slow_operations
            and grown_failed * 100 >= $warning_failed_percent * (grown_operations + grown_failed) as failing
    from spans),
ranked as (
    select *, case when standing then 2
        when (late and not settling) or many_slow or failing or (lost and (stalled or lost_before)) then 1
        when late or lost or stalled then 0 end as rank
    from judged),
worst as (
    select * from ranked where rank is not null
    qualify row_number() over (
        partition by source, source_kind, store
        order by rank desc, mean_ms desc nulls last, lost_seconds desc, operation desc) = 1)
select worst.*, wait_ms from worst left join waiting using (source, store)
"""
"""The worst kind of slow operation of each process and store; `rank`: 2 critical, 1 warning, 0 information."""

WORST_FIRST = "rank desc, mean_ms desc nulls last, lost_seconds desc, source, store, source_kind"

JUDGED = """
select count(distinct source) as sources, max(mean_ms) filter (grown_operations >= $minimum_operations) as most
from spans where operations >= $minimum_operations
"""

TOO_FEW = "select source from timed group by source having max(operations) < $minimum_operations"


def judge(answers: Answers, context: CheckContext[MetadataLatencyPolicy]) -> Judgement:
    """Judges by the mean of each kind of operation, by the time lost in those over a second, and by failed reads."""
    found = answers["found"]
    if found.rows:
        return Judgement(findings=tuple(map(_finding, found.rows)), more=found.more)
    return Judgement(quiet=_quiet(answers["judged"].one, context.limits), cannot_tell=_missing(answers, context.limits))


def _missing(answers: Answers, limits: MetadataLatencyPolicy) -> str | None:
    if silent := brokers_of(answers["silent"]):
        return f"The snapshot has no metadata latencies of {named(silent)}."
    if few := [row["source"] for row in answers["too_few"].rows]:
        return f"Too few metadata operations yet (below {limits.minimum_operations}) to judge {named(few)}."
    return None if answers["timed"].rows else "The snapshot has no metadata latencies."


def _quiet(row: Row, limits: MetadataLatencyPolicy) -> str:
    if not row["sources"]:
        return "Nothing was judged."
    if row["most"] is None:
        return (
            f"Since the snapshot before, {row['sources']:,} process(es) had fewer than {limits.minimum_operations}"
            " metadata operations of a kind, and none that stalled."
        )
    return f"Metadata operations of {row['sources']:,} process(es) take {row['most']:.0f} ms on average at most."


def _finding(row: Row) -> Finding:
    figures = {
        "failed_operations": int(row["grown_failed"]),
        "operations": int(row["grown_operations"]),
    }
    optional = {
        "mean_milliseconds": row["mean_ms"],
        "seconds": row["seconds"],
        "slow_operations": row["grown_over_1000"],
        "over_5_seconds_operations": row["grown_over_5000"],
        "waiting_milliseconds": row["wait_ms"],
    }
    figures |= {name: int(value) for name, value in optional.items() if value is not None}
    if row["grown_over_1000"] is not None:
        figures["lost_seconds"] = int(row["lost_seconds"])
    return Finding(
        check_id=CHECK.check_id,
        severity=tuple(Severity)[row["rank"]],
        subject=row["source"],
        evidence=_sentence(row),
        figures=figures,
    )


def _sentence(row: Row) -> str:
    since = "its start"
    if row["since"] is not None:
        since = f"the snapshot {seconds_in_words(row['seconds'], rounded=True)} before"
    seen = f"as the {row['source_kind']} {row['source']} saw {row['grown_operations']:,.0f} of them since {since}"
    took = "failed" if row["mean_ms"] is None else f"took {row['mean_ms']:,.0f} ms on average"
    parts = [f"Operations `{row['operation']}` on the {row['store']} {took}, {seen}"]
    if row["grown_over_1000"] is not None:
        share = f"{row['grown_over_1000']:,.0f} ({row['slow_percent']:.1f} %) took over a second"
        lost = ""
        if row["grown_over_1000"]:
            lost = f", together at least {seconds_in_words(row['lost_seconds'], rounded=True)}"
        stalls = f", {row['grown_over_5000']:,.0f} of them over 5 s" if row["grown_over_5000"] else ""
        parts.append(share + stalls + lost)
    if row["grown_failed"]:
        parts.append(f"{row['grown_failed']:,.0f} failed")
    if row["wait_ms"] is not None:
        waits = f"before they are sent, they wait {row['wait_ms']:,.0f} ms on average"
        parts.append(f"{waits} in the {row['source_kind']} itself")
    return "; ".join(parts) + "."


CHECK = Check(
    check_id="metadata-latency",
    order=30,
    title="The metadata store answers slowly, stalls, or fails",
    advice=(
        "Ask each ZooKeeper server: `echo mntr | nc HOST 2181` (zk_avg_latency, zk_outstanding_requests, zk_fsync...).",
        "Give ZooKeeper's transaction log a disk of its own, and look at the collector pauses of its process.",
        "Where most of the time is spent waiting in the broker, look at that broker's CPU and collections first.",
        "Upgrade ZooKeeper 3.4 (ZOOKEEPER-2044).",
    ),
    source="docs/knowledge.md C; ZOOKEEPER-2044",
    policy=MetadataLatencyPolicy,
    shards={
        "timed": Question(operations_in("process_samples")),
        "waiting": Question(WAITING),
        "heard": Question(HEARD),
    },
    earlier={"timed_before": looking_back(operations_in("metrics"))},
    cluster={
        "spans": Question(SPANS),
        "found": Question(FOUND, worst_first=WORST_FIRST),
        "judged": Question(JUDGED),
        "silent": silent_in("heard"),
        "too_few": Question(TOO_FEW),
    },
    judge=judge,
)
