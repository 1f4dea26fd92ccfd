"""The check `metadata-latency`: time that the metadata store takes to answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources import metadata_latency as check
from pulsar_steward.checks.resources import metadata_latency as series
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED, ZOOKEEPER_VERSION
from tests.builders import NOW
from tests.checks.conftest import judge_rows, minutes_ago, outcome, severity_of, told

if TYPE_CHECKING:
    from tests.checks.conftest import Rows
    from tests.golden import Golden

BROKERS = [{"broker": "a:1", "read": True}]


def sample(series: str, value: float, **labels: str) -> dict[str, Any]:
    text = json.dumps({"name": "metadata-store"} | labels)
    return {"source": "a:1", "source_kind": "broker", "series": series, "labels_json": text, "value": float(value)}


def timed(
    operation: str, count: int, mean: float, slow: int | None = 0, status: str = "success", stalled: int = 0
) -> list[dict[str, Any]]:
    """One kind of operation; slow ones took over a second, stalled ones of them over 5 s; None: without buckets."""
    labels = {"type": operation, "status": status}
    rows = [sample(series.OPERATIONS, count, **labels), sample(series.MILLISECONDS, count * mean, **labels)]
    if slow is not None:
        rows += [
            sample(series.BUCKETS, count - slow, le="1000.0", **labels),
            sample(series.BUCKETS, count - stalled, le="2000.0", **labels),
            sample(series.BUCKETS, count - stalled, le="5000.0", **labels),
            sample(series.BUCKETS, count, le="+Inf", **labels),
        ]
    return rows


CASES: dict[str, tuple[list[dict[str, Any]], Severity | None, bool]] = {
    "a few milliseconds": (timed("get", 166, 5.4), None, False),
    "the first operations of a broker": (timed("get", 33, 11) + timed("put", 19, 250), None, False),
    "just below": (timed("put", 100, 99.9), None, False),
    "100 ms": (timed("put", 100, 100), Severity.WARNING, False),
    "a second": (timed("put", 100, 1000), Severity.CRITICAL, False),
    "one in a hundred over a second": (timed("put", 1000, 20, slow=10), Severity.WARNING, False),
    "less than that": (timed("put", 1001, 20, slow=10), None, False),
    "few of few": (timed("put", 100, 20, slow=9), None, False),
    "without buckets the mean is left": (timed("put", 1000, 20, slow=None), None, False),
    "quick failures of writes are another matter": (
        timed("get", 50, 5) + timed("put", 500, 900, status="fail"),
        None,
        False,
    ),
    "writes that failed after a second are slow": (
        timed("put", 900, 5) + timed("put", 100, 30_000, slow=10, status="fail"),
        Severity.WARNING,
        False,
    ),
    "reads that failed": (timed("get", 990, 5) + timed("get", 10, 5, status="fail"), Severity.WARNING, False),
    "fewer reads that failed": (timed("get", 991, 5) + timed("get", 9, 5, status="fail"), None, False),
    "few of many reads": (timed("get", 991, 5) + timed("get", 10, 5, status="fail"), None, False),
    "nothing but failures": (timed("get", 20, 5, status="fail"), Severity.WARNING, False),
    "too few say nothing": (timed("get", 19, 2), None, True),
    "nothing says nothing": ([], None, True),
}


@pytest.mark.parametrize(("rows", "severity", "unknown"), CASES.values(), ids=CASES)
def test_a_broker_is_judged(rows: list[dict[str, Any]], severity: Severity | None, unknown: bool) -> None:
    """A broker is judged by each operation's mean time, by operations over a second and by failed reads."""
    assert outcome(judge_rows(check.CHECK, {"brokers": BROKERS, "metrics": rows})) == (severity, unknown)


START = NOW.timestamp() - 30 * 86_400
MONTH = 50_000_000
"""Operations of a broker within a month."""


def counted(
    count: int, mean: float = 5, slow: int = 0, stalled: int = 0, lost: int = 0, started: float = START
) -> Rows:
    """A broker that has run for a month: its reads of so many milliseconds, and besides what slow ones took."""
    reads = timed("get", count, mean, slow, stalled=stalled)
    reads[1]["value"] += lost * 1000
    return {"brokers": BROKERS, "metrics": [*reads, sample(STARTED, started)]}


OLD = {"slow": 600_000, "stalled": 9000, "lost": 9_000_000}
HISTORIES: dict[str, tuple[tuple[Rows, ...], Severity | None]] = {
    "a stall of a minute": (
        (counted(MONTH + 100_000, slow=40, stalled=40, lost=800), counted(MONTH)),
        Severity.WARNING,
    ),
    "a stall of a second for many": ((counted(MONTH + 100_000, slow=60, lost=70), counted(MONTH)), Severity.INFO),
    "a stall of a second for some": ((counted(MONTH + 100_000, slow=40, lost=50), counted(MONTH)), None),
    "a single one that hung": ((counted(MONTH + 1000, slow=1, stalled=1, lost=9), counted(MONTH)), Severity.INFO),
    "stalls of a second again and again": (
        (counted(MONTH + 200_000, slow=120, lost=140), counted(MONTH + 100_000, slow=60, lost=70), counted(MONTH)),
        Severity.WARNING,
    ),
    "stalls of long ago": ((counted(MONTH + 3000, **OLD), counted(MONTH + 2000, **OLD)), None),
    "slow only now": ((counted(MONTH + 1000, lost=150), counted(MONTH)), Severity.WARNING),
    "slow, and restarted since": ((counted(1000, 200, started=START + 1), counted(MONTH)), Severity.WARNING),
    "well, and restarted since": ((counted(1000, started=START + 1), counted(MONTH, 500)), None),
    "slow in its first minutes": ((counted(38, 104, started=NOW.timestamp() - 200),), Severity.INFO),
    "slow beyond these": ((counted(38, 104, started=NOW.timestamp() - 601),), Severity.WARNING),
    "standing in its first minutes": ((counted(38, 1004, started=NOW.timestamp() - 200),), Severity.CRITICAL),
    "young, and slow since the snapshot before": (
        (counted(138, 204, started=NOW.timestamp() - 500), counted(38, 104, started=NOW.timestamp() - 500)),
        Severity.WARNING,
    ),
    "counters began anew without a restart": ((counted(1000, 200), counted(MONTH)), Severity.WARNING),
    "next to nothing to do since": ((counted(MONTH + 5, lost=4), counted(MONTH)), None),
}


@pytest.mark.parametrize(("snapshots", "severity"), HISTORIES.values(), ids=HISTORIES)
def test_what_happened_since_the_snapshot_before_counts(snapshots: tuple[Rows, ...], severity: Severity | None) -> None:
    """Operations are judged since the previous snapshot, so that old counts neither hide a stall nor repeat one."""
    now, *before = snapshots
    earlier = [minutes_ago(15 * (number + 1), rows) for number, rows in enumerate(before)]
    judgement = judge_rows(check.CHECK, now, earlier=earlier)
    assert severity_of(judgement) is severity
    assert judgement.cannot_tell is None


LARGE: Rows = {
    "configuration": [{"broker": "a:1", "key": check.HOLES_IN_STORE, "value": "300000"}],
    "topics": [
        {"topic": f"persistent://t/n/{name}", "broker": "a:1", "storage_bytes": 1} for name in ("many", "few", "acked")
    ],
    "drilled": [
        {"topic": "persistent://t/n/many", "subscription": "s", "ledgers": 61_000},
        {"topic": "persistent://t/n/few", "subscription": "s", "ledgers": 30_000},
    ],
    "subscriptions": [
        {"topic": "persistent://t/n/acked", "subscription": "s", "ack_holes": 240_000},
        {"topic": "persistent://t/n/few", "subscription": "in-a-ledger", "ack_holes": 400_000},
    ],
}
"""Of a topic's ledgers and a cursor's holes, those of which the node is over a mebibyte."""


def test_what_it_says(golden: Golden) -> None:
    """The store is told from the broker; 10 slow ones and 30 of 5 s lose 160 s at least."""
    waits = [sample(series.WAITED, 900), sample(series.WAITS, 10)]
    slow = {"brokers": BROKERS, "metrics": timed("get", 100, 110) + timed("put", 2000, 140, slow=30) + waits}
    versions = [
        {"source": f"{host}:9990", "source_kind": "zookeeper", "series": ZOOKEEPER_VERSION, "value": 1.0}
        | {"labels_json": json.dumps({"version": version})}
        for host, version in (("z1", "3.4.14"), ("z2", "3.10.0"), ("z3", "3.6.2"), ("z4", "3.6.3"))
    ]
    stalled, old = counted(MONTH + 100_000, slow=40, stalled=30, lost=800), counted(MONTH, **OLD)
    cases: dict[str, tuple[Any, ...]] = {
        "the slowest kind, and what waits in the broker": (slow,),
        "time lost since the snapshot before": (stalled, None, [minutes_ago(15, counted(MONTH))]),
        "the snapshot before is too near": (old, None, [minutes_ago(1, old)]),
        "large nodes": (slow | LARGE,),
        "old servers": (slow | {"metrics": [*slow["metrics"], *versions]},),
        "it is too long ago": (old, None, [minutes_ago(130, old)]),
    }
    golden(told({rule: judge_rows(check.CHECK, *case) for rule, case in cases.items()}))
