"""Threads of BookKeeper that cannot keep up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources import bookie_thread_busy as check
from pulsar_steward.checks.resources.bookie_thread_busy import BOOKIE_QUEUE
from pulsar_steward.checks.resources.slowness import WRITES
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import BOOKIE_WRITE_CACHE, STARTED
from tests.checks.conftest import judge_rows, minutes_ago, outcome, samples, severity_of, told

if TYPE_CHECKING:
    from tests.checks.conftest import Rows
    from tests.golden import Golden


BROKERS = [{"broker": "a:1", "read": True}]


def writes(quick: float, slow: float, stalled: float = 0, source: str = "a:1") -> list[dict[str, Any]]:
    """Writes a second below 200 ms, up to a second, and over it."""
    values = {("1.0_5.0", WRITES): quick, ("200.0_1000.0", WRITES): slow, (None, f"{WRITES}_OVERFLOW"): stalled}
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
    """Queue of a thread of bookie k:1."""
    labels = json.dumps({"thread": f"{pool}-OrderedExecutor-{thread}-0"})
    return {
        "source": "k:1",
        "source_kind": "bookie",
        "series": BOOKIE_QUEUE,
        "labels_json": labels,
        "value": float(queued),
    }


def refusing(kind: str, refuses_from: float) -> list[dict[str, Any]]:
    """Setting of bookie k:1: from so many waiting requests of a kind on it refuses further ones; 0: never."""
    return samples({f"maxPending{kind}RequestsPerThread": refuses_from}, "k:1", "bookie")


CASES: dict[str, tuple[list[dict[str, Any]], Severity | None, bool]] = {
    "quick writes": (writes(631, 4), None, False),
    "just below": (writes(951, 49), None, False),
    "5 % over 200 ms, none over a second, once": (writes(950, 50), Severity.INFO, False),
    "5 % over 200 ms, some over a second": (writes(950, 40, 10), Severity.WARNING, False),
    "a quarter over 200 ms": (writes(750, 150, 100), Severity.CRITICAL, False),
    "a quarter over 200 ms, none over a second, once": (writes(750, 250), Severity.WARNING, False),
    "less than a quarter over 200 ms, none over a second, once": (writes(760, 240), Severity.INFO, False),
    "few writes say little": (writes(4, 5), None, False),
    "a single hiccup among few": (writes(15, 2), Severity.INFO, False),
    "stalls of who waits for each write, once": (writes(50, 0, 0.1), Severity.INFO, False),
    "as many stalls among many writes": (writes(1000, 0, 0.1), None, False),
    "two stalls in a minute": (writes(1, 0, 2 / 60), None, False),
    "no metrics": ([], None, True),
    "no writes": (writes(0, 0), None, True),
    "no writes, but a queue": ([*writes(0, 0), bookie_queue("BookieWriteThreadPool", 0, 0)], None, False),
    "a short queue": ([*writes(10, 0), bookie_queue("BookieWriteThreadPool", 0, 999)], None, False),
    "a long queue": ([*writes(10, 0), bookie_queue("BookieWriteThreadPool", 0, 1000)], Severity.WARNING, False),
    "a very long queue": ([*writes(10, 0), bookie_queue("BookieWriteThreadPool", 0, 5000)], Severity.CRITICAL, False),
    "a queue that is soon full": (
        [*writes(10, 0), bookie_queue("BookieWriteThreadPool", 0, 250), *refusing("Add", 2500)],
        Severity.WARNING,
        False,
    ),
    "a queue that is half full": (
        [*writes(10, 0), bookie_queue("BookieReadThreadPool", 0, 1250), *refusing("Read", 2500)],
        Severity.CRITICAL,
        False,
    ),
    "the setting of another pool": (
        [*writes(10, 0), bookie_queue("BookieReadThreadPool", 0, 999), *refusing("Add", 2500)],
        None,
        False,
    ),
    "a few tasks of a short queue": (
        [*writes(10, 0), bookie_queue("BookieWriteThreadPool", 0, 99), *refusing("Add", 20)],
        None,
        False,
    ),
    "a queue without end": (
        [*writes(10, 0), bookie_queue("BookieReadThreadPool", 0, 999), *refusing("Read", 0)],
        None,
        False,
    ),
}


@pytest.mark.parametrize(("rows", "severity", "unknown"), CASES.values(), ids=CASES)
def test_threads_and_writes_are_judged(rows: list[dict[str, Any]], severity: Severity | None, unknown: bool) -> None:
    """A finding follows from a bookie thread's queue or from the latency of a broker's writes."""
    assert outcome(judge_rows(check.CHECK, {"brokers": BROKERS, "metrics": rows})) == (severity, unknown)


def test_what_it_says(golden: Golden) -> None:
    """A thread is compared with its own pool; a hundred are listed, by severity, and slow writes before long queues."""
    series = "pulsar_managedLedger_client_thread_BookKeeperClientWorker_OrderedExecutor_1_0_thread_executor_queue"
    queues = [bookie_queue("BookieWriteThreadPool", number, queued) for number, queued in enumerate((20, 2500, 40))]
    busy = [*writes(80, 20), *queues, bookie_queue("BookieReadThreadPool", 0, 900), *samples({series: 1200.0})]
    slow = [*writes(90, 8, 2), *writes(80, 16, 4, source="b:1"), *writes(60, 30, 10, source="c:1")]
    many = [bookie_queue("BookieWriteThreadPool", number, 1000 + number) for number in range(120)]
    longest = bookie_queue("BookieWriteThreadPool", 120, 5000)
    three = [{"broker": name, "read": True} for name in ("a:1", "b:1", "c:1")]
    worst = judge_rows(check.CHECK, {"brokers": three, "metrics": [*slow, *many, longest]})
    refused = [*writes(10, 0), bookie_queue("BookieReadThreadPool", 0, 1250), *refusing("Read", 2500)]
    cases = {
        "a busy thread of a pool that is not": busy,
        "requests would be refused": refused,
        "queues of threads are not shown": writes(100, 0),
    }
    each = {rule: judge_rows(check.CHECK, {"brokers": BROKERS, "metrics": rows}) for rule, rows in cases.items()}
    golden(told({**each, "more than a hundred": worst}))
    assert [finding.subject for finding in worst.findings[:5]] == ["c:1", "k:1", "b:1", "a:1", "k:1"]
    assert worst.findings[4].figures == {"queued_tasks": 1119}


def snapshot(metrics: list[dict[str, Any]], topics: list[dict[str, Any]] | None = None) -> Rows:
    return {"brokers": BROKERS, "metrics": metrics, "topics": topics or []}


AGAIN: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], Severity | None]] = {
    "stalls of who waits for each write": (writes(50, 0, 0.1), writes(60, 0, 0.1), Severity.WARNING),
    "a stall before, and none now": (writes(60, 0, 0), writes(60, 0, 0.1), None),
    "a stall now, and none before": (writes(50, 0, 0.1), writes(60, 0, 0), Severity.INFO),
    "hardly anything but stalls": (writes(10, 0, 0.5), writes(10, 0, 0.5), Severity.CRITICAL),
    "as many stalls among many writes": (writes(1000, 0, 0.1), writes(1000, 0, 0.1), None),
    "a quarter over 200 ms, none over a second": (writes(750, 250), writes(950, 50), Severity.CRITICAL),
    "a quarter over 200 ms, and none before": (writes(750, 250), writes(1000, 0), Severity.WARNING),
    "few that are slow": (writes(15, 2), writes(15, 2), Severity.WARNING),
    "few that are very slow": (writes(12, 5), writes(15, 2), Severity.CRITICAL),
    "few that are slow, and none before": (writes(15, 2), writes(17, 0), Severity.INFO),
}


@pytest.mark.parametrize(("now", "before", "severity"), AGAIN.values(), ids=AGAIN)
def test_what_two_snapshots_show_is_no_hiccup(
    now: list[dict[str, Any]], before: list[dict[str, Any]], severity: Severity | None
) -> None:
    """Slow writes on a broker with few writes are more severe if two snapshots in a row show them."""
    assert severity_of(judge_rows(check.CHECK, snapshot(now), earlier=[minutes_ago(15, snapshot(before))])) is severity


@pytest.mark.parametrize(
    ("minutes", "period", "severity"),
    [
        ((1.5,), "60", Severity.INFO),
        ((2,), "60", Severity.WARNING),
        ((5,), "300", Severity.INFO),
        ((6,), "300", Severity.WARNING),
        ((15, 30), "60", Severity.INFO),
        ((130,), "60", Severity.INFO),
    ],
    ids=["the same minute", "another", "the same five", "other five", "quiet in between", "too long ago"],
)
def test_the_snapshot_before_is_of_another_time(minutes: tuple[float, ...], period: str, severity: Severity) -> None:
    """Only the last earlier snapshot is compared with, if it is of another statistics period and inside the window."""
    now, *quiet = snapshot(writes(50, 0, 0.1)), *(snapshot(writes(60, 0, 0)) for _ in minutes[1:])
    now["configuration"] = [{"broker": "a:1", "key": "managedLedgerStatsPeriodSeconds", "value": period}]
    before = [*quiet, snapshot(writes(60, 0, 0.1))]
    (finding,) = judge_rows(
        check.CHECK, now, earlier=[minutes_ago(*each) for each in zip(minutes, before, strict=True)]
    ).findings
    assert finding.severity is severity
    assert finding.figures["over_second_per_minute"] == 6


def topics(waiting: int, well: int = 0, rate: float = 10, entries: int = 40) -> list[dict[str, Any]]:
    """Topics that are produced to, of which so many have entries that wait for so long."""
    return [
        {
            "topic": f"persistent://acme/orders/t{number:03}",
            "broker": "a:1",
            "producers": 1,
            "message_rate_in": float(rate),
            "pending_add_entries": entries if number < waiting else 0,
        }
        for number in range(waiting + well)
    ]


WELL = writes(1000, 0)
STUCK: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], Severity | None]] = {
    "one topic in both": (topics(1, 99), topics(1, 99), Severity.WARNING),
    "one topic now": (topics(1, 99), topics(0, 100), None),
    "another one before": (topics(1, 99), topics(2, 98)[1:], None),
    "busy ones always have some on their way": (topics(100, rate=10_000), topics(100, rate=10_000), None),
    "nothing comes in any more": (topics(1, 99, rate=0, entries=1), topics(1, 99, rate=0, entries=1), Severity.WARNING),
    "half of all at once": (topics(50, 50), topics(0, 100), Severity.INFO),
    "fewer at once": (topics(49, 51), topics(0, 100), None),
    "half of a few": (topics(19, 0), topics(0, 19), None),
    "half of all in both": (topics(50, 50), topics(50, 50), Severity.CRITICAL),
}


@pytest.mark.parametrize(("now", "before", "severity"), STUCK.values(), ids=STUCK)
def test_writes_that_do_not_end_are_found(
    now: list[dict[str, Any]], before: list[dict[str, Any]], severity: Severity | None
) -> None:
    """Waiting entries are found if the same topic's wait in two snapshots, or those of half of many topics in one."""
    judgement = judge_rows(check.CHECK, snapshot(WELL, now), earlier=[minutes_ago(15, snapshot(WELL, before))])
    assert [(finding.subject, finding.severity) for finding in judgement.findings] == (
        [("a:1", severity)] if severity else []
    )


def test_stuck_writes_are_told_with_a_topic(golden: Golden) -> None:
    """The evidence names the topic with most stuck entries, and a topic of unknown rate is left out."""
    now = topics(3, 97)
    now[1]["pending_add_entries"] = 900
    now[2]["message_rate_in"] = None
    before = [minutes_ago(15, snapshot(WELL, topics(3, 97)))]
    (finding,) = judge_rows(check.CHECK, snapshot(WELL, now), earlier=before).findings
    assert finding.figures == {"entries_stuck": 940, "topics_stuck": 2, "topics_waiting": 2, "topics_written_to": 100}
    golden(finding.evidence)


def full_cache(
    throttled: float, rejected: float, started: float = 1000, size_mb: float | None = None
) -> list[dict[str, Any]]:
    """Counters of bookie k:1, of two ledger directories."""
    values = [(STARTED, started, ""), (check.THROTTLED, throttled, "a"), (check.THROTTLED, 5, "b")]
    values += [] if size_mb is None else [(BOOKIE_WRITE_CACHE, size_mb, "")]
    return [
        {
            "source": "k:1",
            "source_kind": "bookie",
            "series": series,
            "labels_json": json.dumps({"d": d}),
            "value": value,
        }
        for series, value, d in [*values, (check.REJECTED, rejected, "a")]
    ]


@pytest.mark.parametrize(
    ("now", "severity"),
    [
        (full_cache(100, 2), None),
        (full_cache(140, 2), Severity.INFO),
        (full_cache(140, 3), Severity.WARNING),
        (full_cache(140, 3, started=2000), None),
    ],
    ids=["as before", "writes waited", "writes were refused", "restarted since"],
)
def test_a_full_write_cache_is_told_by_what_came_since(now: list[dict[str, Any]], severity: Severity | None) -> None:
    """Writes that waited for a bookie's full cache are information, refused ones a warning; old ones do not count."""
    before = minutes_ago(15, snapshot([*WELL, *full_cache(100, 2)]))
    found = judge_rows(check.CHECK, snapshot([*WELL, *now]), earlier=[before]).findings
    assert [(finding.subject, finding.severity) for finding in found] == ([("k:1", severity)] if severity else [])
    if severity:
        assert found[0].figures == {"writes_throttled": 40, "writes_rejected": int(severity is Severity.WARNING)}


@pytest.mark.parametrize(
    ("size_mb", "words"),
    [(2048.0, "bookie k:1 (2,048 MiB, dbStorage_writeCacheMaxSizeMb) was full"), (None, "bookie k:1 was full")],
)
def test_a_full_write_cache_is_told_with_its_size(size_mb: float | None, words: str) -> None:
    """Where the bookie tells its settings."""
    before = minutes_ago(15, snapshot([*WELL, *full_cache(100, 2)]))
    now = snapshot([*WELL, *full_cache(140, 2, size_mb=size_mb)])
    (finding,) = judge_rows(check.CHECK, now, earlier=[before]).findings
    assert words in finding.evidence


def journal(milliseconds: float, source: str = "k:1") -> list[dict[str, Any]]:
    """Quantiles of a bookie's journal, of which one in a thousand counts."""
    of = (("0.99", "true", 9e9), ("0.999", "false", 9e9), ("0.999", "true", milliseconds))
    return [
        {
            "source": source,
            "source_kind": "bookie",
            "series": check.JOURNAL,
            "labels_json": json.dumps({"quantile": quantile, "success": success}),
            "value": value,
        }
        for quantile, success, value in of
    ]


SLOW_WRITES = writes(950, 40, 10)
JOURNALS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], Severity | None]] = {
    "quick": ([*SLOW_WRITES, *journal(999)], WELL, None),
    "nobody waits, once": ([*WELL, *journal(1000)], [*WELL, *journal(999)], Severity.INFO),
    "nobody waits, again": ([*WELL, *journal(1000)], [*WELL, *journal(1000)], Severity.WARNING),
    "brokers wait, once": ([*SLOW_WRITES, *journal(5000)], WELL, Severity.WARNING),
    "brokers wait, again": ([*SLOW_WRITES, *journal(5000)], [*WELL, *journal(5000)], Severity.CRITICAL),
}


@pytest.mark.parametrize(("now", "before", "severity"), JOURNALS.values(), ids=JOURNALS)
def test_a_slow_journal_names_its_bookie(
    golden: Golden, now: list[dict[str, Any]], before: list[dict[str, Any]], severity: Severity | None
) -> None:
    """It is the culprit where brokers' writes are slow, and comes before them (apache/pulsar#12533)."""
    others = [*journal(12, "k:2"), *journal(15, "k:3")]
    judgement = judge_rows(check.CHECK, snapshot([*now, *others]), earlier=[minutes_ago(15, snapshot(before))])
    found = [each for each in judgement.findings if each.subject.startswith("k:")]
    assert [(each.subject, each.severity) for each in found] == ([("k:1", severity)] if severity else [])
    if found:
        assert judgement.findings[0] == found[0]
        golden(found[0].evidence)
