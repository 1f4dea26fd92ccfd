"""Ack holes near what a broker persists, and beyond it; and what subscriptions with holes keep from deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.checks.check import MAX_FINDINGS
from pulsar_steward.checks.clients import ack_holes as check
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.checks.clients.conftest import Scene, by_name, found_over_time
from tests.checks.conftest import told

if TYPE_CHECKING:
    from tests.golden import Golden

LIMIT = "managedLedgerMaxUnackedRangesToPersist"
RANGES = {"managedLedgerPersistIndividualAckAsLongArray": "false"}

CASES: dict[str, tuple[int | None, Severity | None]] = {
    "none": (0, None),
    "not-told": (None, None),
    "just-below-half": (4999, None),
    "half": (5000, Severity.WARNING),
    "the-limit": (10_000, Severity.WARNING),
    "beyond": (10_001, Severity.CRITICAL),
    "far-beyond": (90_000, Severity.CRITICAL),
    "persistent://t/n/__change_events": (90_000, None),
}


def test_severity_follows_from_the_share_of_the_limit(scene: Any) -> None:
    """Ack holes are a warning from half of the broker's limit on and critical beyond it, the worst first."""
    scene.configured()
    for name, (holes, _) in CASES.items():
        scene.subscription(name, ack_holes=holes)
    judgement = scene.judged(check.CHECK)
    assert by_name(judgement) == {name: severity for name, (_, severity) in CASES.items() if severity}
    assert list(by_name(judgement)) == ["far-beyond", "beyond", "the-limit", "half"]


def test_each_broker_has_a_limit_of_its_own(scene: Any, golden: Golden) -> None:
    """A subscription's ack holes are judged by the limit of its own broker, and any are critical with a limit of 0."""
    for broker, limit in (("low:1", "1000"), ("high:1", "1000000"), ("none:1", "0"), ("silent:1", None)):
        scene.add("brokers", broker=broker, read=True).configured(broker, **{LIMIT: limit})
        name = broker.partition(":")[0]
        scene.add("topics", topic=f"persistent://t/n/{name}", broker=broker)
        scene.add("subscriptions", topic=f"persistent://t/n/{name}", subscription="s", ack_holes=1001)
    judgement = scene.judged(check.CHECK)
    assert by_name(judgement) == {"low": Severity.CRITICAL, "none": Severity.CRITICAL}
    golden(judgement.findings[0].evidence)


def test_what_it_says(golden: Golden) -> None:
    """What a restart does to more holes than are persisted; silence is health only where the limit is known."""

    def of(holes: int, settings: dict[str, Any] | None = None, *, read: bool = True) -> Scene:
        scene = Scene().configured(**settings or {}).subscription("t", ack_holes=holes)
        scene.rows["brokers"] = [{"broker": "b:8080", "read": read, "topics": 1}]
        return scene.consumer("t", "slow", unacked_messages=5)

    two, many = of(7999).subscription("u", ack_holes=8000), Scene().configured()
    for number in range(MAX_FINDINGS + 1):
        many.subscription(f"t{number}", ack_holes=20_000 + number)
    loose = Policy.model_validate({"ack_holes": {"warning_percent": 80}})
    cases = {
        "near the limit, as ranges": of(6000, RANGES),
        "beyond it, as ranges": of(12_000, RANGES),
        "near the limit, as long arrays": of(6000),
        "more than a hundred": many,
        "few": of(40),
        "the limit was not read": of(40, {LIMIT: None}),
        "the broker was not read": of(40, read=False),
    }
    judged = {rule: scene.judged(check.CHECK) for rule, scene in cases.items()}
    golden(told({**judged, "at the policy's share, and below it": two.judged(check.CHECK, loose)}))


MILLION = 1_000_000
HELD: dict[str, Any] = {"ack_holes": 1, "backlog_entries": 3, "entries_since_first_gap": MILLION}

HELD_CASES: dict[str, tuple[dict[str, Any], bool]] = {
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
    for name, (changes, _) in HELD_CASES.items():
        scene.subscription(name, **HELD | changes).consumer(name, "hung", unacked_messages=1)
    judgement = scene.judged(check.CHECK)
    assert by_name(judgement) == {name: Severity.INFO for name, (_, found) in HELD_CASES.items() if found}
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


def test_what_it_says_of_held_entries(golden: Golden) -> None:
    """Too many ack holes are told once; a namespace may hold more."""
    twice = Scene().configured().subscription("t", **HELD | {"ack_holes": 20_000}).subscription("u", **HELD)
    own = Policy.model_validate({"namespaces": {"t/n": {"ack_holes": {"warning_held_entries": 2 * MILLION}}}})
    golden(
        told(
            {
                "too many holes, and few that hold much": twice.judged(check.CHECK),
                "below the namespace's own threshold": Scene()
                .configured()
                .subscription("t", **HELD)
                .judged(check.CHECK, own),
            }
        )
    )
