"""The check `ledger-switch-slow`: time that brokers take to go over to a new ledger."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources import slowness
from pulsar_steward.checks.resources.slowness import SWITCHES
from pulsar_steward.model.finding import Severity
from tests.checks.conftest import as_text, judge_rows, minutes_ago, outcome, severity_of

if TYPE_CHECKING:
    from tests.golden import Golden

BROKERS = [{"broker": "a:1", "read": True}]
NAMESPACE = "acme/orders/persistent"


def switches(quick: float, slow: float, stalled: float, namespace: str = NAMESPACE) -> list[dict[str, Any]]:
    """Switches a minute below 200 ms, up to a second, and over it; the series have them a second."""
    buckets = {"10.0_20.0": quick, "100.0_200.0": 0.0, "200.0_1000.0": slow}
    rows = [
        {"series": SWITCHES, "value": count / 60, "labels_json": _labels(namespace=namespace, quantile=bounds)}
        for bounds, count in buckets.items()
    ]
    rows.append({"series": f"{SWITCHES}_OVERFLOW", "value": stalled / 60, "labels_json": _labels(namespace=namespace)})
    return [row | {"source": "a:1", "source_kind": "broker"} for row in rows]


def _labels(**labels: str) -> str:
    return json.dumps({"cluster": "lab"} | labels)


CASES: dict[str, tuple[list[dict[str, Any]], Severity | None, bool]] = {
    "quick ones": (switches(46, 0, 0), None, False),
    "four slow ones": (switches(4, 4, 0), None, False),
    "five slow ones of many": (switches(21, 5, 0), None, False),
    "five slow ones of 25": (switches(20, 5, 0), Severity.WARNING, False),
    "one over a second": (switches(50, 0, 1), Severity.INFO, False),
    "five over a second": (switches(10, 0, 5), Severity.CRITICAL, False),
    "four over a second and one slow": (switches(10, 1, 4), Severity.WARNING, False),
    "none at all": (switches(0, 0, 0), None, True),
    "no metrics": ([], None, True),
}


@pytest.mark.parametrize(("rows", "severity", "unknown"), CASES.values(), ids=CASES)
def test_a_broker_is_judged(rows: list[dict[str, Any]], severity: Severity | None, unknown: bool) -> None:
    """A broker is judged by the number and share of its slow ledger switches, and is unknown without switches."""
    assert outcome(judge_rows(slowness.CHECK, {"brokers": BROKERS, "metrics": rows})) == (severity, unknown)


def test_the_evidence_names_the_namespace(golden: Golden) -> None:
    """The switches of all namespaces of a broker are added, and the one with most slow switches is named."""
    rows = switches(30, 2, 0, "acme/few/persistent") + switches(0, 8, 10)
    (finding,) = judge_rows(slowness.CHECK, {"brokers": BROKERS, "metrics": rows}).findings
    golden(finding.evidence)
    golden(as_text(finding.figures))


LOST: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], Severity | None]] = {
    "half of the time in both": (switches(200, 0, 5), switches(200, 0, 5), Severity.WARNING),
    "half of the time once": (switches(200, 0, 5), switches(200, 0, 0), Severity.INFO),
    "less of the time": (switches(260, 0, 5), switches(260, 0, 5), Severity.INFO),
    "a single one in both": (switches(10, 0, 1), switches(10, 0, 1), Severity.INFO),
}


@pytest.mark.parametrize(("now", "before", "severity"), LOST.values(), ids=LOST)
def test_few_among_many_are_judged_by_the_time_that_they_take(
    now: list[dict[str, Any]], before: list[dict[str, Any]], severity: Severity | None
) -> None:
    """Few slow switches among many are a warning if they take half of the time in two snapshots."""
    earlier = [minutes_ago(15, {"brokers": BROKERS, "metrics": before})]
    assert severity_of(judge_rows(slowness.CHECK, {"brokers": BROKERS, "metrics": now}, earlier=earlier)) is severity
