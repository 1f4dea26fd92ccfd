"""Partitions with thousands of consumers or producers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.check import MAX_FINDINGS
from pulsar_steward.checks.clients.client_numbers import CONSUMER_FANOUT, PRODUCER_FANOUT
from pulsar_steward.model.finding import Severity
from tests.checks.clients.conftest import by_name

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Check
    from tests.golden import Golden

CONSUMERS, PRODUCERS = CONSUMER_FANOUT, PRODUCER_FANOUT
BOTH = pytest.mark.parametrize(
    ("check", "clients", "warning"),
    [(CONSUMERS, "consumers", 2000), (PRODUCERS, "producers", 1000)],
    ids=["consumers", "producers"],
)


@BOTH
def test_severity_follows_from_their_number(scene: Any, check: Check, clients: str, warning: int) -> None:
    """Partitions are judged by their number of clients, the fullest first, and Pulsar's own are left out."""
    numbers = {"few": warning - 1, "many": warning, "nearly": 9999, "most": 10_000, "unknown": None}
    for name, number in numbers.items():
        scene.topic(name, **{clients: number})
    scene.topic("persistent://pulsar/system/functions", **{clients: 20_000})
    found = by_name(scene.judged(check))
    assert found == {"most": Severity.CRITICAL, "nearly": Severity.WARNING, "many": Severity.WARNING}
    assert list(found) == ["most", "nearly", "many"]


@BOTH
def test_the_worst_are_listed_and_the_others_counted(scene: Any, check: Check, clients: str, warning: int) -> None:
    """The fullest partitions come first, and findings that do not fit are counted."""
    for number in range(MAX_FINDINGS + 2):
        scene.topic(f"t{number}", **{clients: warning + number})
    judgement = scene.judged(check)
    assert judgement.more == 2
    listed = [finding.figures[clients] for finding in judgement.findings]
    assert listed == list(range(warning + MAX_FINDINGS + 1, warning + 1, -1))  # without the two emptiest


@BOTH
def test_silence_tells_the_highest_number(scene: Any, check: Check, clients: str, warning: int, golden: Golden) -> None:
    """Without findings the check names the highest number of clients, and it cannot tell if no broker was read."""
    scene.topic("t", **{clients: warning - 1})
    golden(scene.judged(check).quiet)
    scene.rows["brokers"] = []
    assert scene.judged(check).cannot_tell == "No broker was read."


def test_the_evidence_names_the_largest_subscription(scene: Any, golden: Golden) -> None:
    """The evidence names the largest subscription, its consumers and ack holes, and how many clients a move affects."""
    scene.topic("t", consumers=8100, producers=120, subscriptions=2)
    for subscription, consumers in (("small", 100), ("large", 8000)):
        scene.add(
            "subscriptions",
            topic="persistent://t/n/t",
            subscription=subscription,
            type="Shared",
            consumers=consumers,
            ack_holes=77,
        )
    (finding,) = scene.judged(CONSUMERS).findings
    golden(finding.evidence)
    assert finding.figures == {"consumers": 8100, "largest_subscription_consumers": 8000, "producers": 120}


@pytest.mark.parametrize(("recent", "said"), [(40, "1,200 producers, 40 of which"), (None, "1,200 producers.")])
def test_the_evidence_tells_how_many_producers_are_new(scene: Any, recent: int | None, said: str) -> None:
    """The evidence says how many producers connected recently, if that was read."""
    scene.topic("t", producers=1200, producers_connected_recently=recent)
    (finding,) = scene.judged(PRODUCERS).findings
    assert said in finding.evidence
    assert finding.figures.get("producers_connected_recently") == recent
