"""Direct memory of brokers and bookies, which holds messages in transit: its usage near the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Query, RowCheck, critical_or_warning
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import MIB, named

if TYPE_CHECKING:
    from pulsar_steward.checks.check import QueryRows, Row


class DirectMemoryPressurePolicy(Section):
    """Thresholds for direct memory, which holds messages in transit."""

    warning_percent: int = Field(
        85, ge=1, le=100, description="used of the limit; the pool keeps what it took, so 50 to 70 are usual under load"
    )
    critical_percent: int = Field(95, ge=1, le=100, description="the same, when the next chunk may fail")


USED = "jvm_memory_direct_bytes_used"
LIMIT = "jvm_memory_direct_bytes_max"

MEASURED = f"""
select * from (
    select source, source_kind, max(value) filter (series = '{USED}') as used_bytes,
        max(value) filter (series = '{LIMIT}') as limit_bytes
    from process_samples where series in ('{USED}', '{LIMIT}') group by source, source_kind)
where limit_bytes > 0 and used_bytes is not null
"""

MEMORY = """
select source, coalesce(source_kind, 'broker') as kind, used_bytes, limit_bytes,
    coalesce(used_bytes * 100 / limit_bytes, direct_memory_percent) as percent
from measured full join (select broker as source, direct_memory_percent from brokers where read) using (source)
"""
"""Usage of the direct memory of each process: by its metrics, else by its load report.

The percentage is null if neither has it; the bytes are null if only the load report has it.
"""

FOUND = "select *, percent >= $critical_percent as critical from memory where percent >= $warning_percent"


def _missing(memory: QueryRows) -> str | None:
    silent = [row["source"] for row in memory.rows if row["percent"] is None]
    if silent:
        return f"Neither metrics nor load report tell the direct memory of {named(silent)}."
    return None if memory.rows else "No direct memory was read of any process."


def _quiet(memory: QueryRows) -> str:
    most = max((row["percent"] for row in memory.rows if row["percent"] is not None), default=None)
    if most is None:
        return "Nothing was judged."
    return f"Of {len(memory.rows):,} process(es), the fullest uses {most:.0f} % of its direct memory."


def _evidence(row: Row) -> str:
    known = row["used_bytes"] is not None
    bytes_words = f" ({row['used_bytes'] / MIB:,.0f} of {row['limit_bytes'] / MIB:,.0f} MiB)" if known else ""
    return f"{row['source']} ({row['kind']}) has taken {row['percent']:.0f} % of its direct memory{bytes_words}."


# Judges only the usage near the limit: the pool keeps all that it ever allocated.
CHECK = RowCheck(
    check_id="direct-memory-pressure",
    order=20,
    title="Direct memory is nearly used up",
    advice=(
        "Raise `-XX:MaxDirectMemorySize`, within what the machine or container has.",
        "On a broker, lower `managedLedgerCacheSizeMB` or `maxMessagePublishBufferSizeInMB`, which are taken from it.",
        "On a bookie, lower `dbStorage_writeCacheMaxSizeMb` or `dbStorage_readAheadCacheMaxSizeMb`.",
        "Look for `OutOfDirectMemoryError` in its log: then writes are already failing.",
    ),
    source="docs/knowledge.md C, step 1: resources; apache/pulsar#21168",
    policy=DirectMemoryPressurePolicy,
    shards={"measured": Query(MEASURED)},
    cluster={"memory": Query(MEMORY), "found": Query(FOUND, worst_first="percent desc, source, kind")},
    severity=critical_or_warning,
    subject="source",
    evidence=_evidence,
    figures=("percent", "limit_bytes", "used_bytes"),
    missing=lambda queried, _context: _missing(queried["memory"]),
    quiet=lambda queried, _context: _quiet(queried["memory"]),
)
