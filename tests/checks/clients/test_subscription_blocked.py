"""Subscriptions that are blocked for unacknowledged messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.check import MAX_FINDINGS
from pulsar_steward.checks.clients import subscription_blocked as check
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.checks.clients.conftest import Scene, by_name
from tests.checks.conftest import told

if TYPE_CHECKING:
    from tests.golden import Golden

CASES: dict[str, tuple[dict[str, Any], Severity | None]] = {
    "busy": ({}, None),
    "exclusive": ({"type": "Exclusive", "blocked_on_unacked": None, "unacked_messages": None}, None),
    "whole": ({"blocked_on_unacked": True, "unacked_messages": 200_000, "ack_rate": 0.0}, Severity.CRITICAL),
    "whole-but-acknowledging": ({"blocked_on_unacked": True, "unacked_messages": 190_000}, Severity.WARNING),
    "every-consumer": ({"consumers_blocked": 3, "unacked_messages": 150_000, "ack_rate": 0.0}, Severity.CRITICAL),
    "half-of-them": ({"consumers": 4, "consumers_blocked": 2, "ack_rate": 0.0}, Severity.WARNING),
    "fewer-than-half": ({"consumers_blocked": 1, "ack_rate": 0.0}, Severity.INFO),
    "rate-not-known": ({"blocked_on_unacked": True, "ack_rate": None, "unacked_messages": 1}, Severity.WARNING),
    "persistent://pulsar/lab/b:8080/heartbeat": ({"blocked_on_unacked": True}, None),
    "persistent://t/n/__change_events": ({"blocked_on_unacked": True}, None),
}


def test_severity_follows_from_who_is_blocked(scene: Any) -> None:
    """A subscription that is blocked without acknowledgements is critical; few blocked consumers are information."""
    for name, (changes, _) in CASES.items():
        scene.subscription(name, **changes)
    judgement = scene.judged(check.CHECK)
    assert by_name(judgement) == {name: severity for name, (_, severity) in CASES.items() if severity}
    assert next(iter(by_name(judgement))) == "whole"


def test_the_evidence_names_consumers_and_limits(golden: Golden) -> None:
    """At most three consumers, blocked ones first, then by what they hold; a namespace's limit before the brokers'."""
    own_limit = '{"max_unacked_messages_per_consumer": 900, "max_unacked_messages_per_subscription": -1}'
    brokers = {"maxUnackedMessagesPerConsumer": "50000", "maxUnackedMessagesPerSubscription": "200000"}
    five = Scene().subscription("t", consumers=5, consumers_blocked=2, unacked_messages=100_900, ack_rate=0.0)
    five.consumer("t", "idle", unacked_messages=1, available_permits=400)
    five.consumer("t", "holds", unacked_messages=800, connected_since="2026-01-01T00:00:00Z")
    five.consumer("t", "worst", unacked_messages=50_001, blocked=True)
    five.consumer("t", "bad", unacked_messages=50_000, blocked=True)
    five.consumer("elsewhere", "other", unacked_messages=90_000)
    alone = Scene().subscription("t", consumers=1, consumers_blocked=1).consumer("t", "alone", unacked_messages=50_000)
    limited = [
        Scene()
        .configured(**brokers)
        .add("namespaces", namespace="t/n", policies_json=own_limit)
        .subscription("t", **like)
        for like in ({"blocked_on_unacked": True}, {"consumers_blocked": 3})
    ]
    cases = {
        "two of five are blocked": five,
        "the slowest is not in the snapshot": Scene().subscription("t", consumers=3, blocked_on_unacked=True),
        "none is connected": Scene().subscription("t", consumers=0, blocked_on_unacked=True),
        "the only one": alone,
        "the brokers' limit of the subscription": limited[0],
        "the namespace's limit of consumers": limited[1],
    }
    golden(told({rule: scene.judged(check.CHECK) for rule, scene in cases.items()}))


OFF = {"maxUnackedMessagesPerConsumer": "0", "maxUnackedMessagesPerSubscription": "0"}
OWN_OFF = '{"max_unacked_messages_per_consumer": 0, "max_unacked_messages_per_subscription": 0}'
OWN_ON = '{"max_unacked_messages_per_consumer": 0, "max_unacked_messages_per_subscription": 900000}'
UNSET = '{"max_unacked_messages_per_consumer": -1, "max_unacked_messages_per_subscription": null}'
HELD: dict[str, tuple[dict[str, str], str | None, float, int, Severity | None]] = {
    "no limits, nothing acknowledged": (OFF, None, 0.0, 200_000, Severity.WARNING),
    "no limits, and it works": (OFF, None, 900.0, 200_000, Severity.INFO),
    "no limits, and less": (OFF, None, 0.0, 199_999, None),
    "unset in the namespace": (OFF, UNSET, 0.0, 200_000, Severity.WARNING),
    "one limit": (OFF | {"maxUnackedMessagesPerSubscription": "900000"}, None, 0.0, 200_000, None),
    "a limit of the namespace": (OFF, OWN_ON, 0.0, 200_000, None),
    "no limits in the namespace": ({}, OWN_OFF, 0.0, 200_000, Severity.WARNING),
    "limits are not known": ({}, "{", 0.0, 200_000, None),
}


@pytest.mark.parametrize(("settings", "policies", "ack_rate", "unacked", "severity"), HELD.values(), ids=HELD)
def test_where_nothing_is_ever_blocked_what_is_held_counts(
    scene: Any, settings: dict[str, str], policies: str | None, ack_rate: float, unacked: int, severity: Severity | None
) -> None:
    """Without limits on unacknowledged messages, a subscription that holds as many as the default limit is found."""
    scene.configured(**settings).add("namespaces", namespace="t/n", policies_json=policies)
    scene.subscription("t", unacked_messages=unacked, ack_rate=ack_rate)
    judgement = scene.judged(check.CHECK)
    assert by_name(judgement) == ({"t": severity} if severity else {})
    if severity:
        assert "which nothing limits" in judgement.findings[0].evidence


def test_what_it_says(golden: Golden) -> None:
    """Since when and how old where it is known; where nothing is ever blocked, silence says so."""
    aged, many, unread = Scene(), Scene(), Scene()
    taken_at = aged.rows["snapshot"][0]["taken_at"].timestamp()
    times = {"last_acked_milliseconds": int(taken_at - 2700) * 1000, "oldest_backlog_age_seconds": 10_800}
    aged.subscription("t", blocked_on_unacked=True, ack_rate=0.0, messages_per_entry=500)
    aged.drilled("t", slowest_subscription="s", **times).drilled("t", subscription="u", slowest_subscription="s")
    aged.subscription("u", blocked_on_unacked=True, ack_rate=0.0)
    aged.drilled("u", slowest_subscription="another", oldest_backlog_age_seconds=10_800, last_acked_milliseconds=0)
    for number in range(MAX_FINDINGS + 2):
        many.subscription(f"t{number}", blocked_on_unacked=True, unacked_messages=number)
    unread.rows["brokers"][0]["read"] = False
    off = Scene().configured(**OFF).subscription("t").add("namespaces", namespace="t/free", policies_json=OWN_OFF)
    strict = Policy.model_validate({"subscription_blocked": {"warning_blocked_percent": 33}})
    cases: dict[str, tuple[Scene, Policy | None]] = {
        "since when, of one that its topic tells of, and of another": (aged, None),
        "more than a hundred": (many, None),
        "a stricter share of blocked consumers": (Scene().subscription("t", consumers_blocked=1), strict),
        "a broker was read": (Scene(), None),
        "no broker was read": (unread, None),
        "nothing is ever blocked": (off, None),
    }
    golden(told({rule: scene.judged(check.CHECK, own) for rule, (scene, own) in cases.items()}))
