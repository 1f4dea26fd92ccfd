"""Subscriptions that stand still, with single stuck consumers and with batches."""

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


MINUTES = 15
HELD: dict[str, Any] = {"unacked_messages": 1034, "available_permits": -34, "message_rate_out": 0.0, "ack_rate": 0.0}
HELD |= {"connected_since": "2026-01-01T00:00:00Z"}
OTHERS: dict[str, dict[str, Any]] = {
    "stuck": {},
    "holds other messages": {"unacked_messages": 990},
    "has come back since": {"connected_since": "2026-01-02T11:58:00Z"},
    "asks for more": {"available_permits": 3},
    "acknowledges": {"ack_rate": 1.0},
    "is blocked": {"blocked": True},
    "is slow with a small queue": {"unacked_messages": 20},
}


def crowd(scene: Any, consumers: int = 10, entries: int = 5000, kind: str = "Shared", **changes: Any) -> Any:
    """A busy subscription of which one consumer is stuck, the snapshot before included in its span."""
    like = {"consumers": consumers, "consumers_stuck": 1, "entries_since_first_gap": entries, "type": kind}
    return scene.subscription("t", **like).consumer("t", "hung", **HELD | changes)


@pytest.mark.parametrize(
    ("snapshots", "consumers", "severity"),
    [(1, 10, Severity.INFO), (2, 10, Severity.INFO), (5, 10, Severity.WARNING), (2, 2, Severity.WARNING)],
)
def test_one_stuck_consumer_of_many_is_found_by_how_long_and_how_many(
    snapshots: int, consumers: int, severity: Severity, golden: Golden
) -> None:
    """A stuck consumer's severity follows from how long it has been stuck and from the share of stuck consumers."""
    scene, *earlier = [crowd(Scene(number * MINUTES), consumers) for number in range(snapshots)]
    (finding,) = scene.judged(check.CHECK, earlier=earlier).findings
    assert finding.severity is severity
    golden(finding.evidence)
    assert "holding 1,034 unacknowledged messages" in finding.evidence
    assert "hung at 10.0.0.7:" in finding.evidence
    assert finding.figures["unacked_messages"] == 1034


@pytest.mark.parametrize(
    ("minutes", "severity"), [(9, None), (10, Severity.INFO), (59, Severity.INFO), (60, Severity.WARNING)]
)
def test_a_topic_tells_at_the_first_look_since_when_its_consumer_is_stuck(
    scene: Any, minutes: int, severity: Severity | None
) -> None:
    """The last time that a consumer got or acknowledged something counts, without any snapshot before."""
    rested = int((NOW - timedelta(minutes=minutes)).timestamp() * 1000)
    crowd(scene)
    consumer = {each: scene.rows["clients"][0][each] for each in ("consumer", "address", "connected_since")}
    told = consumer | {"unacked_messages": 1034, "acked_milliseconds": rested, "consumed_milliseconds": rested - 9}
    scene.drilled("t", holders_json=json.dumps([told]))
    findings = scene.judged(check.CHECK).findings
    assert [each.severity for each in findings] == ([severity] if severity else [])
    assert all(f"(for {minutes}.0 min, by the topic's own times)" in each.evidence for each in findings)


@pytest.mark.parametrize("before", [name for name in OTHERS if name not in {"stuck", "is blocked"}])
def test_a_consumer_that_pauses_is_not_stuck(before: str) -> None:
    """A consumer whose state differed in the snapshot 15 minutes before is not found as stuck."""
    scene, earlier = crowd(Scene(0)), crowd(Scene(MINUTES), **OTHERS[before])
    assert not scene.judged(check.CHECK, earlier=[earlier]).findings


@pytest.mark.parametrize("now", ["asks for more", "acknowledges", "is blocked", "is slow with a small queue"])
def test_a_consumer_that_works_is_not_stuck(scene: Any, now: str) -> None:
    """A consumer that asks for more, acknowledges, is blocked or holds few messages is not found as stuck."""
    assert not crowd(scene, **OTHERS[now]).judged(check.CHECK).findings


def test_what_holds_nothing_back_is_not_stuck() -> None:
    """Consumers that commit together, after which the entries since the first gap become fewer, and one in standby."""
    spans = (4000, 5000, 3000, 6000, 2000)
    scene, *earlier = [crowd(Scene(number * MINUTES), entries=span) for number, span in enumerate(spans)]
    assert not scene.judged(check.CHECK, earlier=earlier).findings
    assert not crowd(Scene(), kind="Failover").judged(check.CHECK).findings


# As it was on a real broker: 8,000 messages in 9 entries, and a client that hung.
HUNG: dict[str, Any] = {
    "consumers": 1,
    "backlog_entries": 9,
    "messages_per_entry": 847,
    "unacked_messages": 4166,
    "consumers_without_permits": 1,
    "consumers_stuck": 1,
    "message_rate_out": 0.0,
    "ack_rate": 0.0,
}
# A receiver queue of one, and a handler that takes its time.
SLOW = HUNG | {"backlog_entries": 40, "messages_per_entry": 1, "unacked_messages": 2}
ONE_OF_THREE = {"consumers": 3, "consumers_stuck": 1, "consumers_without_permits": 1}


@pytest.fixture
def still(scene: Any) -> Any:
    """A broker that tells of delayed messages."""
    return scene.measured({"pulsar_subscription_delayed": 0.0})


KNOWN: dict[str, tuple[dict[str, Any], timedelta, Severity | None]] = {
    "hung-for-seconds": (HUNG, timedelta(seconds=70), None),
    "hung-for-ten-minutes": (HUNG, timedelta(minutes=10), Severity.WARNING),
    "hung-for-an-hour": (HUNG, timedelta(hours=1), Severity.CRITICAL),
    "batches-of-an-exclusive-consumer": (HUNG | {"unacked_messages": 0}, timedelta(minutes=10), Severity.WARNING),
    "held-though-no-size-is-known": (HUNG | {"messages_per_entry": None}, timedelta(minutes=10), Severity.WARNING),
    "nine-messages": (HUNG | {"messages_per_entry": 1, "unacked_messages": 9}, timedelta(minutes=10), None),
    "slow-with-a-queue-of-one": (SLOW, timedelta(minutes=50), None),
    "few-that-nobody-takes-for-an-hour": (SLOW, timedelta(hours=1), Severity.WARNING),
    "few-with-permits-left-for-an-hour": (SLOW | {"consumers_stuck": 0}, timedelta(hours=1), Severity.INFO),
    "nothing-due": (HUNG | {"backlog_entries": 0, "unacked_messages": 0}, timedelta(days=3), None),
    "delivered-but-not-acknowledged": (HUNG | {"message_rate_out": 5.0}, timedelta(minutes=10), None),
    "working-on-what-it-holds": (HUNG | {"ack_rate": 5.0}, timedelta(hours=1), None),
}


def test_where_it_is_known_since_when_that_decides(still: Any) -> None:
    """Severity follows from the time since the last activity and from the number of due messages."""
    for name, (like, since, _) in KNOWN.items():
        last = ago(seconds=int(since.total_seconds()))
        still.subscription(name, **like).drilled(name, last_consumed_milliseconds=last, last_acked_milliseconds=0)
    assert by_name(still.judged(check.CHECK)) == {name: found for name, (_, _, found) in KNOWN.items() if found}


def test_what_it_says_of_batches(golden: Golden) -> None:
    """Due entries with their estimated messages; where its topic was not asked it is information."""
    asked, unasked, huge, many = (Scene().measured({"pulsar_subscription_delayed": 0.0}) for _ in range(4))
    since = {"last_consumed_milliseconds": ago(minutes=30), "last_acked_milliseconds": 0}
    asked.subscription("t", **HUNG).drilled("t", **since)
    unasked.subscription("hung", **HUNG).subscription("slow", **SLOW)
    huge.subscription("t", **HUNG | {"backlog_entries": 2**53, "messages_per_entry": 2**53})
    for number in range(1001):
        many.subscription(f"t{number}", **SLOW)
    cases = {
        "nine entries of 847 messages": asked,
        "topics that were not asked": unasked,
        "impossible numbers": huge,
        "more than are looked up": many,
    }
    golden(told({rule: scene.judged(check.CHECK) for rule, scene in cases.items()}))


def test_a_consumer_that_never_acknowledged_has_hung_since_it_connected(still: Any, golden: Golden) -> None:
    like = HUNG | {"message_rate_out": 3.0}
    for name, since in (("old", "2026-01-02T10:59:00.123456789Z"), ("new", "2026-01-02T12:55:00+01:00"), ("odd", "?")):
        still.subscription(name, **like).consumer(name, "c", connected_since=since, unacked_messages=4166)
        still.drilled(name, last_consumed_milliseconds=ago(seconds=5), last_acked_milliseconds=0)
    judgement = still.judged(check.CHECK)
    assert by_name(judgement) == {"old": Severity.CRITICAL}
    golden(judgement.findings[0].evidence)


def test_standby_consumers_keep_their_permits(still: Any, golden: Golden) -> None:
    """One stuck consumer is a warning on a Failover subscription and information on a Shared one."""
    for kind in ("Failover", "Shared"):
        name = kind.lower()
        still.subscription(name, **SLOW | ONE_OF_THREE, type=kind)
        still.drilled(name, last_consumed_milliseconds=ago(hours=2), last_acked_milliseconds=0)
    judgement = still.judged(check.CHECK)
    assert by_name(judgement) == {"failover": Severity.WARNING, "shared": Severity.INFO}
    golden(judgement.findings[0].evidence)
    golden(judgement.findings[1].evidence)


AGAIN: dict[str, Any] = {"backlog_entries": 3, "redeliver_rate": 2.5, "message_rate_out": 2.5, "ack_rate": 0.0}
MANY = {"backlog_entries": 5000}
REDELIVERED: dict[str, tuple[dict[str, Any], timedelta | None, Severity | None]] = {
    "again-since-when-is-not-known": (AGAIN, None, Severity.INFO),
    "again-for-a-minute": (AGAIN, timedelta(minutes=1), None),
    "again-for-ten-minutes": (AGAIN, timedelta(minutes=10), Severity.INFO),
    "again-for-an-hour": (AGAIN, timedelta(hours=1), Severity.WARNING),
    "many-again-for-a-minute": (AGAIN | MANY, timedelta(minutes=1), Severity.INFO),
    "many-again-for-ten-minutes": (AGAIN | MANY, timedelta(minutes=10), Severity.WARNING),
    "many-again-for-hours": (AGAIN | MANY, timedelta(hours=5), Severity.WARNING),
    "some-again-others-acknowledged": (AGAIN | MANY | {"ack_rate": 0.1}, timedelta(hours=5), None),
}


def test_the_same_messages_again_and_again(still: Any) -> None:
    """Messages that are delivered again and never acknowledged are found as information or, after longer, a warning."""
    for name, (like, since, _) in REDELIVERED.items():
        still.subscription(name, **like)
        if since is not None:
            acked = ago(seconds=int(since.total_seconds()))
            still.drilled(name, last_consumed_milliseconds=ago(seconds=1), last_acked_milliseconds=acked)
    judgement = still.judged(check.CHECK)
    assert by_name(judgement) == {name: found for name, (_, _, found) in REDELIVERED.items() if found}
    assert all("2.5 messages/s are delivered again" in each.evidence for each in judgement.findings)
