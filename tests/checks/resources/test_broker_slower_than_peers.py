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
from tests.checks.conftest import judge_rows, minutes_ago, told

if TYPE_CHECKING:
    from tests.checks.conftest import Rows
    from tests.golden import Golden


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
def test_the_middle_entry_counts(slow: dict[int, float], others: tuple[dict[int, float], ...], *, found: bool) -> None:
    """A broker's median publish latency is compared with that of the others, by the certain bounds of buckets."""
    rows = cluster(slow, *others)
    judgement = judge_rows(CHECK, rows, None, [minutes_ago(10, rows)])
    assert [(each.subject, each.severity) for each in judgement.findings] == ([("a:1", WARNING)] if found else [])


def test_what_it_says(golden: Golden) -> None:
    """It is information as long as no earlier snapshot shows it; the time passes at the bookies or in the broker."""
    three, well = cluster({50: 100.0}, QUICK, QUICK), cluster(QUICK, QUICK, QUICK)
    four = [cluster({50: 100.0}, QUICK, QUICK, {1: 1.0}, writes=writes) for writes in ({50: 100.0}, QUICK)]
    silent = cluster(QUICK, QUICK, QUICK)
    silent["brokers"].append({"broker": "z:1", "read": True})
    of_policy = {"warning_milliseconds": 20, "warning_percent_of_peers": 400, "minimum_writes_per_second": 200}
    own = a_policy(broker_slower_than_peers=of_policy)
    cases: dict[str, tuple[Any, ...]] = {
        "in one snapshot": (three,),
        "and not in the one before": (three, None, [minutes_ago(10, well)]),
        "its writes take as long": (four[0], None, [minutes_ago(10, four[0])]),
        "its writes are quick": (four[1], None, [minutes_ago(10, four[1])]),
        "too few publish": (cluster({50: 100.0}, QUICK),),
        "one tells no latencies": (silent,),
        "all is well": (well,),
        "slower than the policy bears": (cluster({20: 200.0}, {1: 200.0}, {1: 200.0}), own),
        "with fewer entries than it asks for": (cluster({20: 100.0}, {1: 200.0}, {1: 200.0}), own),
    }
    golden(told({rule: judge_rows(CHECK, *case) for rule, case in cases.items()}))


def test_what_makes_it_slow_is_named() -> None:
    """The evidence names another check's finding for the slow broker as the most likely cause."""
    rows = cluster({50: 100.0}, QUICK, QUICK)
    started = {"series": STARTED, "labels_json": "{}", "value": NOW.timestamp() - 3600}
    lines = {"series": LINES, "labels_json": json.dumps({"level": "debug"}), "value": 360_000.0}
    rows["metrics"] += [{"source": "a:1", "source_kind": "broker", **each} for each in (started, lines)]
    (finding,) = judge_rows(CHECK, rows).findings
    assert "Most likely cause: logging at DEBUG (logging-debug, warning): a:1 (broker) logged" in finding.evidence


READ_ONLY = [{"source": "k:1", "source_kind": "bookie", "series": BOOKIE_STATUS, "labels_json": "{}", "value": 0.0}]


@pytest.mark.parametrize(
    ("writes", "more", "named", "first"),
    [
        pytest.param({1: 95.0, 1000: 5.0}, [], "bookies", False, id="writes that are quick by half"),
        pytest.param({200: 100.0}, [], "bookies", True, id="writes that take as long"),
        pytest.param({1: 100.0}, READ_ONLY, "a read-only", False, id="a read-only bookie, and quick writes"),
        pytest.param({200: 100.0}, READ_ONLY, "a read-only", True, id="a read-only bookie, and slow ones"),
    ],
)
def test_bookies_are_no_cause_where_the_broker_is_slow_itself(
    writes: dict[int, float], more: list[dict[str, Any]], named: str, *, first: bool
) -> None:
    """They are named besides, and not as the cause, where the time passes in the broker itself."""
    rows = cluster({200: 100.0}, QUICK, QUICK, writes=writes)
    rows["metrics"] += more
    (finding,) = judge_rows(CHECK, rows).findings
    assert (f"cause: {named}" in finding.evidence, f"Besides: {named}" in finding.evidence) == (first, not first)
