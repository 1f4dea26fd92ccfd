"""ZooKeeper servers that respond slowly, by their own metrics: requests, the transaction log's disk, waiting requests.

The judged time is since the snapshot before, or since the process's start if there is none. Waiting requests are a
figure of one moment: they count if two consecutive snapshots show them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Query, RowCheck, if_any, if_none, ranked, unread_servers
from pulsar_steward.checks.earlier import (
    LOOKS,
    ComparingPolicy,
    growth,
    in_time,
    looking_back,
    of_previous,
    since_words,
)
from pulsar_steward.model.measures import STARTED
from pulsar_steward.model.section import number
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Row

READS, READING = "readlatency_count", "readlatency_sum"
UPDATES, UPDATING = "updatelatency_count", "updatelatency_sum"
FSYNCS, SYNCING = "fsynctime_count", "fsynctime_sum"
OUTSTANDING = "outstanding_requests"
NODES = "znode_count"

COUNTERS = ("reads", "reading_ms", "updates", "updating_ms", "fsyncs", "syncing_ms")


class ZookeeperSlowPolicy(ComparingPolicy):
    """Thresholds for ZooKeeper servers, by their own metrics."""

    minimum_operations: int = number(20, "of a kind since the snapshot before; the mean of fewer says nothing")
    warning_request_milliseconds: int = number(
        100, "mean of reads or of writes, from their arrival at the server to its answer"
    )
    critical_request_milliseconds: int = number(1000, "the same, when every topic load is felt")
    warning_fsync_milliseconds: int = number(
        50,
        "mean of forcing the transaction log to its disk, which every write waits for; a disk of its own takes 1 to 10",
    )
    critical_fsync_milliseconds: int = number(500, "the same; ZooKeeper itself warns of one of 1000")
    warning_outstanding_requests: int = number(
        100, "requests that wait in two snapshots in a row; in one, it is information"
    )
    critical_outstanding_requests: int = number(
        300,
        "the same: of three servers, each reads no more from its clients from 333 on (`globalOutstandingLimit`, 1000)",
    )


def figures_in(samples: str) -> str:
    """SQL for ZooKeeper servers by samples of processes: counts and milliseconds since the start, waiting requests."""
    counters = (READS, READING, UPDATES, UPDATING, FSYNCS, SYNCING)
    columns = dict(zip(COUNTERS, counters, strict=True))
    columns |= {"started": STARTED, "outstanding": OUTSTANDING, "nodes": NODES}
    figures = ", ".join(f"max(value) filter (series = '{series}') as {name}" for name, series in columns.items())
    return f"""
    select source, {figures} from {samples}
    where source_kind = 'zookeeper' and isfinite(value)
        and series in ({", ".join(f"'{series}'" for series in columns.values())})
    group by source having bool_or(series in ('{READS}', '{UPDATES}', '{FSYNCS}', '{OUTSTANDING}'))
    """


def _mean(milliseconds: str, count: str) -> str:
    return f"if(grown_{count} >= $minimum_operations, grown_{milliseconds} / grown_{count}, null)"


SPANS = f"""
with told as ({in_time("figures", "figures_before")}),
spans as ({growth("told", ("source",), COUNTERS)})
select now.*, previous.outstanding as outstanding_before,
    {_mean("reading_ms", "reads")} as read_ms, {_mean("updating_ms", "updates")} as update_ms,
    {_mean("syncing_ms", "fsyncs")} as fsync_ms, greatest(read_ms, update_ms) as request_ms
from spans now left join {of_previous("figures_before")} previous using (source)
where now.moment = $now::double
"""
"""Growth of each server's counters since the snapshot before it, or since its start if there is none.

Means over too few operations are null; `request_ms` is the longer one of reads and writes.
"""

FOUND = """
with ranked as (
    select *, case
        when request_ms >= $critical_request_milliseconds or fsync_ms >= $critical_fsync_milliseconds
            or least(outstanding, coalesce(outstanding_before, 0)) >= $critical_outstanding_requests then 2
        when request_ms >= $warning_request_milliseconds or fsync_ms >= $warning_fsync_milliseconds
            or least(outstanding, coalesce(outstanding_before, 0)) >= $warning_outstanding_requests then 1
        when outstanding >= $warning_outstanding_requests then 0 end as rank
    from spans)
select * from ranked where rank is not null
"""
"""Servers that are slow; `rank`: 2 critical, 1 warning, 0 information."""

WORST_FIRST = "rank desc, greatest(request_ms, fsync_ms) desc nulls last, outstanding desc nulls last, source"

JUDGED = """
select count(*) as servers, max(request_ms) as request_ms, max(fsync_ms) as fsync_ms,
    bool_or(since is not null) as compared
from spans
"""


def _quiet(row: Row) -> str:
    if not row["servers"]:
        return "Nothing was judged."
    since = "the snapshot before" if row["compared"] else "their start"
    means = [
        f"{row[name]:,.0f} ms on average to {what}"
        for name, what in (("request_ms", "answer requests"), ("fsync_ms", "force their transaction log to its disk"))
        if row[name] is not None
    ]
    took = f" took at most {' and '.join(means)}" if means else " had next to nothing to do"
    return f"Since {since}, {counted(row['servers'], 'ZooKeeper server')}{took}."


def _sentence(row: Row) -> str:
    parts = [
        f"{row[mean]:,.0f} ms on average to {what} ({counted(row[count], *nouns)})"
        for mean, count, what, nouns in (
            ("update_ms", "grown_updates", "answer a write", ("write",)),
            ("read_ms", "grown_reads", "answer a read", ("read",)),
            ("fsync_ms", "grown_fsyncs", "force its transaction log to the disk", ("time",)),
        )
        if row[mean] is not None
    ]
    took = f"Since {since_words(row)}, ZooKeeper server {row['source']} took {', '.join(parts)}."
    sentences = [took] if parts else []
    if row["outstanding"] is not None:
        waiting = counted(row["outstanding"], "request waits", "requests wait")
        earlier = row["outstanding_before"]
        before = "" if earlier is None else f", and {earlier:,.0f} in the snapshot before"
        sentences.append(f"In {row['source']} {waiting} now{before}.")
    if row["nodes"] is not None:
        sentences.append(f"It holds {counted(row['nodes'], 'node')}.")
    return " ".join(sentences)


# Judges each server by its means of reads, writes and forced writes, and by repeatedly waiting requests.
CHECK = RowCheck(
    check_id="zookeeper-slow",
    harm=Harm.SLOW,
    order=32,
    title="A ZooKeeper server answers slowly, by its own metrics",
    advice=(
        "Where forcing the log takes long: give its transaction log (`dataLogDir`) a disk that nothing else writes to.",
        "Look who else writes to that disk: `iostat -x 5`; snapshots, bookies and logs do not belong there.",
        "Where it does not, look at the process: collector pauses (`jstat -gcutil PID 1000 10`), swapping, CPU.",
        "Where requests wait and it is quick: find who asks that much (`echo cons | nc HOST 2181`).",
    ),
    source="docs/knowledge.md C: ZooKeeper slow or stalled",
    policy=ZookeeperSlowPolicy,
    shards={"figures": Query(figures_in("process_samples"))},
    earlier={"looks": LOOKS, "figures_before": looking_back(figures_in("metrics"))},
    cluster={
        "spans": Query(SPANS),
        "found": Query(FOUND, worst_first=WORST_FIRST),
        "judged": Query(JUDGED),
        "too_few": Query("select source from spans where request_ms is null and fsync_ms is null"),
        "other_store": Query("select metadata_store from snapshot where metadata_store <> 'zk'"),
    },
    severity=ranked,
    subject="source",
    evidence=_sentence,
    figures=lambda row: {
        "fsync_milliseconds": row["fsync_ms"],
        "fsyncs": row["grown_fsyncs"],
        "nodes": row["nodes"],
        "outstanding_requests": row["outstanding"],
        "outstanding_requests_before": row["outstanding_before"],
        "read_milliseconds": row["read_ms"],
        "reads": row["grown_reads"],
        "seconds": row["seconds"],
        "update_milliseconds": row["update_ms"],
        "updates": row["grown_updates"],
    },
    missing=(
        if_any("other_store", "The metadata store is {names}, not ZooKeeper: its servers are not judged."),
        lambda queried, context: unread_servers(
            context, ("zookeeper",), {row["source"] for row in queried["figures"].rows}
        ),
        if_none(
            "figures", "The snapshot has no metrics of ZooKeeper itself: name its servers in `collect.metrics_urls`."
        ),
        if_any("too_few", "Too few requests yet (below {limits.minimum_operations}) to judge {names}."),
    ),
    quiet=lambda queried, _context: _quiet(queried["judged"].one),
)
