"""The check `gc-pressure`: share of a process's time that garbage collection takes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources import heap
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Judgement
    from tests.checks.conftest import JudgeRows
    from tests.golden import Golden

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
Collectors = dict[str, tuple[float, int]]
"""Seconds and collections of each collector."""


def process(
    source: str, collectors: Collectors, age: float | None = 3600, kind: str = "broker"
) -> list[dict[str, Any]]:
    """The samples of a process."""
    by_series = {heap.SECONDS: 0, heap.COLLECTIONS: 1}
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
    "ZGC's pauses are": ({"ZGC Major Cycles": (900, 9), "ZGC Major Pauses": (200, 9)}, 3600, Severity.WARNING, False),
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
    judge_rows: JudgeRows, collectors: Collectors, age: float | None, severity: Severity | None, *, unknown: bool
) -> None:
    """A broker is judged by the share of its lifetime spent in collections, and by its full collections."""
    judgement = judge_rows(heap.GC_PRESSURE, snapshot(process("a:1", collectors, age)))

    assert [finding.severity for finding in judgement.findings] == ([severity] if severity else [])
    assert (judgement.cannot_tell is not None) is unknown


def test_a_broker_without_metrics_is_not_healthy(judge_rows: JudgeRows, golden: Golden) -> None:
    """The check cannot tell if brokers have no garbage collection metrics, although a bookie has them."""
    samples = process("bookie:1", {"Copy": (1, 100)}, kind="bookie")

    judgement = judge_rows(heap.GC_PRESSURE, snapshot(samples, ("a:1", "b:1")))

    golden(judgement.cannot_tell)


def test_what_is_no_number_is_no_sample(judge_rows: JudgeRows, golden: Golden) -> None:
    """A value of NaN leads to no finding, and a start of NaN makes the process's age unknown."""
    samples = process("a:1", {"Copy": (float("nan"), 10)}) + process("b:1", {"Copy": (1, 10)}, age=float("nan"))

    judgement = judge_rows(heap.GC_PRESSURE, snapshot(samples, ("a:1", "b:1")))

    assert judgement.findings == ()
    golden(judgement.cannot_tell)


def test_the_worst_comes_first_with_its_numbers(judge_rows: JudgeRows, golden: Golden) -> None:
    """A critical bookie comes before a broker with a warning, and the evidence has its figures."""
    samples = process("a:1", {"Copy": (200, 10)}) + process(
        "bookie:1", {"Copy": (20, 10), "MarkSweepCompact": (880, 60)}, kind="bookie"
    )

    first, second = judge_rows(heap.GC_PRESSURE, snapshot(samples)).findings

    assert (first.subject, second.subject) == ("bookie:1", "a:1")
    golden(first.evidence)
    assert first.figures["share_percent"] == 25


def test_only_the_worst_hundred_are_listed(judge_rows: JudgeRows) -> None:
    """At most a hundred findings are listed, the worst first, and the others are counted."""
    samples = [row for number in range(103) for row in process(f"b{number:03}:1", {"Copy": (1000 + number, 10)})]

    judgement = judge_rows(heap.GC_PRESSURE, snapshot(samples))

    assert (len(judgement.findings), judgement.more) == (100, 3)
    assert judgement.findings[0].subject == "b102:1"


def test_the_quiet_word_says_what_was_looked_at(judge_rows: JudgeRows, golden: Golden) -> None:
    """The quiet result gives the number of processes by kind, so that it shows that no bookie was read."""
    judgement = judge_rows(heap.GC_PRESSURE, snapshot(process("a:1", {"Copy": (36, 10)})))

    golden(judgement.quiet)


DAYS = 10 * 86_400
"""Time that a process has run."""


def over_time(judge_rows: JudgeRows, *histories: Collectors, started: float = DAYS, apart: int = 15) -> Judgement:
    """Judgement of a broker; its counters, the newest first, at snapshots so many minutes apart."""
    snapshots = []
    for number, collectors in enumerate(histories):
        rows = snapshot(process("a:1", collectors, started))
        rows["snapshot"][0]["taken_at"] = NOW - number * timedelta(minutes=apart)
        snapshots.append(rows)
    now, *earlier = snapshots
    return judge_rows(heap.GC_PRESSURE, now, earlier=earlier)


def young(seconds: float) -> Collectors:
    """Short collections that took so long in all."""
    return {"G1 Young Generation": (seconds, 1000)}


def full(seconds: float, count: int) -> Collectors:
    """Full collections besides the usual ones."""
    return {"G1 Young Generation": (1000, 100_000), "G1 Old Generation": (seconds, count)}


HISTORIES: dict[str, tuple[tuple[Collectors, ...], Severity | None]] = {
    "a bad quarter of an hour in ten days": ((young(1060), young(1000)), Severity.WARNING),
    "a very bad one": ((young(1140), young(1000)), Severity.CRITICAL),
    "a usual one": ((young(1040), young(1000)), None),
    "bad days long ago": ((young(200_005), young(200_000)), None),
    "no full one in the last quarter of an hour, but before": (
        (full(1025, 41), full(1025, 41), full(1000, 40), full(1000, 40)),
        Severity.CRITICAL,
    ),
    "a long one among short ones": ((full(106, 404), full(103, 402), full(100, 400)), None),
    "and where it is the only one": ((full(105, 410), full(102.5, 409), full(102.5, 409)), Severity.WARNING),
    "full ones long ago": ((full(1000, 40), full(1000, 40)), None),
    "a dozen full ones an hour": (
        (full(9, 120), full(8, 117), full(7, 114), full(6, 111), full(5, 108)),
        Severity.WARNING,
    ),
    "fewer": ((full(9, 119), full(8, 117), full(7, 114), full(6, 111), full(5, 108)), None),
}


@pytest.mark.parametrize(("histories", "severity"), HISTORIES.values(), ids=HISTORIES)
def test_what_collections_took_lately_counts(
    judge_rows: JudgeRows, histories: tuple[Collectors, ...], severity: Severity | None
) -> None:
    """Collections since the snapshot before and full ones within the window are judged, and older ones are not."""
    judgement = over_time(judge_rows, *histories)

    assert [finding.severity for finding in judgement.findings] == ([severity] if severity else [])
    assert judgement.cannot_tell is None


LATELY: dict[str, tuple[tuple[Collectors, ...], bool]] = {
    "a full one before the snapshot before": ((full(1030, 41), full(1030, 41), full(1000, 40)), False),
    "a full one since": ((full(1030, 41), full(1000, 40), full(1000, 40)), True),
    "a share since, beside an older full one": (
        (full(1030, 41) | young(1060), full(1030, 41) | young(1000), full(1000, 40)),
        True,
    ),
    "a full one since the start": ((full(30, 1),), True),
}


@pytest.mark.parametrize(("histories", "lately"), LATELY.values(), ids=LATELY)
def test_it_tells_whether_it_collected_lately(
    judge_rows: JudgeRows, histories: tuple[Collectors, ...], lately: bool
) -> None:
    """A figure tells whether the broker stood still, or a collection was full, since the snapshot before."""
    (finding,) = over_time(judge_rows, *histories).findings

    assert finding.figures[heap.LATELY] == int(lately)


@pytest.mark.parametrize("apart", [4, 400], ids=["too near", "too long ago"])
def test_other_snapshots_are_not_compared_with(judge_rows: JudgeRows, apart: int) -> None:
    """An earlier snapshot that is too near or too old is not compared with; the time since the start is judged."""
    assert over_time(judge_rows, young(1060), young(1000), apart=apart).findings == ()


def test_a_restart_begins_anew(judge_rows: JudgeRows, golden: Golden) -> None:
    """Counters from before a restart are not compared with, even if they are lower."""
    now, before = snapshot(process("a:1", young(60), 1000)), snapshot(process("a:1", young(1), 1000.5))
    before["snapshot"][0]["taken_at"] = NOW - timedelta(minutes=15)

    (finding,) = judge_rows(heap.GC_PRESSURE, now, earlier=[before]).findings

    golden(finding.evidence)


def test_the_longest_full_collection_is_told(judge_rows: JudgeRows, golden: Golden) -> None:
    """The evidence gives a lower bound of the longest full collection, from the mean between two snapshots."""
    (finding,) = over_time(judge_rows, full(1030, 44), full(1028, 42), full(1000, 40)).findings

    golden(finding.evidence)
    assert finding.figures["full_pause_milliseconds"] == 14_000


def test_a_single_full_collection_is_one(judge_rows: JudgeRows) -> None:
    """The evidence counts a single full collection in the singular."""
    samples = process("a:1", {"PS MarkSweep": (2, 1)})

    (finding,) = judge_rows(heap.GC_PRESSURE, snapshot(samples)).findings

    assert "; 1 full collection (1.0 an hour) of 2,000 ms on average." in finding.evidence


def test_the_quiet_word_says_since_when(judge_rows: JudgeRows, golden: Golden) -> None:
    """The healthy result says that it is about the time since the snapshot before."""
    quiet = over_time(judge_rows, young(1009), young(1000)).quiet

    golden(quiet)
