"""Consumers that get nothing, and nothing that is due shows it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.clients.subscription_stalled import CHECK
from pulsar_steward.model.finding import Severity
from tests.checks.conftest import judge_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.golden import Golden

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
TOPIC = "persistent://t/n/a"
STILL = {"consumers": 1, "message_rate_out": 0.0, "ack_rate": 0.0, "unacked_messages": 0}


def snapshot(subscriptions: Sequence[dict[str, Any]], minutes_ago: float = 0, **topic: Any) -> dict[str, Any]:
    taken_at = NOW - timedelta(minutes=minutes_ago)
    traffic = {"message_rate_in": 0.0, "subscriptions": len(subscriptions)}
    return {
        "snapshot": [{"cluster": "lab", "taken_at": taken_at, "unread_brokers": [], "unread_namespaces": []}],
        "brokers": [{"broker": "b:8080", "read": True}],
        "namespaces": [{"namespace": "t/n", "policies_json": "{}"}],
        "topics": [{"topic": TOPIC, "broker": "b:8080"} | traffic | topic],
        "subscriptions": [{"topic": TOPIC} | STILL | each for each in subscriptions],
    }


def delayed(*, longest_s: int = 60, age_s: int = 5400, strict: bool = True, **own: Any) -> dict[str, Any]:
    """Twelve delayed messages, all that a subscription has, of a topic whose oldest message is so old."""
    slowest = own.pop("slowest", "s")
    rows = snapshot([{"subscription": "s", "backlog_entries": 12, "consumers_without_permits": 0} | own])
    allowed = {"delayed_delivery_policies": {"maxDeliveryDelayInMillis": longest_s * 1000}}
    told = {"delayed_messages": 12, "oldest_backlog_age_seconds": age_s, "slowest_subscription": slowest}
    return rows | {
        "namespaces": [{"namespace": "t/n", "policies_json": json.dumps(allowed)}],
        "drilled": [{"topic": TOPIC, "subscription": "s"} | told],
        "configuration": [
            {"broker": "b:8080", "key": "isDelayedDeliveryDeliverAtTimeStrict", "value": str(strict).lower()}
        ],
    }


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (delayed(), True),
        (delayed(strict=False), True),
        (delayed(age_s=659), False),
        (delayed(longest_s=0), False),
        (delayed(longest_s=5400), False),
        (delayed(slowest="other"), False),
        (delayed(consumers_without_permits=1), False),
        (delayed(backlog_entries=13), False),
        (delayed(message_rate_out=0.1), False),
    ],
    ids=[
        "strict",
        "not strict",
        "hardly overdue",
        "any delay is allowed",
        "so long a delay is allowed",
        "another subscription is older",
        "nobody asks for more",
        "one is due",
        "something is delivered",
    ],
)
def test_overdue_messages_are_told_by_the_longest_delay(golden: Golden, rows: dict[str, Any], found: bool) -> None:
    """Delayed messages that are older than any may be delayed are overdue (apache/pulsar#25996)."""
    findings = judge_rows(CHECK, rows).findings
    assert [each.severity for each in findings] == [Severity.WARNING] * found
    for each in findings:
        golden(each.evidence)


def readers(*names: str, minutes_ago: float = 0, **own: Any) -> dict[str, Any]:
    """Readers that have these names, each behind all that is stored."""
    traffic = {"message_rate_in": own.pop("published", 0.0)}
    each = {"backlog_entries": 38_345, "type": "Exclusive"} | own
    return snapshot([{"subscription": f"reader-{name}"} | each for name in names], minutes_ago, **traffic)


@pytest.mark.parametrize(
    ("now", "before", "found"),
    [
        (readers("a", "b", "c"), ["a", "b"], True),
        (readers("a", "b", "c"), ["a", "b", "c"], False),
        (readers("a", "b", "c"), ["a", "z"], False),
        (readers("a", "b", "c"), ["a"], False),
        (readers("a", "b", "c", published=1.0), ["a", "b"], False),
        (readers("a", "b", "c", published=None), ["a", "b"], False),
        (readers("a", "b", "c", message_rate_out=3.0), ["a", "b"], False),
        (readers("a", "b", "c", backlog_entries=999), ["a", "b"], False),
    ],
    ids=[
        "one more",
        "as many",
        "one went",
        "only one stayed",
        "somebody publishes",
        "who knows",
        "they read",
        "few entries",
    ],
)
def test_readers_that_only_grow_in_number_are_left_behind(
    golden: Golden, now: dict[str, Any], before: list[str], found: bool
) -> None:
    """Each attempt of a client may leave a reader behind that gets nothing (apache/pulsar#15070)."""
    findings = judge_rows(CHECK, now, None, [readers(*before, minutes_ago=10)]).findings
    assert [(each.severity, each.subject) for each in findings] == [(Severity.WARNING, TOPIC)] * found
    for each in findings:
        golden(each.evidence)
