"""Consumers that hold nearly all that waits and do nothing, by their topic's own times."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.clients import subscription_stalled as check
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import DELAYED_SERIES
from tests.checks.clients.conftest import by_name

if TYPE_CHECKING:
    from tests.golden import Golden

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
FEW: dict[str, Any] = {"consumers": 5, "backlog_entries": 24, "unacked_messages": 24}
FEW |= {"message_rate_out": 0.0, "ack_rate": 0.0, "consumers_without_permits": 0}


def ago(minutes: int) -> int:
    """Time so long before the snapshot, in milliseconds since the epoch; of 0: never."""
    return minutes and int((NOW - timedelta(minutes=minutes)).timestamp() * 1000)


def holder(unacked: int = 24, name: str = "hung", acked: int = 40, consumed: int = 31, **more: Any) -> dict[str, Any]:
    """A consumer; `acked` and `consumed` are minutes before the snapshot, 0: never."""
    times = {"acked_milliseconds": ago(acked), "consumed_milliseconds": ago(consumed)}
    told = {"consumer": name, "address": "10.0.0.7:40001", "connected_since": "2026-01-01T00:00:00.123Z"}
    figures = {"unacked_messages": unacked, "messages_per_entry": 1, "draining_hashes": 0, "draining_messages": 0}
    return {**told, **figures, **times, **more}


CASES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], bool]] = {
    "one of five holds all": ({}, [holder()], True),
    "two of five hold all together": ({}, [holder(12, "one"), holder(12, "two")], True),
    "nearly all": ({"backlog_entries": 26}, [holder()], True),
    "others work": ({"message_rate_out": 9.0, "ack_rate": 9.0}, [holder()], True),
    "none acknowledged since it connected": ({}, [holder(acked=0, consumed=0)], True),
    "not nearly all": ({"backlog_entries": 27}, [holder()], False),
    "not nearly all of batches": ({}, [holder(messages_per_entry=2)], False),
    "all of batches": ({"backlog_entries": 3, "messages_per_entry": 1000}, [holder(messages_per_entry=8)], True),
    "acknowledged lately": ({}, [holder(acked=29)], False),
    "its queue was just filled": ({}, [holder(consumed=1)], False),
    "has just connected": ({}, [holder(acked=0, consumed=0, connected_since="2026-01-02T11:31:00Z")], False),
    "since when is not told": ({}, [holder(acked=0, consumed=0, connected_since="")], False),
    "each works on a few": ({}, [holder(8, "one"), holder(8, "two"), holder(8, "three")], False),
    "a message that takes long": ({"backlog_entries": 1, "unacked_messages": 1}, [holder(1)], False),
    "nothing else is there": ({"consumers": 1}, [holder()], False),
    "one gets all": ({"type": "Failover"}, [holder()], False),
    "is blocked": ({"consumers_blocked": 1}, [holder()], False),
}


@pytest.mark.parametrize("name", CASES)
def test_who_holds_nearly_all_and_does_nothing_is_found_at_the_first_look(scene: Any, name: str) -> None:
    """A warning by the topic's own times, without a snapshot before; nothing where work may go on."""
    changes, holders, found = CASES[name]
    scene.measured({"pulsar_subscription_delayed": 0.0})
    scene.subscription("t", **FEW | changes).drilled("t", holders_json=json.dumps(holders))
    assert by_name(scene.judged(check.CHECK)) == ({"t": Severity.WARNING} if found else {})


@pytest.mark.parametrize(("broker", "found"), [("b:8080", True), ("before:8080", False)])
def test_delayed_messages_wait_for_nobody(scene: Any, broker: str, *, found: bool) -> None:
    """What is delayed, as the topic's owner tells, is not among what waits."""
    scene.measured({"pulsar_subscription_delayed": 0.0}).subscription("t", **FEW | {"backlog_entries": 500})
    scene.measured({DELAYED_SERIES: 476}, source=broker, topic="persistent://t/n/t", subscription="s")
    scene.drilled("t", holders_json=json.dumps([holder()]))
    assert (by_name(scene.judged(check.CHECK)) == {"t": Severity.WARNING}) is found


def test_who_holds_messages_is_said_with_a_standstill(scene: Any) -> None:
    """A worse finding about the whole subscription names its holders too, in one finding."""
    scene.measured({"pulsar_subscription_delayed": 0.0})
    scene.subscription("t", **FEW | {"type": "Key_Shared", "backlog_entries": 5_000_000})
    scene.drilled("t", holders_json=json.dumps([holder(13, draining_hashes=2, draining_messages=5)]))
    judgement = scene.judged(check.CHECK)
    assert by_name(judgement) == {"t": Severity.CRITICAL}
    (finding,) = judgement.findings
    assert finding.evidence.startswith("Key_Shared subscription s of persistent://t/n/t on b:8080 has 5,000,000")
    assert "2 hashes of its keys now belong to other consumers" in finding.evidence


@pytest.mark.parametrize(
    ("told", "waiting"), [({"draining_hashes": 3, "draining_messages": 13}, 0), ({}, 2)], ids=["4.0", "before 4.0"]
)
def test_what_later_consumers_wait_for_is_named(scene: Any, told: dict[str, Any], waiting: int, golden: Golden) -> None:
    """Of a Key_Shared subscription, a consumer whose keys others wait for is named, however little it holds."""
    scene.measured({"pulsar_subscription_delayed": 0.0})
    scene.subscription("t", type="Key_Shared", consumers=4, backlog_entries=900)
    scene.drilled("t", holders_json=json.dumps([holder(13, consumed=45, **told)]), consumers_waiting=waiting)
    (finding,) = scene.judged(check.CHECK).findings
    assert finding.severity is Severity.WARNING
    golden(finding.evidence)
    assert "13 messages" in finding.evidence
    assert finding.figures == {"consumers": 4, "consumers_stuck": 1, "since_seconds": 2400, "unacked_messages": 13}
