"""Subscriptions that are blocked for unacknowledged messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.check import MAX_FINDINGS
from pulsar_steward.checks.clients import subscription_blocked as check
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.checks.clients.conftest import by_name
from tests.checks.conftest import as_text

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


def test_the_evidence_names_the_consumers(golden: Golden, scene: Any) -> None:
    """The evidence names at most three consumers: blocked ones first, then those with most unacknowledged messages."""
    scene.subscription("t", consumers=5, consumers_blocked=2, unacked_messages=100_900, ack_rate=0.0)
    scene.consumer("t", "idle", unacked_messages=1, available_permits=400)
    scene.consumer("t", "holds", unacked_messages=800, connected_since="2026-01-01T00:00:00Z")
    scene.consumer("t", "worst", unacked_messages=50_001, blocked=True)
    scene.consumer("t", "bad", unacked_messages=50_000, blocked=True)
    scene.consumer("elsewhere", "other", unacked_messages=90_000)
    (finding,) = scene.judged(check.CHECK).findings
    assert finding.subject == "persistent://t/n/t subscription s"
    for fragment in (
        "holds 100,900 unacknowledged messages, 2 of its 5 consumers (40 %) are blocked for it",
        (
            "and 50,000 entries are in its backlog; slowest of its 5 consumers:"
            f" worst at {address(scene, 'worst')} (50,001 unacknowledged, no permits left, blocked);"
            f" bad at {address(scene, 'bad')} (50,000 unacknowledged, no permits left, blocked);"
            f" holds at {address(scene, 'holds')}"
            " (connected since 2026-01-01T00:00:00Z, 800 unacknowledged, no permits left)."
        ),
    ):
        assert fragment in finding.evidence
    golden(as_text(finding.figures))


def address(scene: Any, consumer: str) -> str:
    """Returns the address of a consumer in the scene."""
    return str(next(row["address"] for row in scene.rows["clients"] if row["consumer"] == consumer))


@pytest.mark.parametrize(
    ("consumers", "words"), [(3, "slowest is not in the snapshot."), (0, "no consumer is connected.")]
)
def test_unnamed_consumers_are_said_to_be_so(scene: Any, consumers: int, words: str) -> None:
    """The evidence says that the slowest consumer is not in the snapshot, or that none is connected."""
    scene.subscription("t", consumers=consumers, blocked_on_unacked=True)
    (finding,) = scene.judged(check.CHECK).findings
    assert finding.evidence.endswith(words)


def test_a_consumer_that_is_alone_is_called_so(scene: Any, golden: Golden) -> None:
    """The evidence calls the single consumer of a subscription its only consumer, and not the slowest."""
    scene.subscription("t", consumers=1, consumers_blocked=1).consumer("t", "alone", unacked_messages=50_000)
    (finding,) = scene.judged(check.CHECK).findings
    golden(finding.evidence)


OWN_LIMIT = '{"max_unacked_messages_per_consumer": 900, "max_unacked_messages_per_subscription": -1}'


@pytest.mark.parametrize("blocked", [{"blocked_on_unacked": True}, {"consumers_blocked": 3}])
def test_the_limit_is_told_with_who_set_it(scene: Any, golden: Golden, blocked: dict[str, Any]) -> None:
    """A namespace's before the brokers'."""
    scene.configured(maxUnackedMessagesPerConsumer="50000", maxUnackedMessagesPerSubscription="200000")
    scene.add("namespaces", namespace="t/n", policies_json=OWN_LIMIT).subscription("t", **blocked)
    (finding,) = scene.judged(check.CHECK).findings
    golden(finding.evidence)


def test_the_worst_are_listed_and_the_others_counted(scene: Any) -> None:
    """Of more findings than fit, those with most unacknowledged messages are listed, and the rest is counted."""
    for number in range(MAX_FINDINGS + 2):
        scene.subscription(f"t{number}", blocked_on_unacked=True, unacked_messages=number)
    judgement = scene.judged(check.CHECK)
    assert len(judgement.findings) == MAX_FINDINGS
    assert judgement.more == 2
    assert judgement.findings[0].subject == f"persistent://t/n/t{MAX_FINDINGS + 1} subscription s"


def test_the_share_comes_from_the_policy(scene: Any) -> None:
    """A stricter policy warns of fewer blocked consumers."""
    scene.subscription("t", consumers_blocked=1)
    strict = Policy.model_validate({"subscription_blocked": {"warning_blocked_percent": 33}})
    assert by_name(scene.judged(check.CHECK, strict)) == {"t": Severity.WARNING}


@pytest.mark.parametrize("read", [True, False])
def test_silence_means_health_only_where_a_broker_was_read(scene: Any, read: bool) -> None:
    """A snapshot without findings is healthy if a broker was read; otherwise the check cannot tell."""
    scene.rows["brokers"] = [{"broker": "b:8080", "read": read}]
    judgement = scene.judged(check.CHECK)
    assert (judgement.findings, judgement.cannot_tell is None) == ((), read)


def test_since_when_and_how_old_is_told_where_it_is_known(scene: Any, golden: Golden) -> None:
    """The evidence has the last acknowledgement, the oldest entry's age and the batch size where they are known."""
    taken_at = scene.rows["snapshot"][0]["taken_at"].timestamp()
    scene.subscription("t", blocked_on_unacked=True, ack_rate=0.0, messages_per_entry=500)
    times = {"last_acked_milliseconds": int(taken_at - 2700) * 1000, "oldest_backlog_age_seconds": 10_800}
    scene.drilled("t", slowest_subscription="s", **times).drilled("t", subscription="u", slowest_subscription="s")
    scene.subscription("u", blocked_on_unacked=True, ack_rate=0.0)
    scene.drilled("u", slowest_subscription="another", oldest_backlog_age_seconds=10_800, last_acked_milliseconds=0)
    told, untold = scene.judged(check.CHECK).findings
    golden(told.evidence)
    assert told.figures["since_seconds"] == 2700
    golden(untold.evidence)


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


def test_silence_tells_where_nothing_is_ever_blocked(scene: Any, golden: Golden) -> None:
    """The healthy result names the brokers and namespaces where limits of 0 block no subscription."""
    scene.configured(**OFF).subscription("t").add("namespaces", namespace="t/free", policies_json=OWN_OFF)
    quiet = scene.judged(check.CHECK).quiet
    assert "Nothing ever is in b:8080, t/free" in quiet
    golden(quiet)
