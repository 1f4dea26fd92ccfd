"""Heaps that stay full, and the time that collections take."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources import heap as gc_heap
from pulsar_steward.checks.resources.heap import HEAP_PRESSURE as CHECK
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED
from tests.builders import NOW
from tests.checks.conftest import judge_rows, minutes_ago, outcome, severity_of, told

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import Judgement
    from tests.checks.conftest import Rows
    from tests.golden import Golden

MIB = 1 << 20
START = NOW.timestamp() - 86_400
WARNING, CRITICAL = Severity.WARNING, Severity.CRITICAL
SERIAL, G1, ZGC = "Tenured Gen", "G1 Old Gen", "ZGC Old Generation"


def heap(
    used: float,
    left: float = 0,
    *,
    pool: str = SERIAL,
    source: str = "a:1",
    kind: str = "broker",
    started: float = START,
    later_names: bool = False,
) -> list[dict[str, Any]]:
    """Samples of a heap of 1,000 MiB, of which the old generation may take 800; in MiB."""
    old = {"pool": pool}
    values = [
        ("jvm_memory_bytes_used", {"area": "heap"}, used),
        ("jvm_memory_bytes_used", {"area": "nonheap"}, 5000),
        ("jvm_memory_bytes_max", {"area": "heap"}, 1000),
        ("jvm_memory_bytes_max", {"area": "nonheap"}, -1),
        ("jvm_memory_pool_collection_used_bytes", {"pool": "Eden Space"}, 0),
        ("jvm_memory_pool_collection_used_bytes", old, left),
        ("jvm_memory_pool_collection_max_bytes", old, 800),
    ]
    rows = [(_later(name) if later_names else name, labels, value * MIB) for name, labels, value in values]
    return [
        {
            "source": source,
            "source_kind": kind,
            "series": series,
            "labels_json": "{" + ",".join(f'"{name}":"{text}"' for name, text in labels.items()) + "}",
            "value": float(value),
        }
        for series, labels, value in [*rows, (STARTED, {}, started)]
    ]


def _later(name: str) -> str:
    """The name in later versions of Prometheus's Java library: the unit comes last, as pools' names have it already."""
    kept, unit, end = name.partition("_bytes_")
    return f"{kept}_{end}_bytes" if unit else name


def rows(*heaps: list[dict[str, Any]]) -> Rows:
    return {"brokers": [{"broker": "a:1", "read": True}], "metrics": [row for each in heaps for row in each]}


CASES: dict[str, tuple[Rows, Severity | None, bool]] = {
    "half full": (rows(heap(500, 300)), None, False),
    "full of garbage": (rows(heap(990, 300)), None, False),
    "never fully collected": (rows(heap(990)), None, False),
    "just below": (rows(heap(990, 679)), None, False),
    "85 % of the old generation are left": (rows(heap(990, 680)), WARNING, False),
    "95 %": (rows(heap(990, 760)), CRITICAL, False),
    "less is in use now than was left": (rows(heap(600, 760)), None, False),
    "by the series' later names": (rows(heap(990, 760, later_names=True)), CRITICAL, False),
    "of ZGC, after each cycle": (rows(heap(990, 760, pool=ZGC)), CRITICAL, False),
    "of a bookie": (rows(heap(500, 300), heap(990, 700, source="b:1", kind="bookie")), WARNING, False),
    "G1 that is full now": (rows(heap(990, pool=G1)), None, True),
    "G1 that is not": (rows(heap(849, pool=G1)), None, False),
    "full, without figures of pools": (
        rows([each for each in heap(990) if "pool" not in each["labels_json"]]),
        None,
        True,
    ),
    "half full, without figures of pools": (
        rows([each for each in heap(500) if "pool" not in each["labels_json"]]),
        None,
        False,
    ),
    "a broker without figures": (rows(heap(990, 300, source="b:1", kind="bookie")), None, True),
    "nobody told": ({"brokers": [], "metrics": []}, None, True),
}


@pytest.mark.parametrize(("snapshot", "severity", "unknown"), CASES.values(), ids=CASES)
def test_what_collections_leave_is_judged(snapshot: Rows, severity: Severity | None, unknown: bool) -> None:
    """A single snapshot is judged by what the last old-generation collection left; low present use is no finding."""
    assert outcome(judge_rows(CHECK, snapshot)) == (severity, unknown)


HISTORIES: dict[str, tuple[str, Sequence[float], float, Severity | None, bool]] = {
    "full in each of four snapshots": (G1, (990, 900, 880, 850), 15, WARNING, False),
    "very full": (G1, (990, 980, 970, 950), 15, CRITICAL, False),
    "once less": (G1, (990, 900, 849, 900), 15, None, False),
    "in too few": (G1, (990, 980, 970), 15, None, True),
    "within too short a time": (G1, (990, 980, 970, 960), 9, None, True),
    "of a collector that waits until it is full": (SERIAL, (990, 980, 970, 950), 15, None, False),
}


@pytest.mark.parametrize(("pool", "uses", "apart", "severity", "unknown"), HISTORIES.values(), ids=HISTORIES)
def test_the_lowest_use_counts_where_it_is_collected_bit_by_bit(
    pool: str, uses: Sequence[float], apart: float, severity: Severity | None, unknown: bool
) -> None:
    """The lowest use in several snapshots is judged for a collector that collects the heap bit by bit."""
    now, *before = [rows(heap(use, pool=pool)) for use in uses]
    earlier = [minutes_ago(apart * (number + 1), each) for number, each in enumerate(before)]
    assert outcome(judge_rows(CHECK, now, earlier=earlier)) == (severity, unknown)


def test_what_it_says(golden: Golden) -> None:
    """The fullest comes first, with the lowest use of four snapshots; those from before a restart do not count."""
    before = [minutes_ago(15 * number, rows(heap(990, pool=G1, started=START - 5))) for number in (1, 2, 3)]
    of_bookie = [rows(heap(900 + number, pool=G1, source="b:1", kind="bookie")) for number in (1, 2, 3)]
    earlier = [minutes_ago(15 * number, each) for number, each in enumerate(of_bookie, 1)]
    cases: dict[str, tuple[Any, ...]] = {
        "restarted since": (rows(heap(990, pool=G1)), None, before),
        "the fullest comes first": (
            rows(heap(990, 760), heap(960, pool=G1, source="b:1", kind="bookie")),
            None,
            earlier,
        ),
        "all is well": (rows(heap(400, 300)),),
        "a bookie's is well too": (rows(heap(990, 300), heap(500, pool=G1, source="b:1", kind="bookie")),),
        "seen too seldom": (rows(heap(990, pool=G1)),),
        "nothing was read": (rows(),),
    }
    golden(told({rule: judge_rows(CHECK, *case) for rule, case in cases.items()}))


GC_NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
Collectors = dict[str, tuple[float, int]]
"""Seconds and collections of each collector."""


def process(
    source: str, collectors: Collectors, age: float | None = 3600, kind: str = "broker"
) -> list[dict[str, Any]]:
    by_series = {gc_heap.SECONDS: 0, gc_heap.COLLECTIONS: 1}
    rows = [
        {"series": series, "labels_json": json.dumps({"gc": name}), "value": float(values[column])}
        for name, values in collectors.items()
        for series, column in by_series.items()
    ]
    if age is not None:
        rows.append({"series": STARTED, "labels_json": "{}", "value": GC_NOW.timestamp() - age})
    return [row | {"source": source, "source_kind": kind} for row in rows]


def snapshot(samples: list[dict[str, Any]], brokers: tuple[str, ...] = ("a:1",)) -> dict[str, list[dict[str, Any]]]:
    return {
        "snapshot": [{"cluster": "lab", "taken_at": GC_NOW, "unread_brokers": [], "unread_namespaces": []}],
        "brokers": [{"broker": broker, "read": True} for broker in brokers],
        "metrics": samples,
    }


GC_CASES: dict[str, tuple[Collectors, float | None, Severity | None, bool]] = {
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


@pytest.mark.parametrize(("collectors", "age", "severity", "unknown"), GC_CASES.values(), ids=GC_CASES)
def test_a_broker_is_judged(
    collectors: Collectors, age: float | None, severity: Severity | None, *, unknown: bool
) -> None:
    """A broker is judged by the share of its lifetime spent in collections, and by its full collections."""
    assert outcome(judge_rows(gc_heap.GC_PRESSURE, snapshot(process("a:1", collectors, age)))) == (severity, unknown)


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
    golden(told({rule: judge_rows(gc_heap.GC_PRESSURE, rows) for rule, rows in cases.items()}))


DAYS = 10 * 86_400
"""Time that a process has run."""


def over_time(*histories: Collectors, started: float = DAYS, apart: int = 15) -> Judgement:
    """Judgement of a broker; its counters, the newest first, at snapshots so many minutes apart."""
    snapshots = []
    for number, collectors in enumerate(histories):
        rows = snapshot(process("a:1", collectors, started))
        rows["snapshot"][0]["taken_at"] = GC_NOW - number * timedelta(minutes=apart)
        snapshots.append(rows)
    now, *earlier = snapshots
    return judge_rows(gc_heap.GC_PRESSURE, now, earlier=earlier)


def young(seconds: float) -> Collectors:
    """Short collections that took so long in all."""
    return {"G1 Young Generation": (seconds, 1000)}


def full(seconds: float, count: int) -> Collectors:
    """Full collections besides the usual ones."""
    return {"G1 Young Generation": (1000, 100_000), "G1 Old Generation": (seconds, count)}


GC_HISTORIES: dict[str, tuple[tuple[Collectors, ...], Severity | None]] = {
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


@pytest.mark.parametrize(("histories", "severity"), GC_HISTORIES.values(), ids=GC_HISTORIES)
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
    assert finding.figures[gc_heap.LATELY] == int(lately)


@pytest.mark.parametrize("apart", [4, 400], ids=["too near", "too long ago"])
def test_other_snapshots_are_not_compared_with(apart: int) -> None:
    """An earlier snapshot that is too near or too old is not compared with; the time since the start is judged."""
    assert over_time(young(1060), young(1000), apart=apart).findings == ()


def test_what_it_says_of_several_snapshots(golden: Golden) -> None:
    """Counters from before a restart are not compared with; the longest full collection is at least 14 s."""
    now, before = snapshot(process("a:1", young(60), 1000)), snapshot(process("a:1", young(1), 1000.5))
    before["snapshot"][0]["taken_at"] = GC_NOW - timedelta(minutes=15)
    cases = {
        "a restart begins anew, though the counters were lower before": judge_rows(
            gc_heap.GC_PRESSURE, now, earlier=[before]
        ),
        "the longest full collection": over_time(full(1030, 44), full(1028, 42), full(1000, 40)),
        "all is well since the snapshot before": over_time(young(1009), young(1000)),
    }
    golden(told(cases))
