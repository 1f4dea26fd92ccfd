"""Brokers, bookies and ZooKeeper servers that log at DEBUG, by the counts of their log appenders.

The judged time is since the snapshot before, or since the process's start if there is none. Since the start, it counts
as ten minutes at least (`settling_minutes`), as a mean over less time shows nothing lasting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.check import Query, RowCheck, brokers_of, silent_in
from pulsar_steward.checks.earlier import WINDOW, WINDOW_MINUTES, growth, in_time, looking_back
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED
from pulsar_steward.model.section import Section
from pulsar_steward.model.units import counted, named, number_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Queried, Row

LINES = "log4j2_appender_total"
"""Log lines by level, counted by the Prometheus appender of Pulsar's ``conf/log4j2.yaml``.

That file passes only INFO and above to the appender (``level: info`` of its reference). So a process with a DEBUG count
of 0 may still write many such lines.
"""


class LoggingDebugPolicy(Section):
    """Thresholds for processes that log at DEBUG."""

    window_minutes: int = Field(WINDOW_MINUTES, ge=1, description=WINDOW)
    minimum_age_seconds: int = Field(60, ge=1, description="younger processes are not judged: a start logs much")
    settling_minutes: int = Field(
        10,
        ge=1,
        description="a process that is younger, without an earlier snapshot, counts as that old",
    )
    warning_per_second: int = Field(
        10,
        ge=1,
        description="lines at DEBUG or TRACE; at INFO there is none, and one client or topic at DEBUG writes fewer",
    )


def lines_in(samples: str) -> str:
    """SQL for the log lines of each process since it started.

    Args:
        samples: Table to read: `process_samples`, or `metrics`, which needs no preparation.
    """
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

FOUND = "select * from judged where age_seconds >= $minimum_age_seconds and lasting_per_second >= $warning_per_second"

YOUNG = "select source from judged where not coalesce(age_seconds >= $minimum_age_seconds, false)"


def _missing(queried: Queried) -> str | None:
    if silent := brokers_of(queried["silent"]):
        return f"The log lines of {named(silent)} are not counted: their log configuration has no Prometheus appender."
    if young := [row["source"] for row in queried["young"].rows]:
        return f"Rates say nothing of a process that has just started, or of unknown age: {named(young)}."
    if not queried["counts"].rows:
        return "No process counts its log lines."
    if not any(row["debug_lines"] for row in queried["counts"].rows):
        return (
            "No process has counted a line at DEBUG since its start, and none does where conf/log4j2.yaml hands its"
            " Prometheus appender INFO and above only, as Pulsar's own does."
        )
    return None


def _evidence(row: Row) -> str:
    since = "its start" if row["since"] is None else "the snapshot before"
    return (
        f"{row['source']} ({row['source_kind']}) logged {counted(row['debug_lines'], 'line')} at DEBUG or TRACE, of"
        f" {row['lines']:,.0f} in all, in the {counted(row['seconds'] / 60, 'minute')} since {since}:"
        f" {number_in_words(row['per_second'])} a second."
    )


CHECK = RowCheck(
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
        "found": Query(FOUND, worst_first="per_second desc, source, source_kind"),
        "silent": silent_in("counts"),
        "young": Query(YOUNG),
    },
    severity=Severity.WARNING,
    subject="source",
    evidence=_evidence,
    figures=lambda row: {
        "debug_lines": row["debug_lines"],
        "lines": row["lines"],
        "seconds": row["seconds"],
        "debug_lines_per_second": row["per_second"],
    },
    missing=lambda queried, _context: _missing(queried),
    quiet="No process logs at DEBUG, or hardly at all.",
)
