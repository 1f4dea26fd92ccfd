"""Subscriptions that stand still."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.check import MAX_FINDINGS
from pulsar_steward.checks.clients import subscription_stalled as check
from pulsar_steward.collect.metrics import Metrics
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import DELAYED_SERIES, DISPATCHING_LIMITED
from pulsar_steward.pulsar.metrics import Sample
from tests.checks.clients.conftest import Scene, by_name
from tests.checks.conftest import told

if TYPE_CHECKING:
    from tests.golden import Golden

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
STILL: dict[str, Any] = {"message_rate_out": 0.0, "ack_rate": 0.0, "consumers_without_permits": 3}
DELIVERED: dict[str, Any] = {"ack_rate": 0.0}
REASON = {"subscription": "s", "labels_json": '{"reason": "subscription"}'}
MILLION = {"backlog_entries": 1_000_000}

CASES: dict[str, tuple[dict[str, Any], Severity | None]] = {
    "busy": ({}, None),
    "nobody-there": (STILL | {"consumers": 0}, None),
    "caught-up": (STILL | {"backlog_entries": 0}, None),
    "just-below-the-least": (STILL | {"backlog_entries": 999}, None),
    "just-the-least": (STILL | {"backlog_entries": 1000}, Severity.WARNING),
    "still-nearly-a-million": (STILL | {"backlog_entries": 999_999}, Severity.WARNING),
    "still-a-million": (STILL | MILLION, Severity.CRITICAL),
    "blocked-is-another-check": (STILL | {"blocked_on_unacked": True}, None),
    "all-consumers-blocked-too": (STILL | {"consumers_blocked": 3}, None),
    "one-consumer-blocked": (STILL | {"consumers_blocked": 1}, Severity.WARNING),
    "flags-not-told": (
        STILL | {"type": "Exclusive", "consumers": 1, "blocked_on_unacked": None, "unacked_messages": None},
        Severity.WARNING,
    ),
    "all-have-just-come": (STILL | MILLION | {"consumers_connected_recently": 3}, Severity.INFO),
    "some-have-just-come": (STILL | {"consumers_connected_recently": 2}, Severity.WARNING),
    "working-on-what-they-hold": ({"message_rate_out": 0.0}, Severity.INFO),
    "not-acknowledged-for-a-minute": (DELIVERED | MILLION, Severity.INFO),
    "persistent://pulsar/b:8080/heartbeat": (STILL, None),
    "persistent://t/n/__transaction_buffer_snapshot": (STILL, None),
}


def test_severity_follows_from_what_stands_still(scene: Any) -> None:
    """A standstill is a warning, or critical with a million entries, and information if some work may go on."""
    scene.measured({"pulsar_subscription_delayed": 0.0})
    for name, (changes, _) in CASES.items():
        scene.subscription(name, **changes)
    judgement = scene.judged(check.CHECK)
    assert by_name(judgement) == {name: severity for name, (_, severity) in CASES.items() if severity}
    assert next(iter(by_name(judgement))) == "still-a-million"


def ago(**time: int) -> int:
    """Time so long before the snapshot, in milliseconds since the epoch."""
    return int((NOW - timedelta(**time)).timestamp() * 1000)


AGES: dict[str, tuple[dict[str, Any], dict[str, int], Severity]] = {
    "still-for-nine-minutes": (STILL | MILLION, {"consumed": ago(minutes=9, seconds=59)}, Severity.INFO),
    "still-for-ten-minutes": (STILL, {"consumed": ago(minutes=10)}, Severity.WARNING),
    "still-with-later-acks": (STILL, {"consumed": ago(hours=2), "acked": ago(minutes=5)}, Severity.INFO),
    "still-for-an-hour": (STILL, {"consumed": ago(minutes=60), "acked": ago(minutes=61)}, Severity.CRITICAL),
    "never-since-loaded": (STILL, {"consumed": 0, "acked": 0}, Severity.WARNING),
    "unacked-for-nine-minutes": (DELIVERED, {"consumed": ago(seconds=1), "acked": ago(minutes=9)}, Severity.INFO),
    "unacked-for-ten-minutes": (DELIVERED, {"consumed": ago(seconds=1), "acked": ago(minutes=10)}, Severity.WARNING),
    "unacked-for-an-hour": (DELIVERED, {"consumed": ago(seconds=1), "acked": ago(hours=1)}, Severity.CRITICAL),
    "full-for-hours": ({"message_rate_out": 0.0}, {"consumed": ago(hours=3), "acked": ago(seconds=1)}, Severity.INFO),
    "clock-ahead": (STILL, {"consumed": ago(minutes=-5)}, Severity.INFO),
}


def test_severity_follows_from_since_when(scene: Any) -> None:
    """The severity follows from the times of the last delivery and acknowledgement in the topic's statistics."""
    scene.measured({"pulsar_subscription_delayed": 0.0})
    for name, (changes, last, _) in AGES.items():
        times = {"last_consumed_milliseconds": last["consumed"], "last_acked_milliseconds": last.get("acked", 0)}
        scene.subscription(name, **changes).drilled(name, **times)
    assert by_name(scene.judged(check.CHECK)) == {name: severity for name, (_, _, severity) in AGES.items()}


LIMITS: dict[str, tuple[dict[str, Any], int, bool]] = {
    "consumers ask for more": (STILL | {"consumers_without_permits": 2}, 100, True),
    "consumers ask for nothing": (STILL, 100, False),
    "hardly ever held back": (STILL | {"consumers_without_permits": 2}, 99, False),
    "delivered and not acknowledged": (DELIVERED | {"consumers_without_permits": 2}, 100, False),
}


@pytest.mark.parametrize(("like", "times", "first"), LIMITS.values(), ids=LIMITS)
def test_a_dispatch_rate_is_the_first_cause_where_consumers_ask_for_more(
    scene: Any, golden: Golden, like: dict[str, Any], times: int, first: bool
) -> None:
    """Where nothing is delivered to them; the limit is told with who set it."""
    rate = {"dispatchThrottlingRateInMsg": 1, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 600}
    scene.rows["snapshot"][0]["pulsar_cluster"] = "lab"
    scene.add("namespaces", namespace="t/n", policies_json=json.dumps({"subscriptionDispatchRate": {"lab": rate}}))
    scene.subscription("t", **like).measured({DISPATCHING_LIMITED[1]: times}, topic="persistent://t/n/t", **REASON)
    (finding,) = scene.judged(check.CHECK).findings
    assert ("most likely cause: the dispatch rate" in finding.evidence) is first
    if first:
        golden(finding.evidence)


@pytest.mark.parametrize(("before", "first"), [(738, False), (737, True), (None, True)])
def test_a_dispatch_rate_that_held_nothing_back_lately_is_no_cause(before: int | None, first: bool) -> None:
    """Brokers count since the topic was loaded; what the snapshot before counts too was another time."""
    scenes = []
    for minutes_ago, times in ((0, 738), (15, before)):
        scene = Scene(minutes_ago).subscription("t", **STILL | {"consumers_without_permits": 2})
        if times is not None:
            scene.measured({DISPATCHING_LIMITED[1]: times}, topic="persistent://t/n/t", **REASON)
        scenes.append(scene)
    (finding,) = scenes[0].judged(check.CHECK, earlier=scenes[1:]).findings
    assert ("most likely cause: the dispatch rate" in finding.evidence) is first


def test_a_count_that_drifted_is_no_backlog(scene: Any) -> None:
    """Where by its position a cursor has passed everything, nothing waits (apache/pulsar#5202)."""
    for name, behind in (("passed", 0), ("nearly", 999), ("stands", 50_000)):
        scene.subscription(name, **STILL).drilled(name, entries_behind=behind)
    for name, size in (("one-entry-of-bytes", 192), ("bytes-for-all", 9_600_000)):
        scene.subscription(name, **STILL)
        scene.rows["topics"][-1]["backlog_bytes"] = size
    assert set(by_name(scene.judged(check.CHECK))) == {"stands", "bytes-for-all"}


def test_delayed_messages_are_not_due(scene: Any) -> None:
    """A backlog of delayed messages is no standstill, by the metrics or by the topic's own statistics."""
    scene.measured({"pulsar_subscription_delayed": 0.0})
    for name, delayed in (("all-by-metric", 50_000), ("nearly-all", 49_001), ("enough-left", 49_000)):
        topic = f"persistent://t/n/{name}"
        scene.subscription(name, **STILL)
        scene.measured({"pulsar_subscription_delayed": delayed}, topic=topic, subscription="s")
    scene.subscription("all-by-statistics", **STILL).drilled("all-by-statistics", delayed_messages=50_000)
    assert by_name(scene.judged(check.CHECK)) == {"enough-left": Severity.WARNING}


def test_delayed_messages_of_partitions_with_a_label_are_not_due(scene: Any) -> None:
    """Delayed messages count for their own partition where brokers tell its number apart from the topic's name."""
    labels = {"topic": "persistent://t/n/t", "subscription": "s"}
    told = {"0": 50_000.0, "1": 2_000.0}
    samples = [Sample(DELAYED_SERIES, labels | {"partition": number}, value) for number, value in told.items()]
    (batch,) = Metrics(whole=True, samples=samples).rows("b:8080", "broker")
    scene.rows["metrics"] = batch.rows.to_pylist()
    for number in told:
        scene.subscription(f"t-partition-{number}", **STILL)
    assert by_name(scene.judged(check.CHECK)) == {"t-partition-1": Severity.WARNING}


def test_only_the_owner_tells_what_is_delayed(scene: Any) -> None:
    """Delayed messages that another broker than the owner reports for a topic are not counted."""
    scene.measured({"pulsar_subscription_delayed": 0.0}).subscription("t", **STILL)
    before = {"topic": "persistent://t/n/t", "subscription": "s"}
    scene.measured({"pulsar_subscription_delayed": 50_000}, source="before:8080", **before)
    assert by_name(scene.judged(check.CHECK)) == {"t": Severity.WARNING}


def test_what_it_says(golden: Golden) -> None:
    """A million entries are a warning if nobody knows how many are delayed; who is slowest is named, and since when."""
    slow = Scene().measured({"pulsar_subscription_delayed": 0.0})
    slow.subscription("t", **STILL | {"unacked_messages": 1000})
    slow.drilled("t", last_consumed_milliseconds=ago(minutes=45), last_acked_milliseconds=ago(minutes=50))
    slow.consumer("t", "quick", unacked_messages=0, available_permits=0, address="10.0.0.8:40001")
    slow.consumer("t", "slow", unacked_messages=1000, address="10.0.0.9:40002")
    unknown = Scene().subscription("t", **STILL | MILLION)
    cases = {"it is not known how many are delayed": unknown, "the slowest of three consumers": slow}
    golden(told({rule: scene.judged(check.CHECK) for rule, scene in cases.items()}))


WORDS = {
    "never": (
        STILL,
        {"last_consumed_milliseconds": 0, "last_acked_milliseconds": 0},
        "(no delivery or acknowledgement",
    ),
    "unasked": (STILL, {}, "(last delivery or acknowledgement not known, as its topic was not asked)"),
    "unacked": (DELIVERED, {}, "nothing is acknowledged of what is delivered (last acknowledgement not known"),
    "asking": (STILL | {"consumers_without_permits": 1}, {}, "2 of its consumers ask for more"),
    "fresh": (STILL | {"consumers_connected_recently": 3}, {}, "all its consumers connected in the last "),
}


def test_the_evidence_tells_what_is_not_known(scene: Any) -> None:
    """The evidence says that a time is not known, and whether consumers ask for more or have just connected."""
    for name, (changes, last, _) in WORDS.items():
        scene.subscription(name, **changes)
        if last:
            scene.drilled(name, **last)
    judgement = scene.judged(check.CHECK)
    said = {finding.subject.split()[0].rpartition("/")[2]: finding.evidence for finding in judgement.findings}
    assert {name: words in said[name] for name, (_, _, words) in WORDS.items()} == dict.fromkeys(WORDS, True)


def test_readers_and_compaction_may_stand_still(scene: Any) -> None:
    """Subscriptions of readers and of compaction are not found as stalled, unlike a user's of the same topic."""
    for name in ("reader-1a2b3c4d5e", "multiTopicsReader-0f1e2d3c4b", "__compaction", "users"):
        scene.subscription("t", name, **STILL)
    judgement = scene.judged(check.CHECK)
    assert {finding.subject for finding in judgement.findings} == {"persistent://t/n/t subscription users"}


def test_the_worst_are_listed_and_the_others_counted(scene: Any) -> None:
    for number in range(MAX_FINDINGS + 3):
        scene.subscription(f"t{number}", **STILL | {"backlog_entries": 5000 + number})
    judgement = scene.judged(check.CHECK)
    assert len(judgement.findings) == MAX_FINDINGS
    assert judgement.more == 3
    assert judgement.findings[0].figures["due_entries"] == 5000 + MAX_FINDINGS + 2


@pytest.mark.parametrize("read", [True, False])
def test_silence_means_health_only_where_a_broker_was_read(scene: Any, read: bool) -> None:
    scene.rows["brokers"] = [{"broker": "b:8080", "read": read}]
    judgement = scene.judged(check.CHECK)
    assert (judgement.findings, judgement.cannot_tell is None) == ((), read)
