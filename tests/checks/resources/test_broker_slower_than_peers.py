"""A broker on which publishing takes much longer than on the others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.checks.resources.processors import LINES
from pulsar_steward.checks.resources.slowness import PUBLISHES, WRITES
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import BOOKIE_STATUS, STARTED
from tests.builders import NOW, a_policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.checks.conftest import JudgeRows, Rows

    MinutesAgo = Callable[[float, Rows], Rows]

CHECK = BY_ID["broker-slower-than-peers"]
INFO, WARNING = Severity.INFO, Severity.WARNING
BUCKETS = {1: "1.0_5.0", 10: "10.0_20.0", 20: "20.0_50.0", 50: "50.0_100.0", 200: "200.0_1000.0"}
QUICK = {1: 100.0}


def samples(source: str, buckets: dict[int, float], event: str = PUBLISHES) -> list[dict[str, Any]]:
    """Events a second of a broker, by the lower bound of their bucket in milliseconds; 1000 stands for all above."""
    rows = []
    for low, rate in buckets.items():
        quantile = {"quantile": BUCKETS[low]} if low in BUCKETS else {}
        labels = {"namespace": "acme/orders/persistent", **quantile}
        series = event if quantile else f"{event}_OVERFLOW"
        rows.append({"series": series, "value": rate, "labels_json": json.dumps(labels, sort_keys=True)})
    return [{"source": source, "source_kind": "broker", **row} for row in rows]


def cluster(slow: dict[int, float], *others: dict[int, float], writes: dict[int, float] | None = None) -> Rows:
    """Broker a, and others that are named b, c and so on."""
    names = [f"{letter}:1" for letter in "abcdefgh"[: len(others) + 1]]
    rows = [row for name, each in zip(names, (slow, *others), strict=True) for row in samples(name, each)]
    return {
        "brokers": [{"broker": name, "read": True} for name in names],
        "metrics": rows + samples("a:1", writes or {}, WRITES),
    }


@pytest.mark.parametrize(
    ("slow", "others", "found"),
    [
        pytest.param({50: 100.0}, (QUICK, QUICK), True, id="fifty milliseconds beside five"),
        pytest.param({50: 50.0, 1: 50.0}, (QUICK, QUICK), False, id="half of them and no more"),
        pytest.param({50: 50.1, 1: 49.9}, (QUICK, QUICK), True, id="a little more than half"),
        pytest.param({20: 100.0}, (QUICK, QUICK), False, id="a median that nobody minds"),
        pytest.param({50: 100.0}, ({10: 100.0}, {10: 100.0}), False, id="others that are not much quicker"),
        pytest.param({200: 100.0}, ({10: 100.0}, {20: 100.0}), False, id="the slower half of the others counts"),
        pytest.param({1000: 100.0}, ({50: 100.0}, {50: 100.0}), True, id="over a second"),
        pytest.param({1000: 100.0}, ({1000: 100.0}, {1000: 100.0}), False, id="all over a second"),
        pytest.param({50: 9.9}, (QUICK, QUICK), False, id="hardly any entries"),
        pytest.param({50: 10.0}, ({1: 10.0}, {1: 10.0}), True, id="few entries, and enough"),
        pytest.param({1: 95.0, 200: 5.0, 1000: 5.0}, (QUICK, QUICK), False, id="a few that hang"),
    ],
)
def test_the_middle_entry_counts(
    judged: JudgeRows,
    minutes_ago: MinutesAgo,
    slow: dict[int, float],
    others: tuple[dict[int, float], ...],
    *,
    found: bool,
) -> None:
    """A broker's median publish latency is compared with that of the others, by the certain bounds of buckets."""
    rows = cluster(slow, *others)
    judgement = judged(CHECK, rows, None, [minutes_ago(10, rows)])

    assert [(each.subject, each.severity) for each in judgement.findings] == ([("a:1", WARNING)] if found else [])


def test_one_snapshot_is_information(judged: JudgeRows, minutes_ago: MinutesAgo) -> None:
    """A slow broker is information as long as no earlier snapshot shows it."""
    now, well = cluster({50: 100.0}, QUICK, QUICK), minutes_ago(10, cluster(QUICK, QUICK, QUICK))
    for earlier in ([], [well]):
        (finding,) = judged(CHECK, now, None, earlier).findings
        assert finding.severity is INFO
        assert "no other snapshot shows it yet" in finding.evidence


@pytest.mark.parametrize(
    ("writes", "words"),
    [
        ({50: 100.0}, "Its writes to bookies take as long: half of them 50 ms or more."),
        ({1: 100.0}, "Half of its writes to bookies take 5 ms at most: the time passes in the broker itself."),
    ],
)
def test_it_is_told_with_figures_and_where_the_time_goes(
    judged: JudgeRows, minutes_ago: MinutesAgo, writes: dict[int, float], words: str
) -> None:
    """The evidence has the figures, and says whether the time passes at the bookies or in the broker itself."""
    rows = cluster({50: 100.0}, QUICK, QUICK, {1: 1.0}, writes=writes)
    (finding,) = judged(CHECK, rows, None, [minutes_ago(10, rows)]).findings

    assert finding.evidence.startswith(
        "Of 100 entries a second published on broker a:1 in the last minute, half took 50 ms or more; on the 2 others"
        f" that publish enough, half take 5 ms at most; the snapshot before shows it too. {words} No other check"
        " names a cause"
    )
    assert finding.figures == {
        "median_at_least_milliseconds": 50,
        "peers": 2,
        "peers_median_at_most_milliseconds": 5,
        "publishes_per_second": 100,
        "writes_median_at_least_milliseconds": next(iter(writes)),
    }
    assert {type(each) for each in finding.figures.values()} == {int}


def test_what_makes_it_slow_is_named(judged: JudgeRows) -> None:
    """The evidence names another check's finding for the slow broker as the most likely cause."""
    rows = cluster({50: 100.0}, QUICK, QUICK)
    started = {"series": STARTED, "labels_json": "{}", "value": NOW.timestamp() - 3600}
    lines = {"series": LINES, "labels_json": json.dumps({"level": "debug"}), "value": 360_000.0}
    rows["metrics"] += [{"source": "a:1", "source_kind": "broker", **each} for each in (started, lines)]

    (finding,) = judged(CHECK, rows).findings
    assert "Most likely cause: logging at DEBUG (logging-debug, warning): a:1 (broker) logged" in finding.evidence


@pytest.mark.parametrize(("writes", "first"), [({1: 95.0, 1000: 5.0}, False), ({200: 100.0}, True)])
def test_writes_that_are_quick_by_half_are_no_cause(
    judged: JudgeRows, writes: dict[int, float], *, first: bool
) -> None:
    """Slow writes to bookies are named besides, and not as the cause, where the time passes in the broker itself."""
    (finding,) = judged(CHECK, cluster({200: 100.0}, QUICK, QUICK, writes=writes)).findings

    assert ("cause: bookies" in finding.evidence, "Besides: bookies" in finding.evidence) == (first, not first)


@pytest.mark.parametrize(("writes", "first"), [({1: 100.0}, False), ({200: 100.0}, True)])
def test_a_bookie_s_trouble_is_no_cause_where_the_broker_is_slow_itself(
    judged: JudgeRows, writes: dict[int, float], *, first: bool
) -> None:
    """A read-only bookie is the cause where writes take as long, and named besides where these are quick."""
    rows = cluster({200: 100.0}, QUICK, QUICK, writes=writes)
    rows["metrics"].append(
        {"source": "k:1", "source_kind": "bookie", "series": BOOKIE_STATUS, "labels_json": "{}", "value": 0.0}
    )

    (finding,) = judged(CHECK, rows).findings

    assert ("cause: a read-only" in finding.evidence, "Besides: a read-only" in finding.evidence) == (first, not first)


def test_too_few_to_compare_prove_nothing(judged: JudgeRows) -> None:
    """The check cannot tell with fewer than three publishing brokers, or if a broker reports no latencies."""
    assert judged(CHECK, cluster({50: 100.0}, QUICK)).cannot_tell == (
        "2 brokers publish 10 entries a second or more; it takes 3 to say which one is slower than the others."
    )
    silent = cluster(QUICK, QUICK, QUICK)
    silent["brokers"].append({"broker": "z:1", "read": True})
    assert judged(CHECK, silent).cannot_tell == "The snapshot has no latencies of publishing on z:1."
    well = judged(CHECK, cluster(QUICK, QUICK, QUICK))
    assert (well.cannot_tell, well.quiet) == (
        None,
        "Of 3 brokers that publish enough, none is much slower than the others.",
    )


def test_the_thresholds_are_the_policys(judged: JudgeRows) -> None:
    """The policy sets the minimum latency, the ratio to the other brokers and the minimum number of entries."""
    policy = a_policy(
        broker_slower_than_peers={
            "warning_milliseconds": 20,
            "warning_percent_of_peers": 400,
            "minimum_writes_per_second": 200,
        }
    )
    assert judged(CHECK, cluster({20: 200.0}, {1: 200.0}, {1: 200.0}), policy).findings
    assert judged(CHECK, cluster({20: 100.0}, {1: 200.0}, {1: 200.0}), policy).findings == ()
