"""Subscriptions that stand still with few entries due: each may be a batch of a thousand messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.clients import subscription_stalled as check
from pulsar_steward.model.finding import Severity
from tests.checks.clients.conftest import Scene, by_name
from tests.checks.conftest import told

if TYPE_CHECKING:
    from tests.golden import Golden

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)

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


def ago(**time: int) -> int:
    """Time so long before the snapshot, in milliseconds since the epoch."""
    return int((NOW - timedelta(**time)).timestamp() * 1000)


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


def test_what_it_says(golden: Golden) -> None:
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
