"""How long the metadata store takes to answer brokers and bookies, since their start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Check, Judgement, Question
from pulsar_steward.checks.resources.silence import brokers_of, silent_in
from pulsar_steward.checks.words import named
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Answers, CheckContext, Row


class MetadataLatencyPolicy(Section):
    """When the metadata store answers slowly, as brokers and bookies see it."""

    minimum_operations: int = Field(20, ge=1, description="operations of a kind since the start; fewer say nothing")
    warning_mean_milliseconds: int = Field(
        100,
        ge=1,
        description="mean of a kind of operation; 2 to 7 on a busy machine, 25 in the first seconds of a broker",
    )
    critical_mean_milliseconds: int = Field(1000, ge=1, description="the same, when every topic load is felt")
    minimum_slow_operations: int = Field(10, ge=1, description="operations over a second; fewer are left alone")
    warning_slow_percent: int = Field(1, ge=1, le=100, description="operations over a second, of all of a kind")


MILLISECONDS = "pulsar_metadata_store_ops_latency_ms_sum"
OPERATIONS = "pulsar_metadata_store_ops_latency_ms_count"
BUCKETS = "pulsar_metadata_store_ops_latency_ms_bucket"
WAITED = "pulsar_batch_metadata_store_queue_wait_time_ms_sum"
WAITS = "pulsar_batch_metadata_store_queue_wait_time_ms_count"
SECOND = 1000
"""The bound of the bucket, in milliseconds, beyond which an operation is slow."""

TIMED = f"""
with samples as (
    select source, source_kind, labels_json->>'name' as store, labels_json->>'type' as operation, series, value,
        try_cast(labels_json->>'le' as double) as milliseconds
    from process_samples
    where series in ('{MILLISECONDS}', '{OPERATIONS}', '{BUCKETS}') and labels_json->>'status' = 'success'),
summed as (
    select source, source_kind, store, operation,
        sum(value order by value) filter (series = '{OPERATIONS}') as operations,
        sum(value order by value) filter (series = '{MILLISECONDS}') as milliseconds,
        sum(value order by value) filter (series = '{BUCKETS}' and milliseconds = {SECOND}) as quick
    from samples group by source, source_kind, store, operation)
select source, source_kind, store, operation, operations, milliseconds / operations as mean_ms,
    operations - quick as slow, coalesce((operations - quick) * 100 / operations, 0) as slow_percent
from summed where operations > 0 and milliseconds is not null
"""
"""Operations that succeeded, by process, store and kind; `slow` is null without buckets."""

WAITING = f"""
with sums as (
    select source, labels_json->>'name' as store, sum(value order by value) filter (series = '{WAITED}') as waited,
        sum(value order by value) filter (series = '{WAITS}') as waits
    from process_samples where series in ('{WAITED}', '{WAITS}') group by source, store)
select source, store, waited / waits as wait_ms from sums where waits > 0
"""
"""How long an operation waits in the process itself before it is sent."""

HEARD = f"select distinct source from process_samples where series = '{OPERATIONS}'"

FOUND = """
with late as (
    select *, mean_ms >= $critical_mean_milliseconds as critical from timed
    where operations >= $minimum_operations and (mean_ms >= $warning_mean_milliseconds
        or (slow >= $minimum_slow_operations and slow_percent >= $warning_slow_percent))
    qualify row_number() over (partition by source, source_kind, store order by mean_ms desc, operation desc) = 1)
select late.*, wait_ms from late left join waiting using (source, store)
"""
"""The slowest kind of operation of each process and store that is slow."""

JUDGED = """
select count(distinct source) as sources, max(mean_ms) as most from timed where operations >= $minimum_operations
"""

TOO_FEW = "select source from timed group by source having max(operations) < $minimum_operations"


def judge(answers: Answers, context: CheckContext[MetadataLatencyPolicy]) -> Judgement:
    """By the mean of each kind of operation, and by those that took over a second."""
    found = answers["found"]
    if found.rows:
        return Judgement(findings=tuple(map(_finding, found.rows)), more=found.more)
    return Judgement(quiet=_quiet(answers["judged"].one), cannot_tell=_missing(answers, context.limits))


def _missing(answers: Answers, limits: MetadataLatencyPolicy) -> str | None:
    if silent := brokers_of(answers["silent"]):
        return f"The snapshot has no metadata latencies of {named(silent)}."
    if few := [row["source"] for row in answers["too_few"].rows]:
        return f"Too few metadata operations yet (below {limits.minimum_operations}) to judge {named(few)}."
    return None if answers["timed"].rows else "The snapshot has no metadata latencies."


def _quiet(row: Row) -> str:
    if row["most"] is None:
        return "Nothing was judged."
    return f"Metadata operations of {row['sources']:,} process(es) take {row['most']:.0f} ms on average at most."


def _finding(row: Row) -> Finding:
    figures = {"mean_milliseconds": int(row["mean_ms"]), "operations": int(row["operations"])}
    slow = ""
    if row["slow"] is not None:
        slow = f"; {row['slow']:,.0f} ({row['slow_percent']:.1f} %) took over a second"
        figures |= {"slow_operations": int(row["slow"])}
    waits = ""
    if row["wait_ms"] is not None:
        waits = (
            f"; before they are sent, they wait {row['wait_ms']:,.0f} ms on average in the {row['source_kind']} itself"
        )
        figures |= {"waiting_milliseconds": int(row["wait_ms"])}
    return Finding(
        check_id=CHECK.check_id,
        severity=Severity.CRITICAL if row["critical"] else Severity.WARNING,
        subject=row["source"],
        evidence=(
            f"Operations `{row['operation']}` on the {row['store']} took {row['mean_ms']:,.0f} ms on average, as the"
            f" {row['source_kind']} {row['source']} saw {row['operations']:,.0f} of them since its start{slow}{waits}."
        ),
        figures=figures,
    )


CHECK = Check(
    check_id="metadata-latency",
    order=30,
    title="The metadata store answers slowly",
    advice=(
        "Ask each ZooKeeper server: `echo mntr | nc HOST 2181` (zk_avg_latency, zk_outstanding_requests, zk_fsync...).",
        "Give ZooKeeper's transaction log a disk of its own, and look at the collector pauses of its process.",
        "Where most of the time is spent waiting in the broker, look at that broker's CPU and collections first.",
        "Upgrade ZooKeeper 3.4 (ZOOKEEPER-2044).",
    ),
    source="docs/knowledge.md C; ZOOKEEPER-2044",
    policy=MetadataLatencyPolicy,
    shards={"timed": Question(TIMED), "waiting": Question(WAITING), "heard": Question(HEARD)},
    cluster={
        "found": Question(FOUND, worst_first="mean_ms desc, source, store, source_kind"),
        "judged": Question(JUDGED),
        "silent": silent_in("heard"),
        "too_few": Question(TOO_FEW),
    },
    judge=judge,
)
