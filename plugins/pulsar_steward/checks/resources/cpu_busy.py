"""Processors that are always busy: brokers by their load report, bookies and ZooKeeper by their CPU time.

No metric gives the number of processors of a bookie or a ZooKeeper server. The policy may set it. If it does not, the
number of busy processors is reported, and is information from a threshold on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Query, RowCheck, ranked
from pulsar_steward.checks.earlier import (
    LOOKS,
    WINDOW,
    WINDOW_MINUTES,
    growth,
    in_time,
    looking_back,
    of_previous,
    since_words,
)
from pulsar_steward.model.measures import STARTED
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted, named

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Queried, Row

SECONDS = "process_cpu_seconds_total"


class CpuBusyPolicy(Section):
    """Thresholds for the use of processors, and their number."""

    window_minutes: int = Field(WINDOW_MINUTES, ge=1, description=WINDOW)
    minimum_age_seconds: int = Field(
        300, ge=1, description="younger processes are not judged by their time since the start, which compiles"
    )
    bookie_processors: int = Field(0, ge=0, description="that each bookie may use, which no series tells; 0: not known")
    zookeeper_processors: int = Field(0, ge=0, description="the same of each ZooKeeper server")
    autorecovery_processors: int = Field(0, ge=0, description="the same of each process of auto recovery")
    warning_percent: int = Field(
        80,
        ge=1,
        le=100,
        description="of its processors busy since the snapshot before; of a broker's, as its load report tells them in"
        " two snapshots in a row, and in one it is information",
    )
    critical_percent: int = Field(95, ge=1, le=100, description="the same, when what comes in waits")
    information_processors: int = Field(
        4, ge=1, description="busy on average, of a process of which nobody said how many it has"
    )


def used_in(samples: str) -> str:
    """SQL for the CPU time of each process since it started.

    Args:
        samples: Table to read: `process_samples`, or `metrics`, which needs no preparation.
    """
    return f"""
    select source, source_kind, max(value) filter (series = '{STARTED}') as started,
        max(value) filter (series = '{SECONDS}') as cpu_seconds
    from {samples} where series in ('{SECONDS}', '{STARTED}') and isfinite(value)
    group by source, source_kind having cpu_seconds is not null
    """


BUSY = f"""
with told as ({in_time("used", "used_before")}),
spans as ({growth("told", ("source", "source_kind"), ("cpu_seconds",))}),
timed as (
    select source, source_kind, since, seconds,
        if(seconds > 0 and (since is not null or seconds >= $minimum_age_seconds), grown_cpu_seconds / seconds, null)
            as processors
    from spans where moment = $now::double),
loads as (
    select now.broker as source, now.cpu_percent as load_percent, previous.cpu_percent as load_percent_before
    from brokers now left join {of_previous("loads_before")} previous using (broker) where now.read)
select source, coalesce(source_kind, 'broker') as kind, since, seconds, processors, load_percent, load_percent_before,
    case kind when 'bookie' then $bookie_processors when 'zookeeper' then $zookeeper_processors
        when 'autorecovery' then $autorecovery_processors else 0 end as there,
    case when there > 0 then processors * 100 / there
        when load_percent_before is not null then least(load_percent, load_percent_before) end as percent
from timed full join loads using (source)
"""
"""Busy processors of each process, and their share of its processors; each null if not known.

The share of a broker comes from its load report, relative to its machine or container: the lower one of this snapshot
and the one before.
"""

FOUND = """
with ranked as (
    select *, case when percent >= $critical_percent then 2 when percent >= $warning_percent then 1
        when load_percent >= $warning_percent then 0
        when percent is null and load_percent is null and processors >= $information_processors then 0 end as rank
    from busy)
select * from ranked where rank is not null
"""
"""Processes that are busy; `rank`: 2 critical, 1 warning, 0 information."""

WORST_FIRST = "rank desc, percent desc nulls last, processors desc nulls last, source, kind"

UNKNOWN = """
select source, kind, processors from busy where percent is null and load_percent is null
"""
"""Processes whose share is not known; the number of their busy processors may be."""


def _missing(queried: Queried, limits: CpuBusyPolicy) -> str | None:
    if not queried["busy"].rows:
        return "Nothing tells how busy any process is."
    unknown = sorted(queried["unknown"].rows, key=lambda row: str(row["source"]))
    if untimed := [row["source"] for row in unknown if row["processors"] is None]:
        return f"Not told, or too young (below {limits.minimum_age_seconds} s) to say how busy: {named(untimed)}."
    if unknown:
        keys = ", ".join(f"`cpu_busy.{kind}_processors`" for kind in sorted({row["kind"] for row in unknown}))
        parts = [f"{row['source']} keeps {row['processors']:.1f} busy" for row in unknown]
        return f"No series tells how many processors these have, and the policy does not ({keys}): {named(parts)}."
    return None


def _quiet(rows: tuple[Row, ...]) -> str:
    shares = [share for row in rows if (share := _share(row)) is not None]
    if not shares:
        return "Nothing was judged."
    return f"Of {counted(len(shares), 'process', 'processes')}, the busiest uses {max(shares):.0f} % of its processors."


def _share(row: Row) -> float | None:
    share = row["percent"] if row["percent"] is not None else row["load_percent"]
    return None if share is None else float(share)


def _evidence(row: Row) -> str:
    sentences = []
    if row["load_percent"] is not None and not row["there"]:
        earlier = row["load_percent_before"]
        before = "" if earlier is None else f", and {earlier:.0f} % in the snapshot before"
        sentences.append(f"Broker {row['source']} reports {row['load_percent']:.0f} % of its processors busy{before}.")
    if row["processors"] is not None:
        if row["there"]:
            share = f" of {row['there']:,}, {row['percent']:.0f} %"
        elif row["load_percent"] is None:
            share = "; no series tells how many it has"
        else:
            share = ""
        who = f"{row['source']} ({row['kind']})"
        sentences.append(f"Since {since_words(row)}, {who} kept {row['processors']:.1f} processors busy itself{share}.")
    return " ".join(sentences)


CHECK = RowCheck(
    check_id="cpu-busy",
    order=15,
    title="A process has no processor time left",
    advice=(
        "Look which threads it is: `top -H -p PID`, and their names by `jstack PID` (`nid` is its number).",
        "Threads of the collector (`GC`, `ZWorker`): see checks gc-pressure and heap-pressure.",
        "On a broker, move bundles away (checks broker-load-skew, hot-bundle); on a bookie, add bookies.",
        "Where the process itself needs little and the machine is busy, look who else runs there.",
    ),
    source="docs/knowledge.md C, step 1: resources",
    policy=CpuBusyPolicy,
    shards={"used": Query(used_in("process_samples"))},
    earlier={
        "looks": LOOKS,
        "used_before": looking_back(used_in("metrics")),
        "loads_before": looking_back("select broker, cpu_percent from brokers where read", small=True),
    },
    cluster={
        "busy": Query(BUSY),
        "found": Query(FOUND, worst_first=WORST_FIRST),
        "unknown": Query(UNKNOWN),
    },
    severity=ranked,
    subject="source",
    evidence=_evidence,
    figures=lambda row: {
        "load_percent": row["load_percent"],
        "load_percent_before": row["load_percent_before"],
        "percent": row["percent"],
        "processors": row["there"] or None,
        "processors_busy_thousandths": None if row["processors"] is None else row["processors"] * 1000,
        "seconds": row["seconds"],
    },
    missing=lambda queried, context: _missing(queried, context.limits),
    quiet=lambda queried, _context: _quiet(queried["busy"].rows),
)
