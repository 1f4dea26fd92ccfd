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

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.checks.check import Judgement
    from tests.checks.conftest import JudgeRows
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
def test_a_broker_is_judged(
    judged: JudgeRows, rows: dict[str, list[dict[str, Any]]], severity: Severity | None, unknown: bool
) -> None:
    """One sign of stuck threads is information, two are a warning, and a deadlock is critical."""
    judgement = judged(check.CHECK, rows)

    assert [finding.severity for finding in judgement.findings] == ([severity] if severity else [])
    assert (judgement.cannot_tell is not None) is unknown


def test_the_evidence_says_that_it_is_indirect(judged: JudgeRows, golden: Golden) -> None:
    """The evidence names exactly the signs that were seen, with their numbers, and calls them indirect."""
    (finding,) = judged(check.CHECK, snapshot(BLOCKED | FILES, producers=200, recent=150)).findings

    golden(finding.evidence)
    assert finding.figures == {
        "blocked_threads": 10,
        "deadlocked_threads": 0,
        "open_files": 16_000,
        "reconnected_percent": 75,
        "signs": 3,
    }


def test_a_deadlock_is_not_called_indirect(judged: JudgeRows, golden: Golden) -> None:
    """A deadlock is not called an indirect sign, as the Java process itself found it."""
    (finding,) = judged(check.CHECK, snapshot({series.DEADLOCKED: 2})).findings

    golden(finding.evidence)


def over_time(judged: JudgeRows, *values: Mapping[str, float], minutes: int = 15, **settings: str) -> Judgement:
    """Judgement of a broker with these values, the newest first, in snapshots so many minutes apart."""
    snapshots = [snapshot(each) for each in values]
    for number, rows in enumerate(snapshots):
        rows["snapshot"][0]["taken_at"] = NOW - number * timedelta(minutes=minutes)
    now, *earlier = snapshots
    now["configuration"] = [{"broker": "a:1", "key": key, "value": value} for key, value in settings.items()]
    return judged(check.CHECK, now, earlier=earlier)


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
def test_what_never_goes_away_is_a_sign(
    judged: JudgeRows, values: tuple[Mapping[str, float], ...], severity: Severity | None
) -> None:
    """Few blocked threads or waiting requests are a sign if every snapshot of several shows them."""
    judgement = over_time(judged, *values)

    assert [finding.severity for finding in judgement.findings] == ([severity] if severity else [])


def test_a_burst_of_snapshots_shows_no_more_than_one(judged: JudgeRows) -> None:
    """Four snapshots within nine minutes are not enough for a sign that never goes away."""
    assert over_time(judged, ONE, ONE, ONE, ONE, minutes=3).findings == ()


def test_the_share_of_a_single_thread_is_told(judged: JudgeRows, golden: Golden) -> None:
    """The evidence states one IO thread's share of the connections when the number of IO threads was read."""
    (finding,) = over_time(judged, ONE, ONE, ONE, ONE, numIOThreads="16").findings

    golden(finding.evidence)
    assert finding.figures["always_blocked_threads"] == 1
