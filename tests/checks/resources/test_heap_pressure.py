"""Heaps that stay full: what collections leave, and the lowest use in several snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources.heap import HEAP_PRESSURE as CHECK
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED
from tests.builders import NOW
from tests.checks.conftest import judge_rows, minutes_ago, outcome, told

if TYPE_CHECKING:
    from collections.abc import Sequence

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
