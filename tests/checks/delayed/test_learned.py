"""Rates that are learned from a broker's end, by when clients of its topics were connected again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.checks.check import CheckAnswer
from pulsar_steward.checks.delayed import failover_time
from pulsar_steward.checks.delayed.failover import FailoverTimePolicy, LostLoad, RemainingBrokers, estimated
from pulsar_steward.checks.delayed.learned import columns_of, learned_from
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.learned import Learned
from pulsar_steward.policy.schema import Policy

if TYPE_CHECKING:
    from tests.checks.conftest import JudgeRows, Rows
    from tests.golden import Golden

NOW = datetime(2026, 1, 2, tzinfo=UTC)
BEFORE = NOW - timedelta(minutes=20)
LOST_AT = NOW - timedelta(minutes=10)
LONG_AGO = NOW - timedelta(days=3)
BROKERS = ("a:8080", "b:8080", "c:8080")
LEARNED = "learned from when a:8080 went away"


def told(
    at: datetime,
    owners: str,
    *served: tuple[float, float],
    brokers: str = "abc",
    topics: int = 250,
    started: datetime = LONG_AGO,
    skew: int = 0,
) -> Rows:
    """A snapshot: the owner of each bundle, a letter, and when its first and most of its topics had clients.

    Args:
        at: Snapshot time.
        owners: A letter for each bundle.
        served: Seconds after the loss for each bundle; none: it has had its clients for days.
        brokers: Those that are listed.
        topics: Topics of each bundle.
        started: When the first broker was.
        skew: Milliseconds that the clock of the second broker is ahead.
    """
    ids = [f"{letter}:8080" for letter in brokers]
    delayed = {"source_kind": "broker", "series": "pulsar_subscription_delayed", "value": 0.0}
    start = {"source_kind": "broker", "series": "process_start_time_seconds"}
    starts = {"a:8080": started}
    seconds = timedelta(seconds=1)
    times = [(LOST_AT + first * seconds, LOST_AT + most * seconds) for first, most in served]
    times = times or [(LONG_AGO, LONG_AGO)] * len(owners)
    return {
        "snapshot": [{"cluster": "lab", "taken_at": at, "unread_brokers": [], "unread_namespaces": []}],
        "brokers": [
            {"broker": each, "read": True, "bundles": 4, "topics": 1_000}
            | {"clock_skew_milliseconds": skew if each == "b:8080" else None}
            for each in ids
        ],
        "topics": [{"topic": f"persistent://t/n/{each}", "broker": each} for each in ids],
        "metrics": [
            *({"source": each} | delayed for each in ids),
            *(start | {"source": each, "value": starts.get(each, LONG_AGO).timestamp()} for each in ids),
        ],
        "bundles": [
            {"namespace": "t/n", "bundle": f"bundle-{number}", "owner": f"{owner}:8080", "owner_known": True}
            | {"connected_topics": topics, "first_connected": first, "most_connected": most}
            for number, (owner, (first, most)) in enumerate(zip(owners, times, strict=True))
        ],
    }


OWNED = told(BEFORE, "aaaa")
SLOWLY = ((0.0, 59.0), (0.0, 59.0), (5.0, 40.0), (0.0, 59.0))
QUICKLY = ((0.0, 4.0),) * 4


def test_a_slow_failover_is_learned(judge_rows: JudgeRows, golden: Golden) -> None:
    """A slow failover lowers the rate of the estimate, which then finds brokers that the policy's rate would clear."""
    after = told(NOW, "bbcc", *SLOWLY, started=LOST_AT + timedelta(seconds=30))
    policy = Policy.model_validate({"failover_time": {"warning_seconds": 90}})

    found = judge_rows(failover_time.CHECK, after, policy, [OWNED]).findings

    assert [(each.subject, each.severity) for each in found] == [(each, Severity.WARNING) for each in BROKERS]
    assert (found[0].figures["learned_from_topics"], found[0].figures["learned_in_seconds"]) == (900, 60)
    golden(found[0].evidence)


def test_a_quick_failover_is_learned(judge_rows: JudgeRows) -> None:
    """A quick failover raises the rate of the estimate, which then clears brokers that the policy's rate would find."""
    after = told(NOW, "bbcc", *QUICKLY, started=LOST_AT + timedelta(seconds=30))
    policy = Policy.model_validate({"failover_time": {"warning_seconds": 68}})

    learned, assumed = (judge_rows(failover_time.CHECK, after, policy, earlier) for earlier in ([OWNED], []))

    assert learned.findings == ()
    assert "2 brokers served 900 topics again in 5 s" in (learned.quiet or "")
    assert len(assumed.findings) == 3


SEEN: dict[str, tuple[Rows, list[Rows], bool]] = {
    "it is not listed any more": (told(NOW, "bbcc", *QUICKLY, brokers="bc"), [OWNED], True),
    "it restarted": (told(NOW, "bbcc", *QUICKLY, started=LOST_AT), [OWNED], True),
    "it was there all the time: its bundles were moved": (told(NOW, "bbcc", *QUICKLY), [OWNED], False),
    "it restarted before": (told(NOW, "bbcc", *QUICKLY, started=BEFORE), [OWNED], False),
    "it is in an earlier pair of snapshots": (
        told(NOW, "bbcc", *QUICKLY, started=LOST_AT),
        [told(NOW - timedelta(minutes=5), "bbcc", *QUICKLY, started=LOST_AT), OWNED],
        True,
    ),
    "the snapshots are of another day": (
        told(NOW, "bbcc", *QUICKLY, started=LOST_AT),
        [told(NOW - timedelta(hours=25), "aaaa")],
        False,
    ),
    "too few topics": (told(NOW, "bbcc", *QUICKLY, started=LOST_AT, topics=50), [OWNED], False),
    "they are its own again": (told(NOW, "aaaa", *QUICKLY, started=LOST_AT), [OWNED], False),
    "clients have been there since before": (told(NOW, "bbcc", started=LOST_AT), [OWNED], False),
    "an older version did not keep it": (
        {
            **told(NOW, "bbcc", *QUICKLY, started=LOST_AT),
            "bundles": [{"namespace": "t/n", "bundle": f"bundle-{each}", "owner": "b:8080"} for each in range(4)],
        },
        [OWNED],
        False,
    ),
    "two were gone": (
        told(NOW, "cccc", *QUICKLY, brokers="c"),
        [told(BEFORE, "aabb")],
        False,
    ),
}


@pytest.mark.parametrize(("now", "earlier", "expected"), SEEN.values(), ids=SEEN)
def test_it_is_learned_where_it_was_seen(judge_rows: JudgeRows, now: Rows, earlier: list[Rows], expected: bool) -> None:
    """A rate is learned only if snapshots show one broker's end and its clients' return; else the policy's holds."""
    judgement = judge_rows(failover_time.CHECK, now, None, earlier)

    assert judgement.findings == ()
    assert (LEARNED in (judgement.quiet or "")) is expected
    assert ("learned" in (judgement.quiet or "")) is expected


TAKEN: dict[str, tuple[str, tuple[tuple[float, float], ...], int, str]] = {
    # owners, seconds of each bundle, clock skew of b, what is learned
    "whole seconds count": ("bcbc", ((0.0, 0.0),) * 4, 0, "2 brokers served 900 topics again in 1 s"),
    "a bundle that moved again later does not count": (
        "bbcb",
        (*((0.0, 9.0),) * 3, (300.0, 301.0)),
        0,
        "2 brokers served 675 topics again in 10 s",
    ),
    "clients that wait for a minute are still of it": (
        "bbcb",
        (*((0.0, 9.0),) * 3, (60.0, 69.0)),
        0,
        "2 brokers served 900 topics again in 70 s",
    ),
    "a clock that is ahead": (
        "bbbc",
        (*((20.0, 29.0),) * 3, (0.0, 9.0)),
        20_000,
        "2 brokers served 900 topics again in 10 s",
    ),
}


@pytest.mark.parametrize(("owners", "served", "skew", "expected"), TAKEN.values(), ids=TAKEN)
def test_what_belongs_together_is_counted(
    judge_rows: JudgeRows, owners: str, served: tuple[tuple[float, float], ...], skew: int, expected: str
) -> None:
    """The learned rate counts bundles whose clients came back together, corrected for the brokers' clock skew."""
    now = told(NOW, owners, *served, started=LOST_AT, skew=skew)
    assert expected in (judge_rows(failover_time.CHECK, now, None, [OWNED]).quiet or "")


def test_a_bundle_with_one_late_client_does_not_count() -> None:
    """A topic whose client comes an hour late does not lengthen the learned time, as nine in ten topics count."""
    rows = [{"topics": 100, "first": 0.0, "most": 5.0, "lost": "a", "taker": "b", "after": 1.0} for _ in range(9)]
    late = {"topics": 1, "first": 0.0, "most": 3_600.0, "lost": "a", "taker": "b", "after": 1.0}
    answers = {"taken_over": CheckAnswer((*rows, late), 10), "learned_before": CheckAnswer((), 0)}
    learned = learned_from(answers, FailoverTimePolicy(), NOW)
    assert learned is not None
    assert (learned.topics, learned.seconds) == (810, 6)


HANDED_ON: dict[str, tuple[timedelta, int, str | None]] = {
    # age of what was learned, its topics, whose end rates are learned from now
    "nothing else was seen": (timedelta(days=60), 500, "z:8080"),
    "it is too old": (timedelta(days=91), 500, None),
}


@pytest.mark.parametrize(("age", "topics", "lost"), HANDED_ON.values(), ids=HANDED_ON)
def test_what_was_learned_is_handed_on(judge_rows: JudgeRows, age: timedelta, topics: int, lost: str | None) -> None:
    """A learned rate is taken over from the previous snapshot unless it is more than 90 days old."""
    known = Learned(lost="z:8080", at=NOW - age, topics=topics, seconds=100, brokers=1)
    before = told(NOW - timedelta(days=7), "aaaa") | {"failovers": [columns_of(known)] * 3}

    quiet = judge_rows(failover_time.CHECK, told(NOW, "aaaa"), None, [before]).quiet or ""

    assert ("learned from when z:8080 went away" in quiet) is (lost is not None)


@pytest.mark.parametrize(("topics", "lost"), [(899, "a:8080"), (901, "z:8080")])
def test_the_larger_loss_is_learned_from(judge_rows: JudgeRows, topics: int, lost: str) -> None:
    """The rate is learned from the loss with more topics, be it the one seen now or the one handed on."""
    known = Learned(lost="z:8080", at=NOW - timedelta(days=3), topics=topics, seconds=100, brokers=1)
    after = told(NOW, "bbcc", *QUICKLY, started=LOST_AT)

    quiet = judge_rows(failover_time.CHECK, after, None, [OWNED | {"failovers": [columns_of(known)]}]).quiet or ""

    assert f"learned from when {lost} went away" in quiet


SEEN_ONCE = Learned(lost="a", at=NOW, topics=1_000, seconds=20, brokers=2)  # 25 a second each


@pytest.mark.parametrize(
    ("topics", "others", "session", "parts"),
    [
        (1_000, 2, 0, (0, 20, 0)),
        (1_000, 4, 0, (0, 10, 0)),
        (1_000, 2, 30, (30, 20, 10)),
        (2_000, 2, 30, (30, 40, 0)),
        (9_000, 100, 90, (90, 9, 51)),
    ],
)
def test_what_was_learned_takes_the_place_of_what_is_assumed(
    topics: int, others: int, session: int, parts: tuple[float, float, float]
) -> None:
    """A learned rate replaces the policy's up to the limit of all brokers, and waiting counts beyond loading only."""
    load, takers = LostLoad("a", 50, topics, 0, 0), RemainingBrokers(others, 1)
    estimate = estimated(load, takers, session, FailoverTimePolicy(), SEEN_ONCE)
    assert (estimate.session, estimate.loading, estimate.backing_off) == parts
    assert estimate.assigning == 0


def test_a_load_ten_times_as_large_is_not_estimated_by_it() -> None:
    """A learned rate is not applied to a load that is ten times as large as the one it was learned from."""
    load, takers, policy = LostLoad("a", 50, 10_000, 0, 0), RemainingBrokers(2), FailoverTimePolicy()
    assert estimated(load, takers, 30, policy, SEEN_ONCE) == estimated(load, takers, 30, policy)
