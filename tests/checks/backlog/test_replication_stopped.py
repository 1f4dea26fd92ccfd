"""Replication to another cluster that stands still or falls behind."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.backlog.replication_stopped import CHECK
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.checks.conftest import as_text, judge_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import Judgement
    from tests.golden import Golden

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
OFF: dict[str, Any] = {"connected": False, "message_rate_out": 0.0}
SILENT: dict[str, Any] = {"message_rate_out": 0.0}
HIGH = (60_000, 90_000, 120_000, 150_000, 180_000)


def snapshot(minutes_ago: float, topics: dict[str, dict[str, Any]], **more: Any) -> dict[str, list[dict[str, Any]]]:
    """Topics of the namespace t/n, each on a broker of its own, that are replicated to the cluster west."""
    taken_at = NOW - timedelta(minutes=minutes_ago)
    rows: dict[str, list[dict[str, Any]]] = {
        "snapshot": [{"cluster": "lab", "taken_at": taken_at, "unread_brokers": [], "unread_namespaces": []} | more],
        "brokers": [{"broker": f"{name}:8080", "read": True} for name in topics],
        "topics": [],
        "subscriptions": [],
    }
    for name, each in topics.items():
        west = {"cluster": "west", "connected": True, "backlog_entries": 0, "message_rate_out": 9.0}
        west["expired_rate"] = 0.0
        own = {key: each.pop(key) for key in ("message_rate_in", "messages_per_entry") if key in each}
        topic = f"persistent://t/n/{name}"
        told = json.dumps([west | each]) if each.pop("replicated", True) else None
        rate = own.get("message_rate_in", 9.0)
        rows["topics"].append(
            {"topic": topic, "broker": f"{name}:8080", "replication_json": told, "message_rate_in": rate}
        )
        size = own.get("messages_per_entry")
        rows["subscriptions"].append({"topic": topic, "subscription": "s", "messages_per_entry": size})
    return rows


def judged(backlogs: Sequence[int], minutes: int = 15, **changes: Any) -> Judgement:
    """Judgement of one topic whose backlog was so, the newest last, so many minutes apart."""
    looks = [
        snapshot(number * minutes, {"a": {"backlog_entries": backlog} | changes})
        for number, backlog in enumerate(reversed(backlogs))
    ]
    judgement: Judgement = judge_rows(CHECK, looks[0], None, looks[1:])
    return judgement


STILL, WORSE, TOLD = Severity.WARNING, Severity.CRITICAL, Severity.INFO
CASES: dict[str, tuple[tuple[int, ...], dict[str, Any], Severity | None]] = {
    "a-short-backlog-while-connected": ((40, 25, 60, 35), {}, None),
    "rests-disconnected-with-nothing-to-send": ((0, 0, 0, 0), OFF, None),
    "disconnected-for-the-first-time": ((7,), OFF, TOLD),
    "disconnected-twice": ((7, 9000), OFF, STILL),
    "one-message-is-enough": ((1, 1), OFF, STILL),
    "disconnected-for-an-hour": ((1, 2, 3, 4, 5), OFF, WORSE),
    "less-waits-than-before": ((900, 800), OFF, TOLD),
    "less-waits-as-it-expires": ((900, 800), OFF | {"expired_rate": 3.0}, STILL),
    "silent-for-the-first-time": ((9000,), SILENT, None),
    "silent-twice": ((9000, 18_000), SILENT, None),
    "silent-in-three": ((9000, 18_000, 27_000), SILENT, STILL),
    "silent-for-an-hour": ((9000, 18_000, 27_000, 36_000, 45_000), SILENT, WORSE),
    "silent-with-a-few": ((90, 95, 99), SILENT, None),
    "silent-and-nobody-publishes": ((500, 500, 500), SILENT | {"message_rate_in": 0.0}, STILL),
    "a-job-published-right-before-each-look": ((1000, 1000, 1000), SILENT | {"message_rate_in": 17.0}, None),
    "a-job-that-publishes-more-each-time": (
        (1000, 1010, 1020),
        SILENT | {"message_rate_in": 17.0, "messages_per_entry": 1},
        None,
    ),
    "gets-what-the-other-cluster-sends": ((300, 500, 700), SILENT | {"message_rate_in": 10_000.0}, None),
    "silent-with-batches": ((900, 1000, 1100), SILENT | {"message_rate_in": 11.0, "messages_per_entry": 100}, STILL),
    "less-waits-as-it-may-expire": ((900, 800), OFF | {"expired_rate": None}, STILL),
    "what-is-sent-is-not-told": ((9000, 18_000, 27_000), {"message_rate_out": None}, None),
    "falls-behind": (HIGH, {}, STILL),
    "falls-behind-not-for-long": (HIGH[-3:], {}, None),
    "falls-behind-by-less-than-as-much-again": ((130_000, 140_000, 150_000, 160_000, 170_000), {}, None),
    "catches-up": (HIGH[::-1], {}, None),
    "to-and-fro": ((60_000, 90_000, 80_000, 150_000, 180_000), {}, None),
    "much-but-little-of-it-waits": ((6000, 9000, 12_000, 15_000, 18_000), {}, None),
}


@pytest.mark.parametrize(("backlogs", "changes", "severity"), CASES.values(), ids=CASES.keys())
def test_severity_follows_from_what_waits_and_for_how_long(
    backlogs: tuple[int, ...], changes: dict[str, Any], severity: Severity | None
) -> None:
    """Severity follows from how long replication is disconnected, silent or falling behind with a backlog."""
    found = judged(backlogs, **changes).findings
    assert [(each.severity, each.subject) for each in found] == ([(severity, "t/n to west")] if severity else [])


def test_topics_of_a_namespace_are_told_together(golden: Golden) -> None:
    """One finding covers the affected topics of a namespace, with their numbers, the start and the largest backlog."""

    def look(minutes_ago: int, waiting: int) -> dict[str, list[dict[str, Any]]]:
        off = OFF | {"backlog_entries": waiting}
        slow = {"backlog_entries": 100_000 + 10 * waiting}
        expiring = {"a": off | {"expired_rate": 2.0}, "b": dict(off), "c": {}, "d": slow, "e": {"replicated": False}}
        return snapshot(minutes_ago, expiring)

    earlier = [look(15 * number, 50_000 - 9_000 * number) for number in range(1, 5)]
    judgement = judge_rows(CHECK, look(0, 50_000), None, earlier)
    golden("\n".join(each.evidence for each in (*judgement.findings, *judged((7,), **OFF).findings)))
    golden(as_text(judgement.findings[0].figures))


def test_partial_snapshots_prove_nothing() -> None:
    """A partial snapshot in between does not end the time that replication has stood still."""
    off = OFF | {"backlog_entries": 9}
    looks = [snapshot(0, {"a": dict(off)}), snapshot(15, {}, unread_brokers=["a:8080"]), snapshot(30, {"a": dict(off)})]
    assert judge_rows(CHECK, looks[0], None, looks[1:]).findings[0].figures["since_seconds"] == 1800


def test_a_namespace_may_have_its_own_times() -> None:
    """Severity follows from the times of the namespace's own policy."""
    times = {"warning_minutes": 600, "critical_minutes": 900}
    own = Policy.model_validate({"namespaces": {"t/n": {"replication_stopped": times}}})
    looks = [snapshot(minutes, {"a": OFF | {"backlog_entries": 9}}) for minutes in (0, 15, 30)]
    assert [each.severity for each in judge_rows(CHECK, looks[0], own, looks[1:]).findings] == [Severity.INFO]


def test_where_nothing_is_found_it_says_what_was_looked_at() -> None:
    """Without findings the check says what it looked at, and it cannot tell if no broker was read."""
    assert judged((40, 30)).quiet == "Nothing stands still of what 1 topic sends to others."
    unknown = judged((9000,), message_rate_out=None)
    assert unknown.cannot_tell == "Whether anything is sent of 1 topic, brokers do not tell."
    none = judge_rows(CHECK, snapshot(0, {"a": {"replicated": False}}))
    assert (none.quiet, none.cannot_tell) == ("No topic is replicated to another cluster.", None)
    unread = snapshot(0, {}) | {"brokers": [{"broker": "a:8080", "read": False}]}
    assert judge_rows(CHECK, unread).cannot_tell == "No broker was read."


@pytest.mark.parametrize(
    ("backlogs", "changes", "severity"),
    [
        pytest.param(
            (900, 1000, 1100), SILENT | {"messages_per_entry": 100, "message_rate_in": 11.0}, STILL, id="silent"
        ),
        pytest.param(HIGH, {}, STILL, id="falls behind"),
    ],
)
@pytest.mark.parametrize("minutes", [0.5, 15.5])
def test_two_snapshots_of_one_minute_are_one(
    minutes: float, backlogs: tuple[int, ...], changes: dict[str, Any], severity: Severity
) -> None:
    """A snapshot with the same backlog as one taken moments after it does not hide what two others show."""
    times = [*(15.0 * number for number in range(len(backlogs))), minutes]
    looks = [snapshot(at, {"a": {"backlog_entries": backlogs[-1 - int(at // 15)]} | changes}) for at in sorted(times)]
    found = judge_rows(CHECK, looks[0], None, looks[1:]).findings
    assert [(each.severity, each.subject) for each in found] == [(severity, "t/n to west")]


@pytest.mark.parametrize(("rate", "found"), [(9.0, STILL), (0.0, None)], ids=["others flow", "nothing flows"])
def test_one_that_stands_still_beside_others_is_found_at_the_second_look(
    golden: Golden, rate: float, found: Severity | None
) -> None:
    """Where other topics are sent to the same cluster, no pause explains that one is not."""
    now, before = (
        snapshot(minutes, {"a": {"backlog_entries": entries} | SILENT, "b": {"message_rate_out": rate}})
        for minutes, entries in ((0, 140_000), (10, 71_000))
    )
    findings = judge_rows(CHECK, now, None, [before]).findings
    assert [each.severity for each in findings] == [found] * bool(found)
    for each in findings:
        golden(each.evidence)


@pytest.mark.parametrize(
    ("version", "clusters", "waiting", "found"),
    [
        ("3.0.5", ["east"], 60_000, STILL),
        ("3.0.6", ["east"], 60_000, None),
        ("3.3.0", ["east"], 100, STILL),
        ("3.0.5", ["east", "west"], 60_000, None),
        ("3.0.5", ["east"], 99, None),
        ("3.0.5-acme", None, 60_000, STILL),
        (None, ["east"], 60_000, None),
    ],
)
def test_what_this_version_drops_when_it_loads_a_topic_is_told_while_it_waits(
    golden: Golden, version: str | None, clusters: list[str] | None, waiting: int, found: Any
) -> None:
    """A topic that only a policy of its own replicates loses what was not sent yet (apache/pulsar#22890)."""
    rows = snapshot(0, {"a": {"backlog_entries": waiting}})
    policies = {} if clusters is None else {"replication_clusters": clusters}
    rows["namespaces"] = [{"namespace": "t/n", "policies_json": json.dumps(policies)}]
    rows["brokers"] = [each | {"pulsar_version": version} for each in rows["brokers"]]
    findings = judge_rows(CHECK, rows).findings
    assert [each.severity for each in findings] == [found] * bool(found)
    for each in findings:
        golden(each.evidence)
