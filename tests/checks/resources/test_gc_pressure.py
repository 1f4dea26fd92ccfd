"""The check `gc-pressure`: share of a process's time that garbage collection takes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources import heap
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED
from tests.checks.conftest import judge_rows, outcome, severity_of, told

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Judgement
    from tests.golden import Golden

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
Collectors = dict[str, tuple[float, int]]
"""Seconds and collections of each collector."""


def process(
    source: str, collectors: Collectors, age: float | None = 3600, kind: str = "broker"
) -> list[dict[str, Any]]:
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
    collectors: Collectors, age: float | None, severity: Severity | None, *, unknown: bool
) -> None:
    """A broker is judged by the share of its lifetime spent in collections, and by its full collections."""
    assert outcome(judge_rows(heap.GC_PRESSURE, snapshot(process("a:1", collectors, age)))) == (severity, unknown)


def test_what_it_says_of_one_snapshot(golden: Golden) -> None:
    """A hundred are listed, the worst first; a value of NaN is no sample, and a start of NaN no age."""
    strange = process("a:1", {"Copy": (float("nan"), 10)}) + process("b:1", {"Copy": (1, 10)}, age=float("nan"))
    bookie = process("bookie:1", {"Copy": (20, 10), "MarkSweepCompact": (880, 60)}, kind="bookie")
    many = [row for number in range(103) for row in process(f"b{number:03}:1", {"Copy": (1000 + number, 10)})]
    cases = {
        "only a bookie tells": snapshot(process("bookie:1", {"Copy": (1, 100)}, kind="bookie"), ("a:1", "b:1")),
        "what is no number": snapshot(strange, ("a:1", "b:1")),
        "the worst comes first": snapshot([*process("a:1", {"Copy": (200, 10)}), *bookie]),
        "more than a hundred": snapshot(many),
        "all is well, and no bookie was read": snapshot(process("a:1", {"Copy": (36, 10)})),
        "a single full collection": snapshot(process("a:1", {"PS MarkSweep": (2, 1)})),
    }
    golden(told({rule: judge_rows(heap.GC_PRESSURE, rows) for rule, rows in cases.items()}))


DAYS = 10 * 86_400
"""Time that a process has run."""


def over_time(*histories: Collectors, started: float = DAYS, apart: int = 15) -> Judgement:
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
def test_what_collections_took_lately_counts(histories: tuple[Collectors, ...], severity: Severity | None) -> None:
    """Collections since the snapshot before and full ones within the window are judged, and older ones are not."""
    judgement = over_time(*histories)
    assert severity_of(judgement) is severity
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
def test_it_tells_whether_it_collected_lately(histories: tuple[Collectors, ...], lately: bool) -> None:
    """A figure tells whether the broker stood still, or a collection was full, since the snapshot before."""
    (finding,) = over_time(*histories).findings
    assert finding.figures[heap.LATELY] == int(lately)


@pytest.mark.parametrize("apart", [4, 400], ids=["too near", "too long ago"])
def test_other_snapshots_are_not_compared_with(apart: int) -> None:
    """An earlier snapshot that is too near or too old is not compared with; the time since the start is judged."""
    assert over_time(young(1060), young(1000), apart=apart).findings == ()


def test_what_it_says_of_several_snapshots(golden: Golden) -> None:
    """Counters from before a restart are not compared with; the longest full collection is at least 14 s."""
    now, before = snapshot(process("a:1", young(60), 1000)), snapshot(process("a:1", young(1), 1000.5))
    before["snapshot"][0]["taken_at"] = NOW - timedelta(minutes=15)
    cases = {
        "a restart begins anew, though the counters were lower before": judge_rows(
            heap.GC_PRESSURE, now, earlier=[before]
        ),
        "the longest full collection": over_time(full(1030, 44), full(1028, 42), full(1000, 40)),
        "all is well since the snapshot before": over_time(young(1009), young(1000)),
    }
    golden(told(cases))
