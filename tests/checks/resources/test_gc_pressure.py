"""How much of a process's time garbage collection takes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources import gc_pressure
from pulsar_steward.checks.views import STARTED
from pulsar_steward.model.finding import Severity

if TYPE_CHECKING:
    from tests.checks.conftest import JudgeRows

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
Collectors = dict[str, tuple[float, int]]
"""Seconds and collections of each collector."""


def process(
    source: str, collectors: Collectors, age: float | None = 3600, kind: str = "broker"
) -> list[dict[str, Any]]:
    """The samples of a process."""
    by_series = {gc_pressure.SECONDS: 0, gc_pressure.COLLECTIONS: 1}
    rows = [
        {"series": series, "labels_json": json.dumps({"gc": name}), "value": float(values[column])}
        for name, values in collectors.items()
        for series, column in by_series.items()
    ]
    if age is not None:
        rows.append({"series": STARTED, "labels_json": "{}", "value": NOW.timestamp() - age})
    return [row | {"source": source, "source_kind": kind} for row in rows]


def snapshot(samples: list[dict[str, Any]], brokers: tuple[str, ...] = ("a:1",)) -> dict[str, list[dict[str, Any]]]:
    """A snapshot of brokers with these samples."""
    return {
        "snapshot": [{"cluster": "lab", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": []}],
        "brokers": [{"broker": broker, "read": True} for broker in brokers],
        "metrics": samples,
    }


CASES: dict[str, tuple[Collectors, float | None, Severity | None, bool]] = {
    "little is healthy": ({"G1 Young Generation": (30, 900)}, 3600, None, False),
    "just below 5 % is": ({"G1 Young Generation": (179, 900)}, 3600, None, False),
    "5 % are not": ({"G1 Young Generation": (180, 900)}, 3600, Severity.WARNING, False),
    "just below 15 % are a warning": ({"G1 Young Generation": (539, 900)}, 3600, Severity.WARNING, False),
    "15 % are critical": ({"G1 Young Generation": (540, 900)}, 3600, Severity.CRITICAL, False),
    "what runs beside the process is no pause": ({"ZGC Major Cycles": (900, 9)}, 3600, None, False),
    "ZGC's pauses are": (
        {"ZGC Major Cycles": (900, 9), "ZGC Major Pauses": (200, 9)},
        3600,
        Severity.WARNING,
        False,
    ),
    "a dozen full ones an hour": ({"G1 Old Generation": (6, 12)}, 3600, Severity.WARNING, False),
    "fewer full ones": ({"G1 Old Generation": (6, 11)}, 3600, None, False),
    "those of a start do not count": ({"MarkSweepCompact": (0.4, 3)}, 70, None, False),
    "a long full one in a day": ({"PS MarkSweep": (2, 1)}, 86_400, Severity.WARNING, False),
    "a very long one": ({"PS MarkSweep": (20, 2)}, 86_400, Severity.CRITICAL, False),
    "a young process is not judged": ({"Copy": (0.7, 7)}, 12, None, True),
    "nor one of unknown age": ({"Copy": (0.7, 7)}, None, None, True),
}


@pytest.mark.parametrize(("collectors", "age", "severity", "unknown"), CASES.values(), ids=CASES)
def test_a_broker_is_judged(
    judge_rows: JudgeRows,
    collectors: Collectors,
    age: float | None,
    severity: Severity | None,
    *,
    unknown: bool,
) -> None:
    """By the share of its lifetime, and by its full collections."""
    judgement = judge_rows(gc_pressure.CHECK, snapshot(process("a:1", collectors, age)))

    assert [finding.severity for finding in judgement.findings] == ([severity] if severity else [])
    assert (judgement.cannot_tell is not None) is unknown


def test_a_broker_without_metrics_is_not_healthy(judge_rows: JudgeRows) -> None:
    """Silence is named; bookies are judged where they are there."""
    samples = process("bookie:1", {"Copy": (1, 100)}, kind="bookie")

    judgement = judge_rows(gc_pressure.CHECK, snapshot(samples, ("a:1", "b:1")))

    assert judgement.cannot_tell == "The snapshot has no garbage collection metrics of a:1, b:1."


def test_what_is_no_number_is_no_sample(judge_rows: JudgeRows) -> None:
    """Nothing is found by it, and an age that is none is not known."""
    samples = process("a:1", {"Copy": (float("nan"), 10)}) + process("b:1", {"Copy": (1, 10)}, age=float("nan"))

    judgement = judge_rows(gc_pressure.CHECK, snapshot(samples, ("a:1", "b:1")))

    assert judgement.findings == ()
    assert judgement.cannot_tell == "Rates say nothing of a process younger than 60 s, or of unknown age: b:1."


def test_the_worst_comes_first_with_its_numbers(judge_rows: JudgeRows) -> None:
    """Critical before warning, whatever the kind of process."""
    samples = process("a:1", {"Copy": (200, 10)}) + process(
        "bookie:1", {"Copy": (20, 10), "MarkSweepCompact": (880, 60)}, kind="bookie"
    )

    first, second = judge_rows(gc_pressure.CHECK, snapshot(samples)).findings

    assert (first.subject, second.subject) == ("bookie:1", "a:1")
    assert first.evidence == (
        "bookie:1 (bookie) stood still for garbage collection 25.0 % of the 60 minutes since its start (900.0 s);"
        " 60 full collections (60.0 an hour) of 14,667 ms on average."
    )
    assert first.figures["share_percent"] == 25


def test_only_the_worst_hundred_are_listed(judge_rows: JudgeRows) -> None:
    """The rest is counted."""
    samples = [row for number in range(103) for row in process(f"b{number:03}:1", {"Copy": (1000 + number, 10)})]

    judgement = judge_rows(gc_pressure.CHECK, snapshot(samples))

    assert (len(judgement.findings), judgement.more) == (100, 3)
    assert judgement.findings[0].subject == "b102:1"


def test_the_quiet_word_says_what_was_looked_at(judge_rows: JudgeRows) -> None:
    """By kind of process, so that bookies that are not there are seen to be missing."""
    judgement = judge_rows(gc_pressure.CHECK, snapshot(process("a:1", {"Copy": (36, 10)})))

    assert judgement.quiet == "Since their start, garbage collection took at most 1.0 % of the time of 1 broker(s)."
