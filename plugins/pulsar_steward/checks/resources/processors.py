"""Processors that are always busy, and logging at DEBUG, which keeps them so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.checks.check import Query, RowCheck, if_any, if_none, ranked, silent_in
from pulsar_steward.checks.earlier import (
    LOOKS,
    ComparingPolicy,
    growth,
    in_time,
    looking_back,
    of_previous,
    since_words,
)
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED
from pulsar_steward.model.section import number, percent
from pulsar_steward.model.trouble import Harm
from pulsar_steward.model.units import counted, named, number_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried, Row

# No metric gives the number of processors of a bookie or a ZooKeeper server. The policy may set it. If it does not,
# the number of busy processors is reported, and is information from a threshold on.

SECONDS = "process_cpu_seconds_total"


class CpuBusyPolicy(ComparingPolicy):
    """Thresholds for the use of processors, and their number."""

    minimum_age_seconds: int = number(
        300, "younger processes are not judged by their time since the start, which compiles"
    )
    bookie_processors: int = number(0, "that each bookie may use, which no series tells; 0: not known", ge=0)
    zookeeper_processors: int = number(0, "the same of each ZooKeeper server", ge=0)
    autorecovery_processors: int = number(0, "the same of each process of auto recovery", ge=0)
    warning_percent: int = percent(
        80,
        "of its processors busy since the snapshot before; of a broker's, as its load report tells them in"
        " two snapshots in a row, and in one it is information",
    )
    critical_percent: int = percent(95, "the same, when what comes in waits")
    information_processors: int = number(4, "busy on average, of a process of which nobody said how many it has")


def used_in(samples: str) -> str:
    """SQL for the CPU time of each process since it started, by samples of processes."""
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


def _missing_busy(queried: Queried, limits: CpuBusyPolicy) -> str | None:
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


def _quiet_processors(queried: Queried, _context: CheckContext[CpuBusyPolicy]) -> str:
    told = [row["load_percent"] if row["percent"] is None else row["percent"] for row in queried["busy"].rows]
    shares = [float(share) for share in told if share is not None]
    if not shares:
        return "Nothing was judged."
    return f"Of {counted(len(shares), 'process', 'processes')}, the busiest uses {max(shares):.0f} % of its processors."


def _busy_evidence(row: Row) -> str:
    sentences = []
    if row["load_percent"] is not None and not row["there"]:
        earlier = row["load_percent_before"]
        before = "" if earlier is None else f", and {earlier:.0f} % in the snapshot before"
        sentences.append(f"Broker {row['source']} reports {row['load_percent']:.0f} % of its processors busy{before}.")
    if row["processors"] is not None:
        share = "; no series tells how many it has" if row["load_percent"] is None else ""
        if row["there"]:
            share = f" of {row['there']:,}, {row['percent']:.0f} %"
        who = f"{row['source']} ({row['kind']})"
        sentences.append(f"Since {since_words(row)}, {who} kept {row['processors']:.1f} processors busy itself{share}.")
    return " ".join(sentences)


CPU_BUSY = RowCheck(
    check_id="cpu-busy",
    harm=Harm.SLOW,
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
    cluster={"busy": Query(BUSY), "found": Query(FOUND, worst_first=WORST_FIRST), "unknown": Query(UNKNOWN)},
    severity=ranked,
    subject="source",
    evidence=_busy_evidence,
    figures=lambda row: {
        "load_percent": row["load_percent"],
        "load_percent_before": row["load_percent_before"],
        "percent": row["percent"],
        "processors": row["there"] or None,
        "processors_busy_thousandths": None if row["processors"] is None else row["processors"] * 1000,
        "seconds": row["seconds"],
    },
    missing=lambda queried, context: _missing_busy(queried, context.limits),
    quiet=_quiet_processors,
)

# The judged time is since the snapshot before, or since the process's start if there is none. Since the start, it
# counts as ten minutes at least (`settling_minutes`), as a mean over less time shows nothing lasting.

LINES = "log4j2_appender_total"
"""Log lines by level, counted by the Prometheus appender of Pulsar's ``conf/log4j2.yaml``.

That file passes only INFO and above to the appender (``level: info`` of its reference). So a process with a DEBUG count
of 0 may still write many such lines.
"""


class LoggingDebugPolicy(ComparingPolicy):
    """Thresholds for processes that log at DEBUG."""

    minimum_age_seconds: int = number(60, "younger processes are not judged: a start logs much")
    settling_minutes: int = number(10, "a process that is younger, without an earlier snapshot, counts as that old")
    warning_per_second: int = number(
        10, "lines at DEBUG or TRACE; at INFO there is none, and one client or topic at DEBUG writes fewer"
    )


def lines_in(samples: str) -> str:
    """SQL for the log lines of each process since it started, by samples of processes."""
    return f"""
    with marked as (
        select *, lower(coalesce(labels_json->>'level', '')) in ('debug', 'trace') as of_debug
        from {samples} where series in ('{LINES}', '{STARTED}') and isfinite(value))
    select source, source_kind, max(value) filter (series = '{STARTED}') as started,
        coalesce(sum(value order by value) filter (series = '{LINES}' and of_debug), 0) as debug_lines,
        coalesce(sum(value order by value) filter (series = '{LINES}'), 0) as lines
    from marked group by source, source_kind having bool_or(series = '{LINES}')
    """


JUDGED = f"""
with told as ({in_time("counts", "counts_before")}),
spans as ({growth("told", ("source", "source_kind"), ("debug_lines", "lines"))})
select source, source_kind, since, seconds, grown_debug_lines as debug_lines, grown_lines as lines,
    $now - started as age_seconds, if(seconds > 0, grown_debug_lines / seconds, null) as per_second,
    grown_debug_lines / greatest(seconds, if(since is null, 60 * $settling_minutes, 1)) as lasting_per_second
from spans where moment = $now::double
"""
"""Lines of each process. Soon after a start `lasting_per_second` is lower than `per_second`: a short time at DEBUG,
already over, gives a high mean per second."""

AT_DEBUG = (
    "select * from judged where age_seconds >= $minimum_age_seconds and lasting_per_second >= $warning_per_second"
)

LOGGING_DEBUG = RowCheck(
    check_id="logging-debug",
    order=70,
    title="A process logs at DEBUG, which slows everything that it does",
    advice=(
        (
            "Set its root logger and `org.apache.pulsar` to INFO: `PULSAR_LOG_ROOT_LEVEL`, `PULSAR_LOG_LEVEL`,"
            " `conf/log4j2.yaml`."
        ),
        "Look whether somebody still needs it: what is on for one search stays on for months.",
        "Look at the clients' loggers as well: their DEBUG made publishing take seconds in place of milliseconds.",
    ),
    source="docs/knowledge.md C: DEBUG logging",
    policy=LoggingDebugPolicy,
    shards={"counts": Query(lines_in("process_samples"))},
    earlier={"counts_before": looking_back(lines_in("metrics"))},
    cluster={
        "judged": Query(JUDGED),
        "found": Query(AT_DEBUG, worst_first="per_second desc, source, source_kind"),
        "silent": silent_in("counts"),
        "young": Query("select source from judged where not coalesce(age_seconds >= $minimum_age_seconds, false)"),
        "debugging": Query("select source from counts where debug_lines <> 0"),
    },
    severity=Severity.WARNING,
    subject="source",
    evidence=lambda row: (
        f"{row['source']} ({row['source_kind']}) logged {counted(row['debug_lines'], 'line')} at DEBUG or TRACE, of"
        f" {row['lines']:,.0f} in all, in the {counted(row['seconds'] / 60, 'minute')} since"
        f" {'its start' if row['since'] is None else 'the snapshot before'}:"
        f" {number_in_words(row['per_second'])} a second."
    ),
    figures=lambda row: {
        "debug_lines": row["debug_lines"],
        "lines": row["lines"],
        "seconds": row["seconds"],
        "debug_lines_per_second": row["per_second"],
    },
    missing=(
        if_any(
            "silent", "The log lines of {names} are not counted: their log configuration has no Prometheus appender."
        ),
        if_any("young", "Rates say nothing of a process that has just started, or of unknown age: {names}."),
        if_none("counts", "No process counts its log lines."),
        if_none(
            "debugging",
            "No process has counted a line at DEBUG since its start, and none does where conf/log4j2.yaml hands its"
            " Prometheus appender INFO and above only, as Pulsar's own does.",
        ),
    ),
    quiet="No process logs at DEBUG, or hardly at all.",
)
