"""The check `direct-memory-pressure`: direct memory in use, in relation to its limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources import direct_memory
from pulsar_steward.model.finding import Severity
from tests.checks.conftest import judge_rows, outcome, samples, told

if TYPE_CHECKING:
    from tests.checks.conftest import Rows
    from tests.golden import Golden

CASES: dict[str, tuple[float | None, tuple[float, float] | None, Severity | None, bool]] = {
    "half full": (50.0, None, None, False),
    "just below": (84.9, None, None, False),
    "85 %": (85.0, None, Severity.WARNING, False),
    "just below 95 %": (94.9, None, Severity.WARNING, False),
    "95 %": (95.0, None, Severity.CRITICAL, False),
    "metrics win over the load report": (10.0, (960.0, 1000.0), Severity.CRITICAL, False),
    "no limit is no metric": (10.0, (960.0, -1.0), None, False),
    "nothing is known": (None, None, None, True),
}


def memory(source: str, used: float, limit: float, kind: str) -> list[dict[str, Any]]:
    """Used and most direct memory of a process."""
    return samples({direct_memory.USED: used, direct_memory.LIMIT: limit}, source, kind)


@pytest.mark.parametrize(("reported", "measured", "severity", "unknown"), CASES.values(), ids=CASES)
def test_a_broker_is_judged(
    reported: float | None, measured: tuple[float, float] | None, severity: Severity | None, unknown: bool
) -> None:
    """A broker is judged by its metrics, or by its load report when it has no usable metrics."""
    brokers = [{"broker": "a:1", "read": True, "direct_memory_percent": reported}]
    metrics = memory("a:1", *measured, kind="broker") if measured else []
    judgement = judge_rows(direct_memory.DIRECT_MEMORY_PRESSURE, {"brokers": brokers, "metrics": metrics})
    assert outcome(judgement) == (severity, unknown)


def test_what_it_says(golden: Golden) -> None:
    """A bookie is judged by its metrics too, and the fullest process comes first."""
    brokers = [{"broker": "a:1", "read": True, "direct_memory_percent": 90.0}, {"broker": "gone:1", "read": False}]
    metrics = memory("bookie:1", 508 * 2**20, 512 * 2**20, kind="bookie")
    caches = {direct_memory.WRITE_CACHE: 256.0, direct_memory.READ_CACHE: 128.0}
    with_caches = [*metrics, *samples(caches, "bookie:1", "bookie")]
    cases: dict[str, Rows] = {"a bookie and a broker": {"brokers": brokers, "metrics": metrics}, "no process": {}}
    cases["a bookie tells its settings"] = {"brokers": brokers, "metrics": with_caches}
    golden(told({rule: judge_rows(direct_memory.DIRECT_MEMORY_PRESSURE, rows) for rule, rows in cases.items()}))
