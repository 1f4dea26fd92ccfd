"""Signs that a broker's threads are stuck."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources import io_threads_stuck as check
from pulsar_steward.checks.resources import io_threads_stuck as series
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED
from tests.checks.conftest import judge_rows, outcome, severity_of, told

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.checks.check import Judgement
    from tests.golden import Golden

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HEALTHY = {series.DEADLOCKED: 0, series.STATES: 0, series.LOOKUPS: 0, series.LOADS: 0, series.OPEN_FILES: 380}
FIXED = {series.MOST_FILES: 20_000, STARTED: NOW.timestamp() - 7200}


def snapshot(
    values: Mapping[str, float | None], producers: int = 0, recent: int = 0
) -> dict[str, list[dict[str, Any]]]:
    """One broker; None: the series is missing."""
    labels = {series.STATES: json.dumps({"state": "BLOCKED"})}
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


BLOCKED, FILES = {series.STATES: 10}, {series.OPEN_FILES: 16_000}
CASES: dict[str, tuple[dict[str, list[dict[str, Any]]], Severity | None, bool]] = {
    "a healthy broker": (snapshot({}, producers=5000, recent=50), None, False),
    "just below everything": (
        snapshot({series.STATES: 9, series.LOOKUPS: 999, series.OPEN_FILES: 15_900}, producers=1000, recent=499),
        None,
        False,
    ),
    "many blocked threads": (snapshot(BLOCKED), Severity.INFO, False),
    "lookups and loads that wait": (snapshot({series.LOOKUPS: 600, series.LOADS: 400}), Severity.INFO, False),
    "open files": (snapshot(FILES), Severity.INFO, False),
    "mass reconnects": (snapshot({}, producers=1000, recent=500), Severity.INFO, False),
    "reconnects after a start": (snapshot({STARTED: NOW.timestamp() - 900}, producers=1000, recent=1000), None, False),
    "reconnects of few producers": (snapshot({}, producers=99, recent=99), None, False),
    "two signs": (snapshot(BLOCKED | FILES), Severity.WARNING, False),
    "a deadlock": (snapshot({series.DEADLOCKED: 2}), Severity.CRITICAL, False),
    "no metric of locks": (snapshot({series.DEADLOCKED: None}), None, True),
    "no metric of files": (snapshot({series.MOST_FILES: None}), None, True),
}


@pytest.mark.parametrize(("rows", "severity", "unknown"), CASES.values(), ids=CASES)
def test_a_broker_is_judged(rows: dict[str, list[dict[str, Any]]], severity: Severity | None, unknown: bool) -> None:
    """One sign of stuck threads is information, two are a warning, and a deadlock is critical."""
    assert outcome(judge_rows(check.CHECK, rows)) == (severity, unknown)


def over_time(*values: Mapping[str, float], minutes: int = 15, **settings: str) -> Judgement:
    """Judgement of a broker with these values, the newest first, in snapshots so many minutes apart."""
    snapshots = [snapshot(each) for each in values]
    for number, rows in enumerate(snapshots):
        rows["snapshot"][0]["taken_at"] = NOW - number * timedelta(minutes=minutes)
    now, *earlier = snapshots
    now["configuration"] = [{"broker": "a:1", "key": key, "value": value} for key, value in settings.items()]
    return judge_rows(check.CHECK, now, earlier=earlier)


ONE, TEN = {series.STATES: 1}, {series.LOOKUPS: 7, series.LOADS: 3}
STEADY: dict[str, tuple[tuple[Mapping[str, float], ...], Severity | None]] = {
    "a thread that always waits": ((ONE, ONE, {series.STATES: 3}, ONE), Severity.INFO),
    "threads that wait now and then": ((ONE, ONE, {}, ONE, ONE), None),
    "too few snapshots": ((ONE, ONE, ONE), None),
    "requests that never end": ((TEN, TEN, TEN, TEN), Severity.INFO),
    "some are always on their way": ((TEN, TEN, {series.LOOKUPS: 9}, TEN), None),
    "both": ((ONE | TEN, ONE | TEN, ONE | TEN, ONE | TEN), Severity.WARNING),
    "it is over": (({}, ONE, ONE, ONE, ONE), None),
    "another process before": ((ONE, ONE, ONE, ONE | {STARTED: 1.0}), None),
}


@pytest.mark.parametrize(("values", "severity"), STEADY.values(), ids=STEADY)
def test_what_never_goes_away_is_a_sign(values: tuple[Mapping[str, float], ...], severity: Severity | None) -> None:
    """Few blocked threads or waiting requests are a sign if every snapshot of several shows them."""
    assert severity_of(over_time(*values)) is severity


def test_what_it_says(golden: Golden) -> None:
    """Signs are called indirect, and a deadlock is not, as the Java process itself found it."""
    three_signs = snapshot(BLOCKED | FILES, producers=200, recent=150)
    cases = {
        "three signs": judge_rows(check.CHECK, three_signs),
        "a deadlock": judge_rows(check.CHECK, snapshot({series.DEADLOCKED: 2})),
        "four snapshots of nine minutes show no more than one": over_time(ONE, ONE, ONE, ONE, minutes=3),
        "the share of a thread, where their number was read": over_time(ONE, ONE, ONE, ONE, numIOThreads="16"),
    }
    golden(told(cases))
