"""Garbage collection of brokers and bookies: how much of their time it takes, and how long full collections last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Question
from pulsar_steward.checks.resources.silence import brokers_of, silent_in
from pulsar_steward.checks.views import STARTED
from pulsar_steward.checks.words import named
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answer, Answers, CheckContext, Row


class GcPressurePolicy(Section):
    """When garbage collection takes too much of a process."""

    minimum_age_seconds: int = Field(
        60,
        ge=1,
        description="younger processes are not judged: a broker's start alone collects for 0.7 s of its first 12",
    )
    warning_share_percent: int = Field(
        5,
        ge=1,
        le=100,
        description="time stood still for collections, of the process's lifetime; a healthy one: below 1",
    )
    critical_share_percent: int = Field(15, ge=1, le=100, description="the same, when clients time out")
    minimum_full_collections: int = Field(
        10, ge=1, description="fewer full collections are left alone: a start alone makes 2 to 5"
    )
    warning_full_collections_per_hour: int = Field(12, ge=1, description="full collections: one in five minutes")
    warning_full_pause_milliseconds: int = Field(
        2000, ge=1, description="mean length of a full collection; producers time out after 30 s, many callers sooner"
    )
    critical_full_pause_milliseconds: int = Field(
        10_000, ge=1, description="the same; a third of the 30 s after which the metadata session ends"
    )


SECONDS = "jvm_gc_collection_seconds_sum"
COLLECTIONS = "jvm_gc_collection_seconds_count"

CONCURRENT = "(Cycles|Concurrent GC)$"
"""Collectors (ZGC, Shenandoah, G1's concurrent part) that work while the process does: their time is no pause."""

FULL = "^(G1 Old Generation|MarkSweepCompact|PS MarkSweep)$"
"""Collectors that stop the process for the whole heap; ZGC and Shenandoah have none."""

COSTS = f"""
with marked as (
    select *, regexp_matches(coalesce(labels_json->>'gc', ''), '{CONCURRENT}') as beside,
        regexp_matches(coalesce(labels_json->>'gc', ''), '{FULL}') as of_all
    from process_samples where series in ('{SECONDS}', '{COLLECTIONS}', '{STARTED}')),
summed as (
    select source, source_kind, $now - max(value) filter (series = '{STARTED}') as age_seconds,
        coalesce(sum(value order by value) filter (series = '{SECONDS}' and not beside), 0) as paused_seconds,
        coalesce(sum(value order by value) filter (series = '{SECONDS}' and of_all), 0) as full_seconds,
        coalesce(sum(value order by value) filter (series = '{COLLECTIONS}' and of_all), 0) as full_collections
    from marked group by source, source_kind having bool_or(series = '{COLLECTIONS}'))
select *, if(age_seconds > 0, paused_seconds * 100 / age_seconds, null) as share_percent,
    if(age_seconds > 0, full_collections * 3600 / age_seconds, null) as full_per_hour,
    if(full_collections > 0, full_seconds * 1000 / full_collections, 0) as full_pause_ms
from summed
"""
"""What collections cost each process since it started."""

FOUND = """
select *, share_percent >= $critical_share_percent or full_pause_ms >= $critical_full_pause_milliseconds as critical
from costs
where age_seconds >= $minimum_age_seconds
    and (share_percent >= $warning_share_percent or full_pause_ms >= $warning_full_pause_milliseconds
        or (full_collections >= $minimum_full_collections and full_per_hour >= $warning_full_collections_per_hour))
"""

KINDS = """
select source_kind, count(*) as processes, max(share_percent) as most from costs
where age_seconds >= $minimum_age_seconds group by source_kind
"""

YOUNG = "select source from costs where not coalesce(age_seconds >= $minimum_age_seconds, false)"


def judge(answers: Answers, context: CheckContext[GcPressurePolicy]) -> Judgement:
    """By the share of the lifetime, and by how often and how long the whole heap is collected."""
    found = answers["found"]
    if found.rows:
        return Judgement(findings=tuple(map(_finding, found.rows)), more=found.more)
    return Judgement(quiet=_quiet(answers["kinds"]), cannot_tell=_missing(answers, context.limits))


def _missing(answers: Answers, limits: GcPressurePolicy) -> str | None:
    if silent := brokers_of(answers["silent"]):
        return f"The snapshot has no garbage collection metrics of {named(silent)}."
    if young := [row["source"] for row in answers["young"].rows]:
        least = f"{limits.minimum_age_seconds} s"
        return f"Rates say nothing of a process younger than {least}, or of unknown age: {named(young)}."
    return None if answers["costs"].rows else "The snapshot has no garbage collection metrics."


def _quiet(kinds: Answer) -> str:
    parts = [
        f"at most {row['most']:.1f} % of the time of {row['processes']:,} {row['source_kind']}(s)" for row in kinds.rows
    ]
    return f"Since their start, garbage collection took {', '.join(parts)}." if parts else "Nothing was judged."


def _finding(row: Row) -> Finding:
    minutes = row["age_seconds"] / 60
    full = (
        f"; {row['full_collections']:,.0f} full collections ({row['full_per_hour']:,.1f} an hour)"
        f" of {row['full_pause_ms']:,.0f} ms on average"
        if row["full_collections"]
        else ""
    )
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if row["critical"] else Severity.WARNING,
        subject=row["source"],
        evidence=(
            f"{row['source']} ({row['source_kind']}) stood still for garbage collection {row['share_percent']:.1f} %"
            f" of the {minutes:,.0f} minutes since its start ({row['paused_seconds']:,.1f} s){full}."
        ),
        figures={
            "age_seconds": int(row["age_seconds"]),
            "full_collections": int(row["full_collections"]),
            "full_pause_milliseconds": int(row["full_pause_ms"]),
            "paused_milliseconds": int(row["paused_seconds"] * 1000),
            "share_percent": int(row["share_percent"]),
        },
    )


CHECK = Check(
    check_id="gc-pressure",
    order=10,
    title="Garbage collection takes too much of a process's time",
    advice=(
        "Look whether it still does, as the figures are since its start: `jstat -gcutil PID 1000 10` on that machine.",
        "Look at what fills the heap (`jmap -histo PID | head -30`): delayed messages kept in memory, cursors, topics.",
        "Give the process a larger heap, or spread its topics over more brokers.",
        "Restart it outside peak hours when full collections no longer free anything; its clients reconnect.",
    ),
    source="docs/knowledge.md C, step 1: resources and GC",
    policy=GcPressurePolicy,
    shards={"costs": Question(COSTS)},
    cluster={
        "found": Question(FOUND, worst_first="critical desc, share_percent desc, source, source_kind"),
        "kinds": Question(KINDS),
        "silent": silent_in("costs"),
        "young": Question(YOUNG),
    },
    judge=judge,
)
