"""Ack holes near what a broker persists, and beyond it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.checks.check import MAX_FINDINGS
from pulsar_steward.checks.clients import ack_holes as check
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.checks.clients.conftest import Scene, by_name
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
