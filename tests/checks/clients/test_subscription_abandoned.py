"""Subscriptions that nobody is connected to any more."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.clients.subscription_abandoned import CHECK
from pulsar_steward.model.finding import Severity
from pulsar_steward.policy.schema import Policy
from tests.checks.conftest import judge_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import Judgement
    from tests.golden import Golden

NOW = datetime(2026, 1, 20, 12, tzinfo=UTC)
GROWING = (1000, 2000, 3000, 4000, 5000, 6000)
TOLD = Severity.INFO


def look(hours_ago: float, backlog: int, **changes: Any) -> dict[str, list[dict[str, Any]]]:
    """A subscription of one topic, without consumers if nothing else is said."""
    topic, name = changes.pop("topic", "persistent://t/n/a"), changes.pop("subscription", "s")
    ttl, moved, cursor = changes.pop("ttl", 0), changes.pop("moved", None), changes.pop("cursor", None)
    traffic = changes.pop("traffic", {})
    policies = {} if ttl is None else {"message_ttl_in_seconds": ttl}
    taken_at = NOW - timedelta(hours=hours_ago)
    own = {"topic": topic, "subscription": name}
    row = own | {"consumers": 0, "backlog_entries": backlog, "expired_rate": 0.0}
    return {
        "snapshot": [{"cluster": "lab", "taken_at": taken_at, "unread_brokers": [], "unread_namespaces": []}],
        "brokers": [{"broker": "b:8080", "read": True}],
        "namespaces": [{"namespace": "t/n", "policies_json": json.dumps(policies)}],
        "topics": [{"topic": topic, "broker": "b:8080", "subscriptions": 3, "backlog_bytes": 5 << 30} | traffic],
        "subscriptions": [row | changes],
        "drilled": [own | {"last_consumed_milliseconds": moved, "last_acked_milliseconds": 0, "cursor_json": cursor}]
        if moved is not None or cursor is not None
        else [],
    }


def a_cursor(created: int, position: str = "1:-1", written: str = "-1:-1") -> str:
    """Identity of a cursor that was made on some day of January, as snapshots have it."""
    at = datetime(2026, 1, created, tzinfo=UTC)
    return json.dumps({"created": at.isoformat(), "position": position, "written": written}, separators=(",", ":"))


def ago(hours: float) -> int:
    """Time so many hours before the snapshot, in milliseconds since the epoch."""
    return int((NOW - timedelta(hours=hours)).timestamp() * 1000)


def judged(backlogs: Sequence[int], hours: float = 0.5, **changes: Any) -> Judgement:
    """Judgement where the backlog was so, the newest last, so many hours apart."""
    looks = [look(number * hours, backlog, **changes) for number, backlog in enumerate(reversed(backlogs))]
    judgement: Judgement = judge_rows(CHECK, looks[0], None, looks[1:])
    return judgement


CASES: dict[str, tuple[tuple[int, ...], dict[str, Any], Severity | None]] = {
    "for-hours": (GROWING, {}, TOLD),
    "for-nine-days": (GROWING, {"hours": 43.2, "window": 13_000}, Severity.WARNING),
    "for-nine-days-and-expiry-unread": (GROWING, {"hours": 43.2, "window": 13_000, "ttl": None}, TOLD),
    "for-half-an-hour": (GROWING[-2:], {}, None),
    "seen-once": ((9000,), {}, None),
    "it-does-not-grow": ((9000,) * 6, {}, None),
    "it-shrank": ((5000, 6000, 7000, 6500), {}, None),
    "hardly-anything": ((1, 2, 3, 4, 999), {}, None),
    "somebody-is-there": (GROWING, {"consumers": 1}, None),
    "it-expires-by-the-namespace": (GROWING, {"ttl": 3600}, None),
    "it-expires-by-the-topic": (GROWING, {"expired_rate": 0.5}, None),
    "it-may-expire-by-the-topic": (GROWING, {"expired_rate": None}, None),
    "somebody-came-in-between": (GROWING, {"moved": ago(1)}, None),
    "nobody-came-since": (GROWING, {"moved": ago(30)}, TOLD),
    "never-consumed": (GROWING, {"moved": 0}, TOLD),
    "compaction": (GROWING, {"subscription": "__compaction"}, None),
    "a-reader": (GROWING, {"subscription": "reader-1a2b3c"}, None),
    "of-pulsar": (GROWING, {"topic": "persistent://pulsar/n/a"}, None),
    "of-a-namespace-itself": (GROWING, {"topic": "persistent://t/n/__change_events"}, None),
    "too-far-apart": (GROWING, {"hours": 27.0}, None),
}


@pytest.mark.parametrize(("backlogs", "changes", "severity"), CASES.values(), ids=CASES.keys())
def test_severity_follows_from_how_long_nobody_was_there(
    backlogs: tuple[int, ...], changes: dict[str, Any], severity: Severity | None
) -> None:
    """An unused subscription whose backlog only grew and does not expire is found, after nine days as a warning."""
    given = dict(changes)
    hours, window = given.pop("hours", 0.5), given.pop("window", 1560)
    looks = [look(number * hours, backlog, **given) for number, backlog in enumerate(reversed(backlogs))]
    policy = Policy.model_validate({"subscription_abandoned": {"window_minutes": window}})
    found = judge_rows(CHECK, looks[0], policy, looks[1:]).findings
    assert [each.severity for each in found] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("now", "found"),
    [
        (a_cursor(1), True),
        (a_cursor(1, written="7:1"), True),
        (None, True),
        (a_cursor(20), False),
        (a_cursor(1, position="1:7"), False),
    ],
    ids=["the same", "loaded anew", "not asked", "made anew", "reset"],
)
def test_one_that_was_made_anew_or_reset_is_not_yet_abandoned(now: str | None, *, found: bool) -> None:
    """The time without a consumer begins anew for a subscription that was deleted and made anew, or was reset."""
    looks = [look(number * 0.5, 6000 - 1000 * number, cursor=a_cursor(1)) for number in range(5)]
    assert bool(judge_rows(CHECK, look(0, 6000, cursor=now), None, looks[1:]).findings) == found


def going_on(backlogs: Sequence[int], hours: float, **last: Any) -> list[Judgement]:
    """Judgements one after the other, each with the last three snapshots and what was found of them."""
    past: list[dict[str, list[dict[str, Any]]]] = []
    said = []
    for number, backlog in enumerate(backlogs):
        changes = last if number == len(backlogs) - 1 else {}
        rows = look((len(backlogs) - 1 - number) * hours, backlog, **changes)
        said.append(judge_rows(CHECK, rows, None, past[:3]))
        found = [
            {"check_id": each.check_id, "subject": each.subject, "figures_json": json.dumps(each.figures)}
            for each in said[-1].findings
        ]
        past.insert(0, rows | {"findings": found})
    return said


def test_days_are_counted_from_what_was_found_before(golden: Golden) -> None:
    """The time without a consumer is counted on from earlier findings if no read snapshot shows its beginning."""
    said = going_on(range(1000, 20_000, 1000), 12)
    severities = [found.severity for judgement in said for found in judgement.findings]
    assert (severities.count(TOLD), severities.count(Severity.WARNING)) == (15, 3)
    golden("\n".join(found.evidence for judgement in (said[1], said[-1]) for found in judgement.findings))


def test_what_was_consumed_in_between_begins_anew() -> None:
    """A smaller backlog or a connected consumer ends an absence, and a later absence is counted anew."""
    said = going_on([*range(1000, 7000, 1000), 3000, 4000, 5000], 12)
    assert [len(each.findings) for each in said[-3:]] == [0, 1, 1]
    (last,) = said[-1].findings
    figures = last.figures
    assert (last.severity, figures["without_consumer_seconds"], figures["beginning_seen"]) == (TOLD, 86_400, 1)
    assert going_on(range(1000, 6000, 1000), 12, consumers=1)[-1].findings == ()


def test_where_nothing_is_found_it_says_what_was_looked_at(golden: Golden) -> None:
    """If nothing is found, the check says what it looked at, or that a first snapshot or no broker proves nothing."""
    assert judged((1,)).cannot_tell is None
    assert judged((9000,)).cannot_tell == "1 subscription has no consumer, and this is the first snapshot."
    golden(judged((9000, 9000)).quiet)
    unread = look(0, 1) | {"brokers": [{"broker": "b:8080", "read": False}]}
    assert judge_rows(CHECK, unread).cannot_tell == "No broker was read."


@pytest.mark.parametrize(
    ("moved_hours_ago", "ttl", "found"),
    [(193, 0, Severity.WARNING), (193, None, TOLD), (191, 0, None), (None, 0, None)],
    ids=["for days", "for days and expiry unread", "not for days", "its topic does not tell"],
)
def test_what_its_topic_tells_counts_at_the_first_look(
    golden: Golden, moved_hours_ago: float | None, ttl: int | None, found: Severity | None
) -> None:
    """Without an earlier snapshot the topic's own times are believed; for a deletion the days begin now."""
    moved = 0 if moved_hours_ago is None else ago(moved_hours_ago)
    findings = judged((9000,), moved=moved, ttl=ttl).findings
    assert [each.severity for each in findings] == [found] * bool(found)
    for each in findings:
        assert each.figures["without_consumer_seconds"] == 0
        golden(each.evidence)


@pytest.mark.parametrize(
    ("backlog", "change", "found"),
    [
        (9000, {}, Severity.WARNING),
        (7000, {}, None),
        (9000, {"producers": 1}, None),
        (9000, {"replication_json": None}, None),
        (9000, {"throughput_in_bytes": 600.0}, None),
        (9000, {"message_rate_in": 2000.0, "throughput_in_bytes": 200_000.0}, None),
    ],
    ids=["markers", "not for an hour yet", "somebody publishes", "not replicated", "larger entries", "too many"],
)
def test_markers_that_nobody_acknowledges_are_told_at_the_second_look(
    golden: Golden, backlog: int, change: dict[str, Any], found: Severity | None
) -> None:
    """Where nobody publishes, small entries of a replicated topic are markers, and fill it as long as it has them."""
    markers = {"producers": 0, "message_rate_in": 2.0, "throughput_in_bytes": 218.0, "replication_json": "[]"}
    findings = judged((backlog - 1200, backlog), hours=1 / 6, traffic=markers | change).findings
    assert [each.severity for each in findings] == [found] * bool(found)
    for each in findings:
        golden(each.evidence)
