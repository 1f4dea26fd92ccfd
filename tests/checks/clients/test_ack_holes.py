"""Ack holes near what a broker persists, and beyond it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.check import MAX_FINDINGS
from pulsar_steward.checks.clients import ack_holes as check
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.checks.clients.conftest import by_name

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


@pytest.mark.parametrize(
    ("settings", "holes"), [(RANGES, 6000), (RANGES, 12_000), ({}, 6000)], ids=["near", "beyond", "long arrays"]
)
def test_the_evidence_tells_what_it_means(scene: Any, settings: dict[str, str], holes: int, golden: Golden) -> None:
    """The evidence gives the number of ack holes, the limit and the effect of a restart."""
    scene.configured(**settings).subscription("t", ack_holes=holes).consumer("t", "slow", unacked_messages=5)
    (finding,) = scene.judged(check.CHECK).findings
    golden(finding.evidence)
    assert finding.figures == {"ack_holes": holes, "ack_holes_persisted_at_most": 10_000}


def test_the_share_comes_from_the_policy(scene: Any) -> None:
    """The warning starts at the share of the limit that the policy sets."""
    scene.configured().subscription("t", ack_holes=7999).subscription("u", ack_holes=8000)
    loose = Policy.model_validate({"ack_holes": {"warning_percent": 80}})
    assert by_name(scene.judged(check.CHECK, loose)) == {"u": Severity.WARNING}


def test_the_worst_are_listed_and_the_others_counted(scene: Any) -> None:
    """The findings with the most ack holes come first, and those that do not fit are counted."""
    scene.configured()
    for number in range(MAX_FINDINGS + 1):
        scene.subscription(f"t{number}", ack_holes=20_000 + number)
    judgement = scene.judged(check.CHECK)
    assert judgement.more == 1
    listed = [finding.figures["ack_holes"] for finding in judgement.findings]
    assert listed == list(range(20_000 + MAX_FINDINGS, 20_000, -1))  # without the fewest


@pytest.mark.parametrize(
    ("read", "limit", "lacking"), [(True, "10000", None), (True, None, LIMIT), (False, "10000", "No broker")]
)
def test_silence_means_health_only_where_the_limit_is_known(
    scene: Any, read: bool, limit: str | None, lacking: str | None, golden: Golden
) -> None:
    """The check cannot tell without a finding when the limit or the broker was not read."""
    scene.configured(**{LIMIT: limit}).subscription("t", ack_holes=40)
    scene.rows["brokers"] = [{"broker": "b:8080", "read": read, "topics": 1}]
    judgement = scene.judged(check.CHECK)
    golden(judgement.quiet)
    assert judgement.findings == ()
    assert judgement.cannot_tell is None if lacking is None else lacking in str(judgement.cannot_tell)
