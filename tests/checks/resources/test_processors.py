"""Processors that are busy all the time, and loggers at debug level."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources.processors import CPU_BUSY as CHECK
from pulsar_steward.checks.resources.processors import LINES, SECONDS
from pulsar_steward.checks.resources.processors import LOGGING_DEBUG as LOGGING_CHECK
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED
from pulsar_steward.policy.schema import Policy
from tests.builders import NOW
from tests.checks.conftest import judge_rows, minutes_ago, outcome, samples, severity_of, told

if TYPE_CHECKING:
    from tests.checks.conftest import Rows
    from tests.golden import Golden

START = NOW.timestamp() - 10_000
INFO, WARNING, CRITICAL = Severity.INFO, Severity.WARNING, Severity.CRITICAL
OF_FOUR = Policy.model_validate({"cpu_busy": {"bookie_processors": 4, "zookeeper_processors": 4}})


def used(
    seconds: float, *, kind: str = "bookie", source: str = "b:1", started: float | None = START
) -> list[dict[str, Any]]:
    """Samples of a process that used so many seconds of processors since its start, 10,000 seconds ago."""
    values = {SECONDS: seconds, STARTED: started}
    return samples(values, source, kind)


def rows(*processes: list[dict[str, Any]], load: float | None = 20.0) -> Rows:
    brokers = [{"broker": "a:1", "read": True, "cpu_percent": load}, {"broker": "gone:1", "read": False}]
    return {"brokers": brokers, "metrics": [row for each in processes for row in each]}


CASES: dict[str, tuple[Rows, Severity | None, bool]] = {
    "idle": (rows(used(5_000)), None, False),
    "just below": (rows(used(31_900)), None, False),
    "80 % of four": (rows(used(32_000)), WARNING, False),
    "95 % of four": (rows(used(38_000, kind="zookeeper")), CRITICAL, False),
    "a process that is too young": (rows(used(1_100, started=NOW.timestamp() - 290)), None, True),
    "and one that is not": (rows(used(1_200, started=NOW.timestamp() - 300)), CRITICAL, False),
    "of unknown age": (rows(used(39_000, started=None)), None, True),
    "a broker in a single look": (rows(load=97.0), INFO, False),
    "a broker of unknown load": (rows(load=None), None, True),
    "nothing was read": ({"brokers": [], "metrics": []}, None, True),
}


@pytest.mark.parametrize(("snapshot", "severity", "unknown"), CASES.values(), ids=CASES)
def test_a_process_is_judged_by_its_processors(snapshot: Rows, severity: Severity | None, unknown: bool) -> None:
    """A process is judged by its processor time since its start if there is no earlier snapshot."""
    assert outcome(judge_rows(CHECK, snapshot, OF_FOUR)) == (severity, unknown)


HISTORIES: dict[str, tuple[Rows, Rows, Severity | None]] = {
    "busy lately": (rows(used(23_500)), rows(used(20_000)), CRITICAL),
    "busy before": (rows(used(30_300)), rows(used(30_000)), None),
    "a broker in two looks": (rows(load=97.0), rows(load=96.0), CRITICAL),
    "a broker, less before": (rows(load=97.0), rows(load=81.0), WARNING),
    "a broker, idle before": (rows(load=97.0), rows(load=20.0), INFO),
    "a broker, idle now": (rows(load=20.0), rows(load=97.0), None),
}


@pytest.mark.parametrize(("now", "before", "severity"), HISTORIES.values(), ids=HISTORIES)
def test_what_was_used_since_the_snapshot_before_counts(now: Rows, before: Rows, severity: Severity | None) -> None:
    """A process is judged by its use since the snapshot before, and a broker by the load reports of both snapshots."""
    assert severity_of(judge_rows(CHECK, now, OF_FOUR, [minutes_ago(15, before)])) is severity


def test_what_it_says(golden: Golden) -> None:
    """Processors that nobody told are not judged: four busy ones are information; 3,500 s in 900 s are 97 % of four."""
    now = rows(used(5_600, kind="broker", source="a:1"), used(23_500), load=90.4)
    before = rows(used(5_000, kind="broker", source="a:1"), used(20_000), load=85.0)
    cases: dict[str, tuple[Any, ...]] = {
        "four busy processors of nobody knows how many": (rows(used(40_000)),),
        "fewer": (rows(used(39_000), used(1_000, kind="zookeeper", source="z:1")),),
        "the busiest comes first": (now, OF_FOUR, [minutes_ago(15, before)]),
        "all is well": (rows(used(5_000)), OF_FOUR),
        "nothing was read": ({"brokers": [], "metrics": []}, OF_FOUR),
        "a process is too young": (rows(used(900, started=NOW.timestamp() - 100)), OF_FOUR),
    }
    golden(told({rule: judge_rows(CHECK, *case) for rule, case in cases.items()}))


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
def test_lines_at_debug_are_found(levels: dict[str, float], age: float | None, *, found: bool, unknown: bool) -> None:
    """Without an earlier snapshot ten lines a second since the start, over ten minutes at least, are a warning."""
    judgement = judge_rows(LOGGING_CHECK, snapshot(process(age, "a:1", "broker", **levels)))
    assert [finding.severity for finding in judgement.findings] == ([Severity.WARNING] if found else [])
    assert (judgement.cannot_tell is not None) is unknown


def test_what_it_says_of_logging(golden: Golden) -> None:
    """Lines count since the snapshot before, and since the start of a process that restarted meanwhile."""
    many, none = snapshot(process(100 * HOUR, debug=50_000_000)), snapshot(process(100 * HOUR))
    both = process(debug=0) + process(source="b:1", debug=5)
    worst = process(source="b:8000", kind="bookie", debug=72_000) + process(debug=36_000)
    cases: dict[str, tuple[Any, ...]] = {
        "none was ever counted": (snapshot(process(debug=0)),),
        "one process that counted is enough to tell": (snapshot(both, "a:1", "b:1"),),
        "those of before": (many, None, [minutes_ago(10, many)]),
        "those of lately": (snapshot(process(100 * HOUR, debug=60_000)), None, [minutes_ago(10, none)]),
        "restarted since": (snapshot(process(300, debug=6_000)), None, [minutes_ago(10, many)]),
        "a broker that does not count": (snapshot(process(), "a:1", "b:1"),),
        "the worst comes first": (snapshot(worst),),
    }
    golden(told({rule: judge_rows(LOGGING_CHECK, *case) for rule, case in cases.items()}))
