"""Who would fill a proposed quota."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.facts.backlogs import backlog_of
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, TimeToLive
from pulsar_steward.planners.settings.filling import Filling, fillings
from pulsar_steward.snapshots.read import open_snapshot
from tests.unit.report_checkup.snapshots import a_finding, written

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden

T, U = "persistent://shop/orders/t", "persistent://shop/orders/u"
OLD, MOVED = f"{T} subscription old", 1_764_000_000_000
BACKLOGS = {
    "shop/orders": [
        backlog_of(T, 300, {"old": 56_000_000, "app": 10}, {}),
        backlog_of(U, 200, {"app": 20}, {"west": 90}),
        *(backlog_of(f"{T}{number}", 100 - number, {"app": 5}, {}) for number in range(9)),
    ]
}


def quota(action: QuotaPolicy = QuotaPolicy.HOLD) -> BacklogQuota:
    """A size quota."""
    return BacklogQuota(limit_bytes=1000, limit_seconds=-1, policy=action)


def test_who_holds_most_and_who_reads_nothing_is_read_from_a_snapshot(tmp_path: Path) -> None:
    """The largest three backlogs, their subscriptions without consumers, and warnings of what nobody reads there."""
    rows = [
        {"topic": T, "subscription": "old", "consumers": 0, "backlog_entries": 56_000_000},
        {"topic": T, "subscription": "app", "consumers": 3, "backlog_entries": 10},
        {"topic": U, "subscription": "app", "consumers": 0, "backlog_entries": 20},
    ]
    told = {"last_consumed_milliseconds": MOVED, "last_acked_milliseconds": MOVED - 1}
    found = [
        a_finding("warning", "subscription-abandoned", subject=OLD),
        a_finding("info", "subscription-abandoned", subject=f"{U} subscription app"),
        a_finding("warning", "subscription-abandoned", subject="persistent://shop/other/t subscription old"),
    ]
    tables = {"subscriptions": rows, "drilled": [{"topic": T, "subscription": "old", **told}], "findings": found}
    snapshot = open_snapshot(written(tmp_path / "snapshot", **tables))

    filling = fillings(snapshot, BACKLOGS, snapshot.findings())["shop/orders"]

    assert [each.topic for each in filling.backlogs] == [T, U, f"{T}0"]
    assert filling.unread == {OLD: MOVED, f"{U} subscription app": 0}
    assert filling.abandoned == (OLD,)


@pytest.mark.parametrize("action", QuotaPolicy)
def test_a_quota_says_that_nobody_reads_what_fills_it(action: QuotaPolicy, golden: Golden) -> None:
    """It names the subscription, since when nothing of it moved, and what the quota would do for it."""
    filling = Filling(backlogs=tuple(BACKLOGS["shop/orders"][:2]), unread={OLD: MOVED}, abandoned=(OLD,))

    words = filling.in_words(quota(action))

    assert f"old of {T} with 56,000,000 entries (most entries; who is furthest behind is not told)" in words
    assert "which has no consumer, and got and acknowledged nothing since" in words
    assert f"the replicator to west of {U} with 90 entries" in words
    golden(words)


def test_only_what_is_known_is_said() -> None:
    """Nothing without a backlog; no warning about what is read, or about a setting that no backlog fills."""
    read = Filling(backlogs=(BACKLOGS["shop/orders"][2],))
    assert Filling().in_words(quota()) == ""
    assert read.in_words(quota()) == f"; the largest backlogs wait for subscription app of {T}0 with 5 entries"
    assert "nobody" not in Filling(abandoned=(OLD,)).in_words(TimeToLive(seconds=9))


def test_who_is_furthest_behind_fills_a_quota_with_however_few_entries(tmp_path: Path) -> None:
    """A cursor with ack holes has few entries, and holds all since its oldest one: brokers tell who that is."""
    backlogs = {"shop/orders": [backlog_of(T, 300, {"app": 1000, "holes": 3}, {})]}
    told = [{"topic": T, "subscription": each, "slowest_subscription": "holes"} for each in ("app", "holes")]
    snapshot = open_snapshot(written(tmp_path / "snapshot", drilled=told))

    words = fillings(snapshot, backlogs, ())["shop/orders"].in_words(quota())

    assert words == f"; the largest backlogs wait for subscription holes of {T} with 3 entries"


def test_compaction_and_subscriptions_of_unknown_consumers_are_not_said_to_have_none(tmp_path: Path) -> None:
    """Nobody ever connects to the cursor of compaction, and a number that is not told is not 0."""
    backlogs = {"a": [backlog_of(T, 300, {"__compaction": 9}, {})], "b": [backlog_of(U, 300, {"app": 9}, {})]}
    rows: list[dict[str, Any]] = [
        {"topic": T, "subscription": "__compaction", "consumers": 0, "backlog_entries": 9},
        {"topic": U, "subscription": "app", "consumers": None, "backlog_entries": 9},
    ]
    snapshot = open_snapshot(written(tmp_path / "snapshot", subscriptions=rows))
    for each in fillings(snapshot, backlogs, ()).values():
        assert "has no consumer" not in each.in_words(quota())
