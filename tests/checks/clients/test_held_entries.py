"""One message that nobody acknowledges holds back all that follows it."""

from __future__ import annotations

from typing import Any

from pulsar_steward.checks.clients import ack_holes as check
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.checks.clients.conftest import by_name, found_over_time

MILLION = 1_000_000
HELD: dict[str, Any] = {"ack_holes": 1, "backlog_entries": 3, "entries_since_first_gap": MILLION}

CASES: dict[str, tuple[dict[str, Any], bool]] = {
    "held": ({}, True),
    "just the least": ({"backlog_entries": MILLION // 10}, True),
    "fewer": ({"entries_since_first_gap": MILLION - 1}, False),
    "a long backlog": ({"backlog_entries": MILLION // 10 + 1}, False),
    "no hole": ({"ack_holes": 0}, False),
    "not told": ({"entries_since_first_gap": None}, False),
}


def test_few_holes_may_hold_much(scene: Any) -> None:
    """One unacknowledged message that holds many entries back is information, as its age is not known."""
    scene.configured()
    for name, (changes, _) in CASES.items():
        scene.subscription(name, **HELD | changes).consumer(name, "hung", unacked_messages=1)
    judgement = scene.judged(check.CHECK)
    assert by_name(judgement) == {name: Severity.INFO for name, (_, found) in CASES.items() if found}
    for finding in judgement.findings:
        assert "1,000,000 entries of persistent://t/n/" in finding.evidence
        assert "hung at 10.0.0.7:" in finding.evidence
        assert finding.figures["entries_since_first_gap"] == MILLION


def test_what_waits_for_its_time_is_another_checks(scene: Any) -> None:
    """Subscriptions with delayed messages are left out, by figures of the topic or of its present broker."""
    delayed = {"pulsar_subscription_delayed": 3.0}
    scene.configured()
    for name, source in (("delayed", "b:8080"), ("moved", "before:8080")):
        scene.subscription(name, **HELD)
        scene.measured(delayed, source=source, topic=f"persistent://t/n/{name}", subscription="s")
    scene.subscription("asked", **HELD).drilled("asked", delayed_messages=3)
    assert [each.subject for each in scene.judged(check.CHECK).findings] == ["persistent://t/n/moved subscription s"]


OVER_TIME: dict[str, tuple[list[int], Severity | None]] = {
    "for a quarter of an hour": ([MILLION, 2 * MILLION], Severity.INFO),
    "for an hour": ([1200, 500_000, MILLION, MILLION, 2 * MILLION], Severity.WARNING),
    "it moves on": ([MILLION, 3 * MILLION, 2 * MILLION], None),
    "it moved on, and is held again": ([MILLION, 3 * MILLION, MILLION, 2 * MILLION], Severity.INFO),
}


def test_how_long_follows_from_earlier_snapshots() -> None:
    """Entries count as held for as long as their number did not fall from one snapshot to the next."""
    histories = {
        name: [HELD | {"entries_since_first_gap": span} for span in spans] for name, (spans, _) in OVER_TIME.items()
    }
    assert found_over_time(check.CHECK, histories) == {name: each for name, (_, each) in OVER_TIME.items() if each}


def test_too_many_holes_are_told_once(scene: Any) -> None:
    """A subscription with too many ack holes has one critical finding and no other about the entries it holds back."""
    scene.configured().subscription("t", **HELD | {"ack_holes": 20_000}).subscription("u", **HELD)
    findings = scene.judged(check.CHECK).findings
    assert [(each.subject.rpartition("/")[2], each.severity) for each in findings] == [
        ("t subscription s", Severity.CRITICAL),
        ("u subscription s", Severity.INFO),
    ]


def test_a_namespace_may_hold_more(scene: Any) -> None:
    """A namespace with a higher threshold of its own gives no finding about held entries."""
    scene.configured().subscription("t", **HELD)
    own = Policy.model_validate({"namespaces": {"t/n": {"ack_holes": {"warning_held_entries": 2 * MILLION}}}})
    assert not scene.judged(check.CHECK, own).findings
