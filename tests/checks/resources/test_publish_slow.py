"""Slow publishing, and which of the causes that other checks find is named first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.checks.resources import slowness
from pulsar_steward.checks.resources.heap import COLLECTIONS, SECONDS
from pulsar_steward.checks.resources.processors import LINES
from pulsar_steward.checks.resources.slowness import PUBLISHES, SWITCHES, WRITES
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import BOOKIE_STATUS, STARTED, WRITES_OVER_A_SECOND
from tests.builders import NOW
from tests.checks.conftest import as_text, judge_rows, minutes_ago, outcome, severity_of, told

if TYPE_CHECKING:
    from pulsar_steward.model.finding import Finding
    from tests.checks.conftest import Rows
    from tests.golden import Golden

Samples = list[dict[str, Any]]

CHECK = BY_ID["publish-slow"]
HOUR = 3600.0
TOPIC = "persistent://acme/orders/slips"


def sample(series: str, value: float, source: str = "a:1", kind: str = "broker", **labels: str) -> dict[str, Any]:
    text = json.dumps(labels, sort_keys=True)
    return {"source": source, "source_kind": kind, "series": series, "labels_json": text, "value": float(value)}


def latencies(event: str, quick: float, slow: float = 0, stalled: float = 0, source: str = "a:1") -> Samples:
    """Events a second below 200 ms, up to a second, and over it."""
    of_all = {"namespace": "acme/orders/persistent"}
    return [
        sample(event, quick, source, **of_all, quantile="1.0_5.0"),
        sample(event, slow, source, **of_all, quantile="200.0_1000.0"),
        sample(f"{event}_OVERFLOW", stalled, source, **of_all),
    ]


def published(quick: float, slow: float = 0, stalled: float = 0, source: str = "a:1") -> Samples:
    return latencies(PUBLISHES, quick, slow, stalled, source)


def written(quick: float, slow: float = 0, stalled: float = 0, source: str = "a:1") -> Samples:
    """Writes to bookies a second."""
    return latencies(WRITES, quick, slow, stalled, source)


def started(source: str, kind: str = "broker") -> dict[str, Any]:
    """A process that is an hour old."""
    return sample(STARTED, NOW.timestamp() - HOUR, source, kind)


def collecting(percent: float, source: str = "a:1", kind: str = "broker") -> Samples:
    """A process that spends so much of its time in collections."""
    seconds, count = HOUR * percent / 100, 10_000
    gc = "Copy"
    return [
        started(source, kind),
        sample(SECONDS, seconds, source, kind, gc=gc),
        sample(COLLECTIONS, count, source, kind, gc=gc),
    ]


def logging(source: str) -> Samples:
    """A broker that logs a hundred lines a second at DEBUG."""
    return [started(source), sample(LINES, 100 * HOUR, source, level="debug")]


def of_brokers(*names: str) -> list[dict[str, Any]]:
    return [{"broker": name, "read": True} for name in names]


def snapshot(*samples: Samples, brokers: tuple[str, ...] = ("a:1",), **tables: list[dict[str, Any]]) -> Rows:
    return {"brokers": of_brokers(*brokers), "metrics": [row for each in samples for row in each], **tables}


CASES: dict[str, tuple[Samples, Severity | None, bool]] = {
    "quick": (published(631, 4), None, False),
    "5 % over 200 ms, some over a second": (published(950, 40, 10), Severity.WARNING, False),
    "a quarter over 200 ms": (published(750, 150, 100), Severity.CRITICAL, False),
    "a quarter over 200 ms, none over a second": (published(750, 250), Severity.WARNING, False),
    "nothing is published": (published(0), None, True),
    "no latencies of publishing": (written(750, 150, 100), None, True),
}


@pytest.mark.parametrize(("rows", "severity", "unknown"), CASES.values(), ids=CASES)
def test_brokers_are_judged_by_how_long_publishing_takes(
    rows: Samples, severity: Severity | None, unknown: bool
) -> None:
    """A broker's publish latencies are judged by the rules for slow writes, and its write latencies are ignored."""
    assert outcome(judge_rows(CHECK, snapshot(rows))) == (severity, unknown)


AGAIN: dict[str, tuple[Samples, Samples, Severity | None]] = {
    "stalls of who waits for each entry": (published(50, 0, 0.1), published(60, 0, 0.1), Severity.WARNING),
    "slow writes before are no slow publishing": (published(15, 2), written(15, 2), Severity.INFO),
}


@pytest.mark.parametrize(("now", "before", "severity"), AGAIN.values(), ids=AGAIN)
def test_what_two_snapshots_show_is_no_hiccup(now: Samples, before: Samples, severity: Severity | None) -> None:
    """Slow publishing of few entries is a warning if two snapshots show it, and information if only one does."""
    assert severity_of(judge_rows(CHECK, snapshot(now), earlier=[minutes_ago(15, snapshot(before))])) is severity


def first_cause(finding: Finding) -> str:
    """Name of the cause that comes first; empty where none is named."""
    return finding.evidence.partition("ost likely cause: ")[2].partition(":")[0].partition(" (")[0]


WARNED, HURT = (published(950, 40, 10), published(700, 200, 100))
METADATA = [
    started("a:1"),
    sample("pulsar_metadata_store_ops_latency_ms_count", 1000, name="m", type="get", status="success"),
    sample("pulsar_metadata_store_ops_latency_ms_sum", 400_000, name="m", type="get", status="success"),
]
OTHERS_ARE_WELL = [*published(900, source="b:1"), *written(900, source="b:1")]

FIRST: dict[str, tuple[list[Samples], str]] = {
    "collections of the one broker whose writes are slow": (
        [HURT, written(750, 150, 100), collecting(8), OTHERS_ARE_WELL],
        "garbage collection",
    ),
    "a bookie that is read-only": (
        [HURT, written(750, 150, 100), [sample(BOOKIE_STATUS, 0, "k:1", "bookie")]],
        "a read-only bookie",
    ),
    "a bookie that is not registered": (
        [HURT, written(750, 150, 100), [sample(BOOKIE_STATUS, -1, "k:1", "bookie")]],
        "a read-only bookie",
    ),
    "a bookie that is writable": (
        [HURT, written(750, 150, 100), [sample(BOOKIE_STATUS, 1, "k:1", "bookie")]],
        "bookies, or a thread that serves them",
    ),
    "slow switches by a slow metadata store": ([HURT, latencies(SWITCHES, 1, 0, 1), METADATA], "the metadata store"),
    "a slow metadata store, where hardly any of the slow entries are slow writes": (
        [published(90, 10, 21), latencies(SWITCHES, 1, 0, 1), METADATA, written(120, 0, 0.24)],
        "the metadata store",
    ),
    "another broker's DEBUG logging": ([HURT, logging("b:1"), published(900, source="b:1")], ""),
}


@pytest.mark.parametrize(("samples", "cause"), FIRST.values(), ids=FIRST)
def test_the_cause_that_the_evidence_supports_best_comes_first(samples: list[Samples], cause: str) -> None:
    """The best supported cause in the snapshot is named first; `test_publish_causes.py` has more cases of the order."""
    found = judge_rows(CHECK, snapshot(*samples, brokers=("a:1", "b:1"))).findings
    assert [first_cause(finding) for finding in found if finding.subject == "a:1"] == [cause]


def test_ack_holes_and_hot_bundles_are_put_to_their_broker(golden: Golden) -> None:
    """Ack holes are a cause only at the broker of their topic, and a hot bundle only at its owner."""
    of_orders = {"namespace": "acme/orders"}
    load = {"throughput_in_bytes": 9e6, "throughput_out_bytes": 0, "message_rate_in": 90_000, "message_rate_out": 0}
    place = {"bundle": "0x00000000_0x80000000", "owner": "b:1", "owner_known": True}
    clients = {"topics": 3, "producers": 1, "consumers": 1}
    settings = {"managedLedgerMaxUnackedRangesToPersist": "10000", "loadBalancerNamespaceBundleMaxMsgRate": "30000"}
    rows = snapshot(
        HURT,
        published(700, 200, 100, "b:1"),
        brokers=("a:1", "b:1"),
        topics=[of_orders | {"topic": TOPIC, "broker": "a:1"}],
        subscriptions=[of_orders | {"topic": TOPIC, "subscription": "s", "ack_holes": 9000, "consumers": 0}],
        bundles=[of_orders | place | load | clients],
        configuration=[
            {"broker": at, "key": key, "value": each}
            for at, (key, each) in zip(("a:1", "b:1"), settings.items(), strict=True)
        ],
    )
    golden(told({"holes at a, and a hot bundle at b": judge_rows(CHECK, rows)}))


FEW: dict[str, tuple[Samples, Samples, bool]] = {
    "as few over a second as ZooKeeper's stops left": (published(90, 10, 21), written(120, 0, 0.24), False),
    "a tenth of those over a second": (published(90, 0, 20), written(90, 0, 2), True),
    "hardly a tenth of them": (published(90, 0, 20), written(90, 0, 1.9), False),
    "a tenth of those over 200 ms": (published(50, 30, 20), written(50, 4, 1), True),
    "none over a second, as nothing published is": (published(50, 50), written(50, 40), True),
}


@pytest.mark.parametrize(("entries", "writes", "first"), FEW.values(), ids=FEW)
def test_few_slow_writes_do_not_explain_many_slow_entries(entries: Samples, writes: Samples, first: bool) -> None:
    """Slow writes are a broker's cause only if a tenth of its slow entries may be such writes; else named besides."""
    (finding,) = judge_rows(CHECK, snapshot(entries, writes)).findings
    bookies = "bookies, or a thread that serves them (bookie-thread-busy"
    assert f"cause: {bookies}" in finding.evidence if first else f"Besides: {bookies}" in finding.evidence
    assert ("No other check names a cause of most of it" in finding.evidence) is not first


READ_ONLY = [sample(BOOKIE_STATUS, 0, "k:1", "bookie")]

OF_A_BOOKIE: dict[str, tuple[Samples, Samples, bool]] = {
    "writes are quick": (published(950, 40, 10), written(900), False),
    "slow writes are hardly any of it": (published(90, 0, 20), written(90, 0, 1.9), False),
    "slow writes are most of it, and a little too few for a finding": (published(94, 0, 6), written(940, 46), True),
    "how long writes take is not known": (published(950, 40, 10), [], True),
}


@pytest.mark.parametrize(("entries", "writes", "first"), OF_A_BOOKIE.values(), ids=OF_A_BOOKIE)
def test_a_bookie_is_a_cause_only_of_slow_writes(entries: Samples, writes: Samples, first: bool) -> None:
    """A read-only bookie is the cause unless writes are known to be quick, or to be hardly any of what is slow."""
    (finding,) = judge_rows(CHECK, snapshot(entries, writes, READ_ONLY)).findings
    assert ("cause: a read-only" in finding.evidence, "Besides: " in finding.evidence) == (first, not first)


RATE = {"publishMaxMessageRate": {"c": {"publishThrottlingRateInMsg": 100, "publishThrottlingRateInByte": -1}}}
SLIPS, OTHER = TOPIC, "persistent://acme/free/t"


def at_a_rate(rows: Rows, rate: float) -> Rows:
    """The rows with topic `SLIPS` at so many messages a second of 100 that its namespace allows it."""
    about = {"cluster": "lab", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": [], "pulsar_cluster": "c"}
    topics = [
        {"topic": SLIPS, "broker": "a:1", "message_rate_in": rate},
        {"topic": OTHER, "broker": "a:1", "message_rate_in": 900.0},
    ]
    namespaces = [{"namespace": "acme/orders", "policies_json": json.dumps(RATE)}]
    return rows | {"snapshot": [about], "topics": topics, "namespaces": namespaces}


LIMITED: dict[str, tuple[float, int, str]] = {
    "most slow entries are of a topic at its rate": (95.0, 9_000, "a limit of a rate"),
    "fewer are": (95.0, 8_999, "bookies, or a thread that serves them"),
    "a topic below its rate": (94.0, 18_000, "bookies, or a thread that serves them"),
}


@pytest.mark.parametrize(("rate", "slow", "cause"), LIMITED.values(), ids=LIMITED)
def test_a_publish_rate_comes_before_all_other_causes_of_what_it_slows(
    golden: Golden, rate: float, slow: int, cause: str
) -> None:
    """Where topics at their publish rates have half of a broker's slow entries or more, their producers wait for it."""
    stalled = [
        sample(WRITES_OVER_A_SECOND, slow) | {"topic": SLIPS},
        sample(WRITES_OVER_A_SECOND, 60) | {"topic": OTHER},
    ]
    (finding,) = judge_rows(CHECK, at_a_rate(snapshot(HURT, written(750, 150, 100), stalled), rate)).findings
    assert first_cause(finding) == cause
    golden(finding.evidence)


def full_collections(seconds: float) -> Samples:
    """A process whose full collections, of twelve seconds each, took so long so far."""
    gc = "G1 Old Generation"
    return [started("a:1"), sample(SECONDS, seconds, gc=gc), sample(COLLECTIONS, seconds / 12, gc=gc)]


def test_which_cause_it_names(golden: Golden) -> None:
    """Slowest topics, the first cause with its evidence, then the others; what is over, or too little, is besides."""

    def hanging(entries: Samples) -> tuple[Any, ...]:
        rows = snapshot(entries, written(900), READ_ONLY, topics=waiting(40))
        return rows, None, [minutes_ago(15, rows)]

    def collected(*seconds: float) -> tuple[Any, ...]:
        now, *before = (snapshot(HURT, full_collections(each)) for each in seconds)
        now["metrics"] += METADATA
        return now, None, [minutes_ago(15 * number, rows) for number, rows in enumerate(before, start=1)]

    def slow_topic(rows: Rows, stalled: float, rate: float = 10.0) -> tuple[Any, ...]:
        rows["metrics"] = [*rows["metrics"], *written(0.5, 0, stalled)]
        return rows, None, [minutes_ago(15, stalling(600 if rate > 10 else 60, rate))]

    topics = [{"topic": f"{TOPIC}-{number}", "broker": "a:1", "message_rate_in": 9e3} for number in range(5)]
    stalled = [sample(WRITES_OVER_A_SECOND, number) | {"topic": f"{TOPIC}-{number}"} for number in range(1, 5)]
    slow, hung = stalling(30), stalling(30)
    slow["metrics"] = [*slow["metrics"][3:], *published(80, 20)]
    hung["topics"] = [*hung["topics"], *(each | {"topic": f"{TOPIC}-hung"} for each in waiting(40))]
    cases: dict[str, tuple[Any, ...]] = {
        "three causes, and slow topics": (
            snapshot(HURT, written(750, 150, 100), collecting(30), METADATA, stalled, topics=topics),
        ),
        "a read-only bookie, where entries hang and others are quick": hanging(published(900)),
        "a read-only bookie, where entries hang and some are slow": hanging(published(950, 40, 10)),
        "a full collection hours ago": collected(12.0, 12.0, 0.0),
        "a full collection since the snapshot before": collected(12.0, 0.0, 0.0),
        "a slow topic, and too few slow writes": slow_topic(stalling(60), 0.05),
        "a slow topic, and enough of them": slow_topic(stalling(60), 0.5),
        "a slow topic at its publish rate, whatever else": slow_topic(at_a_rate(stalling(600), 100.0), 0.5, 100.0),
        "a slow topic of a broker with other slow entries": (slow, None, [minutes_ago(15, stalling(30))]),
        "a slow topic of a broker where others hang": (hung, None, [minutes_ago(15, hung)]),
    }
    golden(told({rule: judge_rows(CHECK, *case) for rule, case in cases.items()}))


def test_what_it_says(golden: Golden) -> None:
    """A slow topic is told with its broker's most likely cause, and is no finding where the broker is slow."""
    quick = [*published(900), *written(900)]
    topic, both = stalling(60), stalling(30)
    topic["metrics"] = [*topic["metrics"], *collecting(8)]
    both["metrics"] = [*both["metrics"][3:], *HURT]
    each = {"a:1": (950, 40, 10), "b:1": (900, 80, 20), "c:1": (700, 200, 100)}
    three = snapshot(*(published(*figures, source) for source, figures in each.items()), brokers=tuple(each))
    hanging = snapshot(quick, topics=waiting(40))
    cases: dict[str, tuple[Any, ...]] = {
        "producers wait for a rate, and all is quick": (at_a_rate(snapshot(published(900)), 100.0),),
        "no cause is known": (snapshot(WARNED),),
        "entries hang in two snapshots": (hanging, None, [minutes_ago(15, hanging)]),
        "a slow topic of a quick broker": (topic, None, [minutes_ago(15, stalling(60))]),
        "a slow topic of a slow one": (both, None, [minutes_ago(15, stalling(30))]),
        "the slowest come first": (three,),
        "all is well": (snapshot(published(631, 4)),),
    }
    golden(told({rule: judge_rows(CHECK, *case) for rule, case in cases.items()}))


def waiting(entries: int) -> list[dict[str, Any]]:
    """One topic, of which so many entries wait."""
    return [{"topic": TOPIC, "broker": "a:1", "producers": 1, "message_rate_in": 1.0, "pending_add_entries": entries}]


def stalling(entries: int, rate: float | None = 10.0) -> Rows:
    """A topic of which so many entries took over a second in the last minute, on a broker that is quick."""
    stalled = [sample(WRITES_OVER_A_SECOND, entries) | {"topic": TOPIC}]
    topics = [{"topic": TOPIC, "broker": "a:1", "message_rate_in": rate}]
    return snapshot(published(900), stalled, topics=topics)


ONE_TOPIC: dict[str, tuple[Rows, Rows, bool]] = {
    "in both": (stalling(30), stalling(30), True),
    "now": (stalling(30), stalling(0), False),
    "hardly any now": (stalling(29), stalling(30), False),
    "hardly any before": (stalling(30), stalling(29), False),
    "few of many": (stalling(30, rate=11), stalling(30, rate=11), False),
    "of how many, nobody tells": (stalling(30, rate=None), stalling(30, rate=None), False),
    "too few": (stalling(2, rate=0.1), stalling(2, rate=0.1), False),
}


@pytest.mark.parametrize(("now", "before", "found"), ONE_TOPIC.values(), ids=ONE_TOPIC)
def test_a_topic_may_be_slow_on_a_quick_broker(now: Rows, before: Rows, found: bool) -> None:
    """A topic on a quick broker is a warning when a large share of its entries stalls in two snapshots in a row."""
    judgement = judge_rows(CHECK, now, earlier=[minutes_ago(15, before)])
    told = [(finding.subject, finding.severity) for finding in judgement.findings]
    assert told == ([(TOPIC, Severity.WARNING)] if found else [])


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


SWITCHES_CASES: dict[str, tuple[list[dict[str, Any]], Severity | None, bool]] = {
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


@pytest.mark.parametrize(("rows", "severity", "unknown"), SWITCHES_CASES.values(), ids=SWITCHES_CASES)
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
