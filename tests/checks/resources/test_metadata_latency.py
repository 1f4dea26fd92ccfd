"""How long the metadata store takes to answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources import metadata_latency as check
from pulsar_steward.model.finding import Severity

if TYPE_CHECKING:
    from tests.checks.conftest import JudgeRows

BROKERS = [{"broker": "a:1", "read": True}]


def sample(series: str, value: float, **labels: str) -> dict[str, Any]:
    """A sample of broker a:1."""
    text = json.dumps({"name": "metadata-store"} | labels)
    return {"source": "a:1", "source_kind": "broker", "series": series, "labels_json": text, "value": float(value)}


def timed(
    operation: str, count: int, mean: float, slow: int | None = 0, status: str = "success"
) -> list[dict[str, Any]]:
    """One kind of operation; slow ones took over a second, None: the buckets are missing."""
    labels = {"type": operation, "status": status}
    rows = [sample(check.OPERATIONS, count, **labels), sample(check.MILLISECONDS, count * mean, **labels)]
    if slow is not None:
        rows += [
            sample(check.BUCKETS, count - slow, le="1000.0", **labels),
            sample(check.BUCKETS, count, le="+Inf", **labels),
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
    "failures are another matter": (timed("get", 50, 5) + timed("put", 500, 900, status="fail"), None, False),
    "too few say nothing": (timed("get", 19, 2), None, True),
    "nothing says nothing": ([], None, True),
}


@pytest.mark.parametrize(("rows", "severity", "unknown"), CASES.values(), ids=CASES)
def test_a_broker_is_judged(
    judged: JudgeRows,
    rows: list[dict[str, Any]],
    severity: Severity | None,
    unknown: bool,
) -> None:
    """By the mean of each kind of operation, and by those over a second."""
    judgement = judged(check.CHECK, {"brokers": BROKERS, "metrics": rows})

    assert [finding.severity for finding in judgement.findings] == ([severity] if severity else [])
    assert (judgement.cannot_tell is not None) is unknown


def test_the_evidence_tells_the_store_from_the_broker(judged: JudgeRows) -> None:
    """The slowest kind is named, with the time that it waited in the broker."""
    waits = [sample(check.WAITED, 900), sample(check.WAITS, 10)]
    rows = timed("get", 100, 110) + timed("put", 2000, 140, slow=30) + waits

    (finding,) = judged(check.CHECK, {"brokers": BROKERS, "metrics": rows}).findings

    assert finding.evidence == (
        "Operations `put` on the metadata-store took 140 ms on average, as the broker a:1 saw 2,000 of them since its"
        " start; 30 (1.5 %) took over a second; before they are sent, they wait 90 ms on average in the broker itself."
    )
    assert finding.figures == {
        "mean_milliseconds": 140,
        "operations": 2000,
        "slow_operations": 30,
        "waiting_milliseconds": 90,
    }
