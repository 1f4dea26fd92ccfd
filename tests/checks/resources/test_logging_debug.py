"""Processes that log at DEBUG, by what their appenders count."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources.processors import LINES
from pulsar_steward.checks.resources.processors import LOGGING_DEBUG as CHECK
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED
from tests.builders import NOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.checks.conftest import JudgeRows, Rows

HOUR = 3600


def process(
    age: float | None = HOUR, source: str = "a:1", kind: str = "broker", **levels: float
) -> list[dict[str, Any]]:
    """The samples of a process: lines by level, and when it started."""
    of_lines = {"info": 9000.0, **levels}
    rows = [{"series": LINES, "labels_json": json.dumps({"level": name}), "value": n} for name, n in of_lines.items()]
    if age is not None:
        rows.append({"series": STARTED, "labels_json": "{}", "value": NOW.timestamp() - age})
    return [row | {"source": source, "source_kind": kind} for row in rows]


def snapshot(samples: list[dict[str, Any]], *brokers: str) -> Rows:
    """Rows of brokers that were read, and their samples."""
    return {"brokers": [{"broker": broker, "read": True} for broker in brokers or ("a:1",)], "metrics": samples}


@pytest.mark.parametrize(
    ("levels", "age", "found", "unknown"),
    [
        ({"debug": 36_000}, HOUR, True, False),
        ({"debug": 30_000, "trace": 6_000}, HOUR, True, False),
        ({"DEBUG": 36_000}, HOUR, True, False),
        ({"debug": 35_999}, HOUR, False, False),
        ({"debug": 1}, HOUR, False, False),
        ({"debug": 0}, HOUR, False, True),
        ({"info": 900_000}, HOUR, False, True),
        ({"debug": 36_000}, 59, False, True),
        ({"debug": 6_000}, 75, True, False),
        ({"debug": 5_999}, 75, False, False),
        ({"debug": 36_000}, None, False, True),
        ({"debug": float("nan")}, HOUR, False, True),
    ],
)
def test_lines_at_debug_are_found(
    judged: JudgeRows, levels: dict[str, float], age: float | None, *, found: bool, unknown: bool
) -> None:
    """Without an earlier snapshot ten lines a second since the start, over ten minutes at least, are a warning."""
    judgement = judged(CHECK, snapshot(process(age, "a:1", "broker", **levels)))

    assert [finding.severity for finding in judgement.findings] == ([Severity.WARNING] if found else [])
    assert (judgement.cannot_tell is not None) is unknown


def test_where_none_was_ever_counted_nothing_is_known(judged: JudgeRows) -> None:
    """The check cannot tell when no process ever counted a DEBUG line; one process that did is enough to tell."""
    assert judged(CHECK, snapshot(process(debug=0))).cannot_tell == (
        "No process has counted a line at DEBUG since its start, and none does where conf/log4j2.yaml hands its"
        " Prometheus appender INFO and above only, as Pulsar's own does."
    )
    both = process(debug=0) + process(source="b:1", debug=5)
    assert judged(CHECK, snapshot(both, "a:1", "b:1")).cannot_tell is None


def test_only_what_was_logged_lately_counts(judged: JudgeRows, minutes_ago: Callable[[float, Rows], Rows]) -> None:
    """Lines at DEBUG are counted since the snapshot before, and earlier ones are not found."""
    quiet = minutes_ago(10, snapshot(process(100 * HOUR, debug=50_000_000)))
    since = minutes_ago(10, snapshot(process(100 * HOUR)))

    assert judged(CHECK, snapshot(process(100 * HOUR, debug=50_000_000)), None, [quiet]).findings == ()
    (finding,) = judged(CHECK, snapshot(process(100 * HOUR, debug=60_000)), None, [since]).findings
    assert finding.evidence == (
        "a:1 (broker) logged 60,000 lines at DEBUG or TRACE, of 60,000 in all, in the 10 minutes since the snapshot"
        " before: 100 a second."
    )
    assert finding.figures == {"debug_lines": 60_000, "lines": 60_000, "seconds": 600, "debug_lines_per_second": 100}


def test_counters_begin_anew_with_a_process(judged: JudgeRows, minutes_ago: Callable[[float, Rows], Rows]) -> None:
    """The counts of the process before a restart are not subtracted from those of the present process."""
    before = minutes_ago(10, snapshot(process(100 * HOUR, debug=50_000_000)))

    (finding,) = judged(CHECK, snapshot(process(300, debug=6_000)), None, [before]).findings

    assert "since its start: 20 a second" in finding.evidence


def test_brokers_that_do_not_count_are_not_known(judged: JudgeRows) -> None:
    """The check cannot tell if a broker does not count its log lines; found processes are listed worst first."""
    silent = judged(CHECK, snapshot(process(), "a:1", "b:1"))
    others = process(source="b:8000", kind="bookie", debug=72_000) + process(debug=36_000)

    assert silent.cannot_tell == (
        "The log lines of b:1 are not counted: their log configuration has no Prometheus appender."
    )
    assert [each.subject for each in judged(CHECK, snapshot(others)).findings] == ["b:8000", "a:1"]
