"""Signs that a broker's threads are stuck."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources import io_threads_stuck as check
from pulsar_steward.checks.views import STARTED
from pulsar_steward.model.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.checks.conftest import JudgeRows

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HEALTHY = {check.DEADLOCKED: 0, check.STATES: 0, check.LOOKUPS: 0, check.LOADS: 0, check.OPEN_FILES: 380}
FIXED = {check.MOST_FILES: 20_000, STARTED: NOW.timestamp() - 7200}


def snapshot(
    values: Mapping[str, float | None], producers: int = 0, recent: int = 0
) -> dict[str, list[dict[str, Any]]]:
    """One broker; None: the series is missing."""
    labels = {check.STATES: json.dumps({"state": "BLOCKED"})}
    samples = [
        {"source": "a:1", "source_kind": "broker", "series": series, "value": float(value)}
        | {"labels_json": labels.get(series, "{}")}
        for series, value in {**HEALTHY, **FIXED, **values}.items()
        if value is not None
    ]
    return {
        "snapshot": [{"cluster": "lab", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": []}],
        "brokers": [{"broker": "a:1", "read": True}],
        "metrics": samples,
        "topics": [
            {
                "topic": "persistent://t/n/a",
                "broker": "a:1",
                "producers": producers,
                "producers_connected_recently": recent,
            }
        ],
    }


BLOCKED, FILES = {check.STATES: 10}, {check.OPEN_FILES: 16_000}
CASES: dict[str, tuple[dict[str, list[dict[str, Any]]], Severity | None, bool]] = {
    "a healthy broker": (snapshot({}, producers=5000, recent=50), None, False),
    "just below everything": (
        snapshot({check.STATES: 9, check.LOOKUPS: 999, check.OPEN_FILES: 15_900}, producers=1000, recent=499),
        None,
        False,
    ),
    "many blocked threads": (snapshot(BLOCKED), Severity.INFO, False),
    "lookups and loads that wait": (snapshot({check.LOOKUPS: 600, check.LOADS: 400}), Severity.INFO, False),
    "open files": (snapshot(FILES), Severity.INFO, False),
    "mass reconnects": (snapshot({}, producers=1000, recent=500), Severity.INFO, False),
    "reconnects after a start": (
        snapshot({STARTED: NOW.timestamp() - 900}, producers=1000, recent=1000),
        None,
        False,
    ),
    "reconnects of few producers": (snapshot({}, producers=99, recent=99), None, False),
    "two signs": (snapshot(BLOCKED | FILES), Severity.WARNING, False),
    "a deadlock": (snapshot({check.DEADLOCKED: 2}), Severity.CRITICAL, False),
    "no metric of locks": (snapshot({check.DEADLOCKED: None}), None, True),
    "no metric of files": (snapshot({check.MOST_FILES: None}), None, True),
}


@pytest.mark.parametrize(("rows", "severity", "unknown"), CASES.values(), ids=CASES)
def test_a_broker_is_judged(
    judged: JudgeRows,
    rows: dict[str, list[dict[str, Any]]],
    severity: Severity | None,
    unknown: bool,
) -> None:
    """One sign is information, two are a warning, and a deadlock is what it is."""
    judgement = judged(check.CHECK, rows)

    assert [finding.severity for finding in judgement.findings] == ([severity] if severity else [])
    assert (judgement.cannot_tell is not None) is unknown


def test_the_evidence_says_that_it_is_indirect(judged: JudgeRows) -> None:
    """All signs are named with their numbers, and only they."""
    (finding,) = judged(check.CHECK, snapshot(BLOCKED | FILES, producers=200, recent=150)).findings

    assert finding.evidence == (
        "Indirect signs of stuck threads at broker a:1: 10 threads wait for a lock, 16,000 files and sockets are open"
        " (80 % of the limit), 75 % of 200 producers connected anew within minutes; a thread dump would tell."
    )
    assert finding.figures == {
        "blocked_threads": 10,
        "deadlocked_threads": 0,
        "open_files": 16_000,
        "reconnected_percent": 75,
        "signs": 3,
    }


def test_a_deadlock_is_not_called_indirect(judged: JudgeRows) -> None:
    """The Java process itself found it."""
    (finding,) = judged(check.CHECK, snapshot({check.DEADLOCKED: 2})).findings

    assert finding.evidence == "2 threads of broker a:1 are in a deadlock."
