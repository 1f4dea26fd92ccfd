"""Heaps of brokers, bookies and ZooKeeper servers that stay full after collections, not merely between them.

A heap fills up and is collected, so its use at one moment says little. Two figures are judged: the use after the last
collection of the old generation, and, for collectors that collect bit by bit, the lowest use in several snapshots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Query, RowCheck, brokers_of, critical_or_warning, silent_in
from pulsar_steward.checks.earlier import WINDOW, WINDOW_MINUTES, in_time, looking_back
from pulsar_steward.model.measures import STARTED
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import MIB, counted, named, seconds_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Queried, Row

USED = "'jvm_memory_bytes_used', 'jvm_memory_used_bytes'"
LIMIT = "'jvm_memory_bytes_max', 'jvm_memory_max_bytes'"
LEFT = "jvm_memory_pool_collection_used_bytes"
LEFT_LIMIT = "jvm_memory_pool_collection_max_bytes"
"""Series of the heap (in earlier and later names), and of its pools right after their last collection."""

OLD = "(Tenured|Old) Gen|^ZHeap$|^Shenandoah$"
"""Pools in which objects stay, by the collectors' names for them."""

BIT_BY_BIT = "^(G1|Z|Shenandoah)"
"""Pools among these that are collected while they fill up; others are collected only when full."""


class HeapPressurePolicy(Section):
    """Thresholds for the part of a heap that collections do not free."""

    window_minutes: int = Field(WINDOW_MINUTES, ge=1, description=WINDOW)
    minimum_snapshots: int = Field(
        4, ge=2, description="of one process, this one included, of whose uses of the heap the lowest is judged"
    )
    minimum_minutes: int = Field(30, ge=1, description="from the first to the last of them")
    warning_percent: int = Field(
        85, ge=1, le=100, description="in use after collections; a healthy process keeps half of it free or more"
    )
    critical_percent: int = Field(95, ge=1, le=100, description="the same, when it collects without end, or ends")


def heaps_in(samples: str) -> str:
    """SQL for the heap of each process: its use, and its old generation's use after the last collection.

    Args:
        samples: Table to read: `process_samples`, or `metrics`, which needs no preparation.
    """
    return f"""
    with told as (
        select *, labels_json->>'area' = 'heap' as heap, coalesce(labels_json->>'pool', '') as pool,
            regexp_matches(pool, '{OLD}') as old
        from {samples}
        where isfinite(value) and series in ('{STARTED}', {USED}, {LIMIT}, '{LEFT}', '{LEFT_LIMIT}'))
    select source, source_kind, max(value) filter (series = '{STARTED}') as started,
        max(value) filter (series in ({USED}) and heap) as used_bytes,
        max(value) filter (series in ({LIMIT}) and heap) as limit_bytes,
        max(value) filter (series = '{LEFT}' and old) as left_bytes,
        max(value) filter (series = '{LEFT_LIMIT}' and old and value > 0) as left_limit_bytes,
        coalesce(bool_or(old and regexp_matches(pool, '{BIT_BY_BIT}')), false) as bit_by_bit,
        coalesce(bool_or(old), false) as tells_pools
    from told group by source, source_kind
    having limit_bytes > 0 and used_bytes is not null
    """


KEPT = f"""
with told as ({in_time("heaps", "heaps_before")}),
seen as (
    select source, source_kind, started, count(*) as snapshots, min(used_bytes * 100 / limit_bytes) as least_percent,
        $now::double - min(moment) as over_seconds
    from told group by source, source_kind, started)
select now.*, now.used_bytes * 100 / now.limit_bytes as used_percent, seen.snapshots, seen.over_seconds,
    if(now.left_bytes > 0, least(now.left_bytes, now.used_bytes) * 100
        / coalesce(now.left_limit_bytes, now.limit_bytes), null) as left_percent,
    if(now.bit_by_bit and seen.snapshots >= $minimum_snapshots and seen.over_seconds >= $minimum_minutes * 60,
        seen.least_percent, null) as lowest_percent,
    greatest(coalesce(left_percent, 0), coalesce(lowest_percent, 0)) as percent
from heaps now left join seen
    on seen.source = now.source and seen.source_kind = now.source_kind
        and seen.started is not distinct from now.started
"""
"""Shares of each heap still in use after collections; both figures are null if not known.

`left_percent` may come from an old collection: if less is in use now, the present use counts.
"""

FOUND = "select *, percent >= $critical_percent as critical from kept where percent >= $warning_percent"

UNDECIDED = """
select source, tells_pools from kept
where used_percent >= $warning_percent and percent < $warning_percent
    and (not tells_pools or (bit_by_bit and lowest_percent is null))
"""
"""Full heaps of processes that do not report their pools, or were not seen often enough."""


def _missing(queried: Queried, limits: HeapPressurePolicy) -> str | None:
    if silent := brokers_of(queried["silent"]):
        return f"The snapshot has no figures of the heap of {named(silent)}."
    if untold := [row["source"] for row in queried["undecided"].rows if not row["tells_pools"]]:
        return f"Full now, and without figures of what collections leave: {named(untold)}."
    if undecided := [row["source"] for row in queried["undecided"].rows]:
        return (
            f"Full now, and seen in fewer than {counted(limits.minimum_snapshots, 'snapshot')} over"
            f" {counted(limits.minimum_minutes, 'minute')}: {named(undecided)}."
        )
    return None if queried["kept"].rows else "The snapshot has no figures of any heap."


def _quiet(queried: Queried) -> str:
    rows = queried["kept"].rows
    if not rows:
        return "Nothing was judged."
    most = max(row["percent"] or row["used_percent"] for row in rows)
    heaps = "the only heap has" if len(rows) == 1 else f"of {len(rows):,} heaps, the fullest has"
    return f"After collections, {heaps} at most {most:.0f} % in use."


def _evidence(row: Row) -> str:
    who = f"{row['source']} ({row['source_kind']})"
    now = f"{row['used_bytes'] / MIB:,.0f} of {row['limit_bytes'] / MIB:,.0f} MiB are in use now"
    sentences = []
    if row["left_percent"] is not None and row["left_percent"] == row["percent"]:
        left = min(row["left_bytes"], row["used_bytes"]) / MIB
        sentences.append(
            f"The last collection of the old generation of {who} left {row['left_percent']:.0f} % of it in use"
            f" ({left:,.0f} MiB)."
        )
    if row["lowest_percent"] is not None and row["lowest_percent"] == row["percent"]:
        sentences.append(
            f"In {counted(row['snapshots'], 'snapshot')} over {seconds_in_words(row['over_seconds'], rounded=True)},"
            f" {who} never used less than {row['lowest_percent']:.0f} % of its heap."
        )
    return " ".join([*sentences, f"Of its heap, {now}."])


# Judges the use of each heap after collections; low use now clears a process, high use alone proves nothing.
CHECK = RowCheck(
    check_id="heap-pressure",
    order=12,
    title="A heap stays full",
    advice=(
        "Look what fills it: `jmap -histo:live PID | head -30`, which collects first, and so stops it for a moment.",
        "On a broker, look for delayed messages kept in memory, topics and cursors; spread them over more brokers.",
        "On ZooKeeper, look at the number of nodes (check zookeeper-slow names it): all of them are in its heap.",
        "Give the process a larger heap (`-Xmx`), within what its machine or container has.",
    ),
    source="docs/knowledge.md C, step 1: resources",
    policy=HeapPressurePolicy,
    shards={"heaps": Query(heaps_in("process_samples"))},
    earlier={"heaps_before": looking_back(heaps_in("metrics"))},
    cluster={
        "kept": Query(KEPT),
        "found": Query(FOUND, worst_first="critical desc, percent desc, source, source_kind"),
        "undecided": Query(UNDECIDED),
        "silent": silent_in("heaps"),
    },
    severity=critical_or_warning,
    subject="source",
    evidence=_evidence,
    figures=lambda row: {
        "left_bytes": row["left_bytes"] if row["left_percent"] is not None else None,
        "limit_bytes": row["limit_bytes"],
        "lowest_percent": row["lowest_percent"],
        "percent": row["percent"],
        "snapshots": row["snapshots"],
        "used_bytes": row["used_bytes"],
    },
    missing=lambda queried, context: _missing(queried, context.limits),
    quiet=lambda queried, _context: _quiet(queried),
)
