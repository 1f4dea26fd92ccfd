"""Since when subscriptions stand still, where nobody asked their topics; who holds messages; and unserved ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.clients import subscription_stalled as check
from pulsar_steward.checks.clients.subscription_stalled import CHECK
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import DELAYED_SERIES
from pulsar_steward.policy.schema import Policy
from tests.checks.clients.conftest import Scene, by_name, found_over_time
from tests.checks.conftest import judge_rows, told

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.golden import Golden

STILL: dict[str, Any] = {"message_rate_out": 0.0, "ack_rate": 0.0, "consumers_without_permits": 3}
UNACKED: dict[str, Any] = {"ack_rate": 0.0}
AGAIN = UNACKED | {"redeliver_rate": 3.0}
ROUND: dict[str, Any] = {"message_rate_out": 500.0, "ack_rate": 0.4, "redeliver_rate": 498.0}
BATCHES = STILL | {"backlog_entries": 9, "messages_per_entry": 847, "unacked_messages": 4166, "consumers_stuck": 3}
FEW = BATCHES | {"messages_per_entry": 1, "unacked_messages": 9}
FEW_LEFT = {"backlog_entries": 320, "unacked_messages": 310}
SLOWLY = ROUND | {"redeliver_rate": 0.05, "ack_rate": 0.0004}
NEW = UNACKED | {"consumers_connected_recently": 3}
NOBODY = STILL | {"consumers": 0}
BUSY: dict[str, Any] = {}
MINUTES = 15
ALWAYS = datetime(2026, 1, 1, tzinfo=UTC)


def scenes(likes: Sequence[dict[str, Any] | None]) -> list[Any]:
    made = []
    for number, like in enumerate(likes):
        scene = Scene((len(likes) - 1 - number) * MINUTES).measured({"pulsar_subscription_delayed": 0.0})
        made.append(scene.partial() if like is None else scene.subscription("t", **like))
    return made


def backlog(entries: int) -> dict[str, int]:
    return {"backlog_entries": entries}


STANDING: dict[str, tuple[list[dict[str, Any]], Severity | None]] = {
    "it moved a quarter of an hour ago": ([BUSY, STILL], Severity.INFO),
    "and few entries may just be a pause": ([BUSY, BATCHES], None),
    "for a quarter of an hour": ([BUSY, STILL, STILL], Severity.WARNING),
    "batches for a quarter of an hour": ([BUSY, BATCHES, BATCHES], Severity.WARNING),
    "for an hour": ([STILL] * 5, Severity.CRITICAL),
    "with batches that expire": (
        [BATCHES | backlog(20) | {"expired_rate": 1.0}, BATCHES | {"expired_rate": 1.0}],
        Severity.WARNING,
    ),
    "with batches that may expire": (
        [BATCHES | backlog(20) | {"expired_rate": None}, BATCHES | {"expired_rate": None}],
        Severity.WARNING,
    ),
    "but it consumed in between": ([STILL | backlog(60_000), STILL], Severity.INFO),
    "nobody was there before": ([NOBODY, STILL], Severity.INFO),
    "few for three quarters of an hour": ([FEW] * 4, None),
    "few for an hour": ([FEW] * 5, Severity.WARNING),
    "few, but the backlog came and went": ([FEW, FEW | backlog(40), FEW, FEW | backlog(40), FEW], None),
    "not acknowledged for a while": ([UNACKED] * 4, Severity.INFO),
    "not acknowledged for an hour": ([UNACKED] * 5, Severity.WARNING),
    "not acknowledged, as at checkpoints": ([UNACKED, UNACKED, BUSY, UNACKED, UNACKED], Severity.INFO),
    "delivered again": ([BUSY, AGAIN, AGAIN], Severity.WARNING),
    "delivered again once": ([BUSY, AGAIN | backlog(9)], None),
    "the same go round": ([BUSY, ROUND, ROUND], Severity.WARNING),
    "a few go round each second": ([BUSY, ROUND | FEW_LEFT, ROUND | FEW_LEFT], Severity.WARNING),
    "a few go round each hour": ([BUSY, SLOWLY | FEW_LEFT, SLOWLY | FEW_LEFT], Severity.INFO),
    "the same go round at the first look": ([ROUND], Severity.INFO),
    "as many are acknowledged as are new": ([ROUND, ROUND | {"ack_rate": 5.0}], None),
    "a restart delivered some again": ([BUSY, ROUND | {"ack_rate": 25.0}, ROUND | {"ack_rate": 300.0}], None),
    "a few delivered again for an hour": ([AGAIN | backlog(9)] * 5, Severity.WARNING),
}


def test_snapshots_tell_since_when() -> None:
    """A standstill counts from the earliest snapshot since which all show the same and nothing was consumed."""
    histories = {name: likes for name, (likes, _) in STANDING.items()}
    assert found_over_time(check.CHECK, histories) == {name: each for name, (_, each) in STANDING.items() if each}


def test_what_it_says(golden: Golden) -> None:
    """In how many snapshots, and since when; what a topic tells of itself counts more, and a tenant may wait longer."""
    longer = {"subscription_stalled": {"warning_minutes": 90, "critical_minutes": 120}}
    patient = Policy.model_validate({"tenants": {"t": longer}})
    asked = scenes([BATCHES] * 5)
    taken_at = asked[-1].rows["snapshot"][0]["taken_at"].timestamp()
    asked[-1].drilled("t", last_consumed_milliseconds=int(taken_at - 300) * 1000)
    cases: dict[str, tuple[list[Any], Policy | None]] = {
        "a snapshot that did not see it": (scenes([BUSY, STILL, None, STILL]), None),
        "its topic tells of work five minutes ago": (asked, None),
        "it stands still in three": (scenes([BUSY, BATCHES, BATCHES, BATCHES]), None),
        "its consumers come and go": (scenes([NEW] * 4), None),
        "the same again and again": (scenes([ROUND] * 3), None),
        "a tenant that may wait longer": (scenes([STILL] * 5), patient),
    }
    golden(told({rule: made[-1].judged(check.CHECK, own, made[-2::-1]) for rule, (made, own) in cases.items()}))


COMING: dict[str, tuple[list[dict[str, Any]], Severity | None]] = {
    "a start": ([BUSY, NEW], Severity.INFO),
    "a second one": ([BUSY, NEW, NEW], Severity.INFO),
    "again and again": ([BUSY, NEW, NEW, NEW], Severity.WARNING),
    "and at times nobody is there": ([NEW, NOBODY, NEW, NOBODY, NEW], Severity.CRITICAL),
    "for an hour": ([NEW] * 5, Severity.CRITICAL),
    "after nobody was there for hours": ([NOBODY, NOBODY, NOBODY, NOBODY, NOBODY, NEW], Severity.INFO),
    "but some is consumed each time": ([NEW | backlog(70_000), NEW | backlog(60_000), NEW], Severity.INFO),
    "but some is acknowledged": ([NEW, NEW, NEW, NEW | {"ack_rate": 0.5}], None),
    "and some are older": ([NEW, NEW, NEW, NEW | {"consumers_connected_recently": 2}], Severity.INFO),
    "one message that ends its consumer": ([NEW | backlog(1) | {"unacked_messages": 0}] * 5, Severity.WARNING),
    "one message, for half an hour": ([NEW | backlog(1) | {"unacked_messages": 0}] * 3, None),
}


def test_consumers_that_come_and_go_are_no_start() -> None:
    """Consumers that are new in three snapshots, without any acknowledgement, count as a standstill."""
    histories = {name: likes for name, (likes, _) in COMING.items()}
    assert found_over_time(check.CHECK, histories) == {name: each for name, (_, each) in COMING.items() if each}


REPLACED: dict[str, tuple[dict[str, Any], int, Severity | None]] = {
    "other ones each time": (UNACKED, 14, Severity.CRITICAL),
    "the same one": (UNACKED, 100, Severity.WARNING),
    "other ones that acknowledge": (UNACKED | {"ack_rate": 3.0}, 14, None),
}


def test_consumers_that_live_longer_than_what_is_recent_come_and_go_too() -> None:
    """The times of connection show that named consumers were replaced each time, which makes a standstill critical."""
    snapshots = [Scene(number * MINUTES).measured({"pulsar_subscription_delayed": 0.0}) for number in range(5)]
    for name, (like, lives, _) in REPLACED.items():
        for scene in snapshots:
            taken_at = scene.rows["snapshot"][0]["taken_at"]
            since = taken_at - timedelta(minutes=(taken_at.hour * 60 + taken_at.minute) % 15 + lives)
            scene.subscription(name, consumers=1, **like)
            scene.consumer(name, "c", connected_since=(ALWAYS if lives > MINUTES else since).isoformat())
    newest, *earlier = snapshots
    found = by_name(newest.judged(check.CHECK, earlier=earlier))
    assert found == {name: severity for name, (*_, severity) in REPLACED.items() if severity}


@pytest.mark.parametrize(("rate_in", "severity"), [(0.0, Severity.CRITICAL), (1.0, Severity.INFO)])
def test_a_job_that_runs_whenever_a_snapshot_is_taken_consumes(rate_in: float, severity: Severity) -> None:
    """A steady backlog counts as consumed when messages are published, and as a standstill when none are."""
    newest, *earlier = [Scene(number * MINUTES).measured({"pulsar_subscription_delayed": 0.0}) for number in range(5)]
    for scene in (newest, *earlier):
        scene.topic("t", message_rate_in=rate_in).subscription("t", **NEW, messages_per_entry=1)
        scene.rows["topics"].pop()
    (finding,) = newest.judged(check.CHECK, earlier=earlier).findings
    assert finding.severity is severity


MOMENTS_BEFORE = 0.5
"""Minutes: the brokers report the same minute as in the snapshot itself."""


@pytest.mark.parametrize("like", [STILL, NEW], ids=["stands still", "consumers come and go"])
def test_a_snapshot_taken_moments_before_hides_no_standstill(like: dict[str, Any]) -> None:
    """A backlog or consumers that are the same in a snapshot of the same minute do not end a standstill."""
    times = (0, MOMENTS_BEFORE, 15, 30, 45, 60)
    newest, *earlier = [Scene(each).measured({"pulsar_subscription_delayed": 0.0}) for each in times]
    for scene, minutes in zip((newest, *earlier), times, strict=True):
        # A message is an entry, and 60,000 are published a minute, of which none is consumed.
        waiting = backlog(6_000_000 - 60_000 * int(minutes))
        scene.topic("t", message_rate_in=1000.0).subscription("t", **like | waiting, messages_per_entry=1)
        scene.rows["topics"].pop()
        connected = scene.rows["snapshot"][0]["taken_at"] - timedelta(minutes=1 + (minutes == 0) * MOMENTS_BEFORE)
        scene.consumer("t", "c", connected_since=connected.isoformat())
    (finding,) = newest.judged(check.CHECK, earlier=earlier).findings
    assert (finding.severity, finding.figures["since_seconds"]) == (Severity.CRITICAL, 3600)


NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
HELD_FEW: dict[str, Any] = {"consumers": 5, "backlog_entries": 24, "unacked_messages": 24}
HELD_FEW |= {"message_rate_out": 0.0, "ack_rate": 0.0, "consumers_without_permits": 0}


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
    scene.subscription("t", **HELD_FEW | changes).drilled("t", holders_json=json.dumps(holders))
    assert by_name(scene.judged(check.CHECK)) == ({"t": Severity.WARNING} if found else {})


@pytest.mark.parametrize(("broker", "found"), [("b:8080", True), ("before:8080", False)])
def test_delayed_messages_wait_for_nobody(scene: Any, broker: str, *, found: bool) -> None:
    """What is delayed, as the topic's owner tells, is not among what waits."""
    scene.measured({"pulsar_subscription_delayed": 0.0}).subscription("t", **HELD_FEW | {"backlog_entries": 500})
    scene.measured({DELAYED_SERIES: 476}, source=broker, topic="persistent://t/n/t", subscription="s")
    scene.drilled("t", holders_json=json.dumps([holder()]))
    assert (by_name(scene.judged(check.CHECK)) == {"t": Severity.WARNING}) is found


def test_who_holds_messages_is_said_with_a_standstill(scene: Any) -> None:
    """A worse finding about the whole subscription names its holders too, in one finding."""
    scene.measured({"pulsar_subscription_delayed": 0.0})
    scene.subscription("t", **HELD_FEW | {"type": "Key_Shared", "backlog_entries": 5_000_000})
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


TOPIC = "persistent://t/n/a"
UNSERVED_STILL = {"consumers": 1, "message_rate_out": 0.0, "ack_rate": 0.0, "unacked_messages": 0}


def snapshot(subscriptions: Sequence[dict[str, Any]], minutes_ago: float = 0, **topic: Any) -> dict[str, Any]:
    taken_at = NOW - timedelta(minutes=minutes_ago)
    traffic = {"message_rate_in": 0.0, "subscriptions": len(subscriptions)}
    return {
        "snapshot": [{"cluster": "lab", "taken_at": taken_at, "unread_brokers": [], "unread_namespaces": []}],
        "brokers": [{"broker": "b:8080", "read": True}],
        "namespaces": [{"namespace": "t/n", "policies_json": "{}"}],
        "topics": [{"topic": TOPIC, "broker": "b:8080"} | traffic | topic],
        "subscriptions": [{"topic": TOPIC} | UNSERVED_STILL | each for each in subscriptions],
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
