"""Some consumers of a subscription that are stuck, while the others work."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.clients import subscription_stalled as check
from pulsar_steward.model.finding import Severity
from tests.checks.clients.conftest import Scene

if TYPE_CHECKING:
    from tests.golden import Golden

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
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


def test_consumers_that_commit_together_hold_nothing_back() -> None:
    """A consumer is not found as stuck if the entries since the first gap became fewer between snapshots."""
    spans = (4000, 5000, 3000, 6000, 2000)
    scene, *earlier = [crowd(Scene(number * MINUTES), entries=span) for number, span in enumerate(spans)]
    assert not scene.judged(check.CHECK, earlier=earlier).findings


def test_a_standby_consumer_is_no_stuck_one(scene: Any) -> None:
    """A consumer of a Failover subscription is not found as stuck, as it may be a standby consumer."""
    assert not crowd(scene, kind="Failover").judged(check.CHECK).findings
