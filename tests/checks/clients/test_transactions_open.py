"""Transactions that stay open, those that time out, and coordinators that no broker tells of."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.clients.transactions_open import CHECK, OPEN, OPENED, TIMED_OUT
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED
from tests.builders import NOW
from tests.checks.conftest import judge_rows, told

if TYPE_CHECKING:
    from tests.golden import Golden

BROKERS = ("a:8080", "b:8080")
Told = dict[int, tuple[int, int, int]]
"""Figures of coordinators by number: open, opened, timed out."""


def snapshot(told: Told, minutes_ago: int = 0, *, started: float = 1000.0, **meta: Any) -> dict[str, Any]:
    """Four coordinators on two brokers, even numbers on the first."""
    about = {"cluster": "lab", "taken_at": NOW - timedelta(minutes=minutes_ago), "coordinators": 4}
    samples: list[dict[str, Any]] = [
        {"source": broker, "source_kind": "broker", "series": STARTED, "value": started} for broker in BROKERS
    ]
    for number, figures in told.items():
        samples += [
            {"source": BROKERS[number % 2], "source_kind": "broker", "series": series, "value": float(figure)}
            | {"labels_json": f'{{"coordinator_id":"{number}"}}'}
            for series, figure in zip((OPEN, OPENED[0], TIMED_OUT[0]), figures, strict=True)
        ]
    return {
        "snapshot": [about | {"unread_brokers": [], "unread_namespaces": []} | meta],
        "brokers": [{"broker": broker, "read": True, "metrics_read": True} for broker in BROKERS],
        "metrics": samples,
    }


def in_use(opened: int = 1000, still_open: int = 2, timed_out: int = 0, *, without: int | None = None) -> Told:
    """All coordinators alike, or all but one."""
    return {number: (still_open, opened, timed_out) for number in range(4) if number != without}


LASTING: dict[str, tuple[dict[str, Any], list[dict[str, Any]], int | None]] = {
    # now, earlier, transactions that stay open
    "more are open than were opened": (snapshot(in_use(1001)), [snapshot(in_use(), 30)], 4),
    "as many were opened as are open": (snapshot(in_use(1002)), [snapshot(in_use(), 30)], None),
    "for a shorter time": (snapshot(in_use(1001)), [snapshot(in_use(), 29)], None),
    "no more than were open then": (snapshot(in_use(1000, 9)), [snapshot(in_use(1000, 1), 30)], 4),
    "the coordinator counts anew": (snapshot(in_use(1)), [snapshot(in_use(), 30)], None),
    "its broker started anew": (snapshot(in_use(1001), started=2000.0), [snapshot(in_use(), 30)], None),
    "another one": (snapshot({0: (2, 1001, 0)}), [snapshot({1: (2, 1000, 0)}, 30)], None),
}


@pytest.mark.parametrize(("now", "earlier", "staying"), LASTING.values(), ids=LASTING)
def test_transactions_that_stay_open(now: dict[str, Any], earlier: list[dict[str, Any]], staying: int | None) -> None:
    """It is a warning if more transactions are open than were opened since a snapshot at least 30 minutes old."""
    found = judge_rows(CHECK, now, earlier=earlier).findings
    assert [(each.subject, each.severity, each.figures["staying_open"]) for each in found] == (
        [] if staying is None else [("lab", Severity.WARNING, staying)]
    )


TIMING_OUT = {
    # opened by each coordinator, timed out of these
    "one in twenty": (1000, 50, True),
    "fewer than that": (1001, 50, False),
    "few at all": (24, 24, False),
    "enough of few": (25, 25, True),
}


@pytest.mark.parametrize(("opened", "timed_out", "found"), TIMING_OUT.values(), ids=TIMING_OUT)
def test_transactions_that_time_out(opened: int, timed_out: int, found: bool) -> None:
    """Transactions that timed out within the window are found if they are enough in number and as a share."""

    def told(opened: int, timed_out: int, minutes_ago: int = 0) -> dict[str, Any]:
        # Each coordinator has counted another number before.
        counts = {number: (0, 5000 * number + opened, 700 * number + timed_out) for number in range(4)}
        return snapshot(counts, minutes_ago)

    earlier = [told(opened // 2, timed_out // 2, 10), told(0, 0, 60)]
    findings = judge_rows(CHECK, told(opened, timed_out), earlier=earlier).findings
    assert [(each.figures["opened"], each.figures["timed_out"]) for each in findings] == (
        [(4 * opened, 4 * timed_out)] if found else []
    )


PARTLY: dict[str, Any] = {"unread_brokers": ["c:8080"]}
UNANSWERED: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    # now, earlier, whether coordinator 2 is found
    "in two snapshots": (snapshot(in_use(1100, without=2)), snapshot(in_use(without=2), 10), True),
    "in this one alone": (snapshot(in_use(1100, without=2)), snapshot(in_use(), 10), False),
    "in two of the same minute": (snapshot(in_use(1100, without=2)), snapshot(in_use(without=2), 1), False),
    "no transaction is opened": (snapshot(in_use(1000, 0, without=2)), snapshot(in_use(1000, 0, without=2), 10), False),
    "a broker was not read": (snapshot(in_use(1100, without=2), **PARTLY), snapshot(in_use(without=2), 10), False),
    "a broker was not read then": (snapshot(in_use(1100, without=2)), snapshot(in_use(without=2), 10, **PARTLY), False),
}


@pytest.mark.parametrize(("now", "earlier", "found"), UNANSWERED.values(), ids=UNANSWERED)
def test_a_coordinator_that_nobody_tells_of(now: dict[str, Any], earlier: dict[str, Any], found: bool) -> None:
    """A coordinator that no broker reports in two snapshots is critical if others open transactions meanwhile."""
    findings = judge_rows(CHECK, now, earlier=[earlier]).findings
    assert [(each.severity, each.figures["coordinator"]) for each in findings] == (
        [(Severity.CRITICAL, 2)] if found else []
    )


def test_what_it_says(golden: Golden) -> None:
    """The brokers' figures of the worst coordinator; without an earlier snapshot it cannot tell of open ones."""
    lasting = snapshot(in_use(1100, 150, 90) | {3: (400, 1050, 120)})
    now, then, _ = UNANSWERED["in two snapshots"]
    cases = {
        "transactions last at all, and most at one": judge_rows(
            CHECK, lasting, earlier=[snapshot(in_use(1000, 400), 45)]
        ),
        "a coordinator that nobody tells of": judge_rows(CHECK, now, earlier=[then]),
        "no earlier snapshot": judge_rows(CHECK, snapshot(in_use())),
        "none is open": judge_rows(CHECK, snapshot(in_use(1000, 0))),
        "no coordinator tells anything": judge_rows(CHECK, snapshot({})),
        "there are no coordinators": judge_rows(CHECK, snapshot({}, coordinators=0)),
    }
    golden(told(cases))


@pytest.mark.parametrize("read", [None, False], ids=["not at all", "in part"])
@pytest.mark.parametrize("told", [{}, in_use(1000, 0)], ids=["nobody tells of any", "the other broker tells of some"])
def test_metrics_that_were_not_read_prove_nothing(read: bool | None, told: Told) -> None:
    """The check cannot tell if a broker's metrics were not read or were cut off, and it names the broker."""
    rows = snapshot(told)
    rows["brokers"][0]["metrics_read"] = read
    judgement = judge_rows(CHECK, rows)
    assert judgement.findings == ()
    assert judgement.cannot_tell == "The metrics of a:8080 were not read, or not to their end."


def test_names_of_older_brokers_count_too() -> None:
    """Counters of transactions are also read by their names in Pulsar 2.10."""
    now, then = snapshot(in_use(1001, timed_out=7)), snapshot(in_use(timed_out=3), 30)
    for sample in [*now["metrics"], *then["metrics"]]:
        for new, old in (OPENED, TIMED_OUT):
            sample["series"] = sample["series"].replace(new, old)
    (finding,) = judge_rows(CHECK, now, earlier=[then]).findings
    assert (finding.figures["staying_open"], finding.figures["timed_out"]) == (4, 16)


WELL: Told = dict.fromkeys(range(4), (0, 1000, 0))
ONGOING_SERIES = "pulsar_txn_tb_active_total"
CIRCLING: dict[str, tuple[dict[str, float], bool]] = {
    "much for its traffic": ({}, True),
    "not so much": ({"cpu": 49.0}, False),
    "not before": ({"before": 49.0}, False),
    "the other one as well": ({"peer": 26.0}, False),
    "the other one has little traffic": ({"peer_bytes": 4e6}, False),
    "the other one has transactions, too": ({"peer_open": 1.0}, False),
    "without transactions": ({"open": 0.0}, False),
}


@pytest.mark.parametrize(("figures", "found"), CIRCLING.values(), ids=CIRCLING)
def test_processors_that_open_transactions_keep_busy_are_found(
    golden: Golden, figures: dict[str, float], *, found: bool
) -> None:
    """By a broker with as much traffic and without transactions (apache/pulsar#22943)."""
    told = {"cpu": 78.0, "before": 77.0, "peer": 25.0, "peer_bytes": 5e6, "peer_open": 0.0, "open": 2.0} | figures

    def look(minutes_ago: int, cpu: float) -> dict[str, Any]:
        rows = snapshot(WELL, minutes_ago)
        for each, percent, size in zip(rows["brokers"], (cpu, told["peer"]), (1e7, told["peer_bytes"]), strict=True):
            each.update({"cpu_percent": percent, "throughput_in_bytes": size})
        for broker, count in zip(BROKERS, (told["open"], told["peer_open"]), strict=True):
            topic = f"persistent://t/n/{broker[0]}"
            row = {"source": broker, "source_kind": "broker", "series": ONGOING_SERIES, "topic": topic}
            rows["metrics"].append(row | {"labels_json": "{}", "value": count})
        return rows

    judgement = judge_rows(CHECK, look(0, told["cpu"]), earlier=[look(15, told["before"])])
    assert [each.subject for each in judgement.findings] == [BROKERS[0]] * found
    if found:
        golden(judgement.findings[0].evidence)
