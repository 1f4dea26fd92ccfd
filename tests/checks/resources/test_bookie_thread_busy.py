"""Threads of BookKeeper that cannot keep up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources import bookie_thread_busy as check
from pulsar_steward.checks.resources.views import WRITES
from pulsar_steward.model.finding import Severity

if TYPE_CHECKING:
    from tests.checks.conftest import JudgeRows

BROKERS = [{"broker": "a:1", "read": True}]


def writes(quick: float, slow: float, stalled: float = 0, source: str = "a:1") -> list[dict[str, Any]]:
    """Writes a second below 200 ms, up to a second, and over it."""
    values = {
        ("1.0_5.0", WRITES): quick,
        ("200.0_1000.0", WRITES): slow,
        (None, f"{WRITES}_OVERFLOW"): stalled,
    }
    return [
        {
            "source": source,
            "source_kind": "broker",
            "series": series,
            "labels_json": _labels(bounds),
            "value": float(value),
        }
        for (bounds, series), value in values.items()
    ]


def _labels(bounds: str | None) -> str:
    labels = {"namespace": "acme/orders/persistent"}
    return json.dumps(labels | {"quantile": bounds} if bounds else labels)


def bookie_queue(pool: str, thread: int, queued: int) -> dict[str, Any]:
    """What waits for a thread of bookie k:1."""
    labels = json.dumps({"thread": f"{pool}-OrderedExecutor-{thread}-0"})
    return {
        "source": "k:1",
        "source_kind": "bookie",
        "series": check.BOOKIE_QUEUE,
        "labels_json": labels,
        "value": float(queued),
    }


CASES: dict[str, tuple[list[dict[str, Any]], Severity | None, bool]] = {
    "quick writes": (writes(631, 4), None, False),
    "just below": (writes(951, 49), None, False),
    "5 % over 200 ms": (writes(950, 50), Severity.WARNING, False),
    "a quarter over 200 ms": (writes(750, 150, 100), Severity.CRITICAL, False),
    "few writes say little": (writes(4, 5), None, False),
    "no metrics": ([], None, True),
    "no writes": (writes(0, 0), None, True),
    "no writes, but a queue": ([*writes(0, 0), bookie_queue("BookieWriteThreadPool", 0, 0)], None, False),
    "a short queue": ([*writes(10, 0), bookie_queue("BookieWriteThreadPool", 0, 999)], None, False),
    "a long queue": ([*writes(10, 0), bookie_queue("BookieWriteThreadPool", 0, 1000)], Severity.WARNING, False),
    "a very long queue": ([*writes(10, 0), bookie_queue("BookieWriteThreadPool", 0, 5000)], Severity.CRITICAL, False),
}


@pytest.mark.parametrize(("rows", "severity", "unknown"), CASES.values(), ids=CASES)
def test_threads_and_writes_are_judged(
    judged: JudgeRows,
    rows: list[dict[str, Any]],
    severity: Severity | None,
    unknown: bool,
) -> None:
    """By the queue of each thread where it is shown, and by how long writes take."""
    judgement = judged(check.CHECK, {"brokers": BROKERS, "metrics": rows})

    assert [finding.severity for finding in judgement.findings] == ([severity] if severity else [])
    assert (judgement.cannot_tell is not None) is unknown


def test_a_busy_thread_is_told_from_a_busy_pool(judged: JudgeRows) -> None:
    """The thread is named and compared with the others of its pool only; slow writes are called indirect."""
    series = "pulsar_managedLedger_client_thread_BookKeeperClientWorker_OrderedExecutor_1_0_thread_executor_queue"
    of_broker = {"source": "a:1", "source_kind": "broker", "series": series, "labels_json": "{}", "value": 1200.0}
    queues = [bookie_queue("BookieWriteThreadPool", number, queued) for number, queued in enumerate((20, 2500, 40))]
    rows = [*writes(80, 20), *queues, bookie_queue("BookieReadThreadPool", 0, 900), of_broker]

    found = judged(check.CHECK, {"brokers": BROKERS, "metrics": rows}).findings

    of_client, of_pool, of_writes = sorted(finding.evidence for finding in found)
    assert of_client == (
        "1,200 tasks wait for thread BookKeeperClientWorker_OrderedExecutor_1_0 of the broker a:1,"
        " the only one of its pool."
    )
    assert of_pool == (
        "2,500 tasks wait for thread BookieWriteThreadPool-OrderedExecutor-1-0 of the bookie k:1;"
        " for the others of its pool 30 on average."
    )
    assert of_writes == (
        "Of 100 writes a second from broker a:1 to bookies in the last minute, 20 % took over 200 ms and 0 % over"
        " a second: indirect evidence of a busy thread, a slow disk or the network."
    )


def test_queues_that_are_not_shown_are_said_to_be_missing(judged: JudgeRows) -> None:
    """Quick writes are good news, but not of each thread."""
    judgement = judged(check.CHECK, {"brokers": BROKERS, "metrics": writes(100, 0)})

    assert judgement.quiet.endswith("the queues of single threads are not in the snapshot.")


def test_only_the_worst_hundred_are_listed(judged: JudgeRows) -> None:
    """What is critical first, then slow writes, the slowest first, then long queues; the rest is counted."""
    brokers = [{"broker": name, "read": True} for name in ("a:1", "b:1", "c:1")]
    slow = [*writes(90, 10), *writes(80, 20, source="b:1"), *writes(60, 40, source="c:1")]
    queues = [bookie_queue("BookieWriteThreadPool", number, 1000 + number) for number in range(120)]
    longest = bookie_queue("BookieWriteThreadPool", 120, 5000)

    judgement = judged(check.CHECK, {"brokers": brokers, "metrics": [*slow, *queues, longest]})

    assert (len(judgement.findings), judgement.more) == (100, 24)
    assert [finding.subject for finding in judgement.findings[:5]] == ["c:1", "k:1", "b:1", "a:1", "k:1"]
    assert judgement.findings[4].figures == {"queued_tasks": 1119}
