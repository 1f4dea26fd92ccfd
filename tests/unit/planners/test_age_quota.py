"""Age quotas: from which sum, below which retention, and where none is proposed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.facts.backlogs import Backlog, BacklogAges, backlog_of
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.model.subscription import Holder
from pulsar_steward.planners.settings.facts import backlog_ages, largest_backlogs
from pulsar_steward.snapshots.read import Snapshot, open_snapshot
from tests.builders import a_policy
from tests.cases import cases
from tests.unit.planners.proposals import changes, only_step, refusal
from tests.unit.planners.test_settings import DAY, FOR_EVER, GIB, NAMESPACE, RETENTION, SIZE, TTL, proposed
from tests.unit.report_checkup.snapshots import Rows, written

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.planners.base import Proposal
    from tests.golden import Golden

HOUR = 3600
TOPIC = f"persistent://{NAMESPACE}/t"


def kept(days: int, megabytes: int = -1) -> dict[SettingName, Setting]:
    """A namespace that retains for so many days."""
    return {SettingName.RETENTION: Retention(minutes=days * DAY, megabytes=megabytes)}


def by_age(hours: int, policy: QuotaPolicy = QuotaPolicy.HOLD) -> BacklogQuota:
    return BacklogQuota(limit_seconds=hours * HOUR, policy=policy)


def ages(hours: int, **more: Any) -> BacklogAges:
    """A backlog so old, as far as it is known."""
    return msgspec.structs.replace(BacklogAges(oldest_seconds=hours * HOUR, topic=TOPIC, waiting=1), **more)


@cases(
    "days, remedy, hours",
    ("the share", 4, {}, 72),
    ("both alike", 2, {}, 36),
    ("the outage", 10, {"survive_outage_hours": 120}, 180),
    ("the outage at the margin", 10, {"survive_outage_hours": 144}, 216),
    ("the margin", 10, {"age_share_percent": 90, "retention_margin_percent": 20}, 192),
    ("evicting", 4, {"policy": "consumer_backlog_eviction"}, 72),
)
def test_a_missing_age_quota(days: int, remedy: dict[str, Any], hours: int) -> None:
    """An age quota is a share of the retention time, covers an outage, and stays below the retention by a margin."""
    proposal = proposed(kept(days), "backlog-quota-missing", policy=a_policy(backlog_quota_remedy=remedy))
    policy = QuotaPolicy(remedy.get("policy", QuotaPolicy.HOLD))

    assert [name for name, _ in changes(proposal)] == [SettingName.SIZE_QUOTA, SettingName.AGE_QUOTA]
    assert changes(proposal)[1][1] == by_age(hours, policy)
    assert [len(batch.steps) for batch in proposal.batches] == [1, 1]  # one guard's veto is not to stop the other
    assert not proposal.notes


def test_the_sum_and_what_it_would_have_done_are_said(golden: Golden) -> None:
    """A step for an age quota states how the quota was computed, its effect, and the backlogs of unknown age."""
    unknown = ages(2, estimated=True, waiting=5, unknown=2, why_unknown="nobody tells")
    (_, batch) = proposed(kept(4), "backlog-quota-missing", ages=unknown).batches
    (step,) = batch.steps
    for text in (step.why, step.effect, {each.guard: each.reason for each in step.guards}["age_room"]):
        golden(text)
    assert (batch.kind, batch.title) == (
        "backlog_quota",
        "shop/orders: age quota to 3 d; when exceeded, hold producers",
    )


@cases(
    "own, known, words",
    ("nothing is retained", {}, {}, "has no limit in time that"),
    ("no time", kept(0, 100), {}, "has no limit in time"),
    ("unbounded", FOR_EVER, {}, "has no limit in time"),
    ("no room", kept(1), {}, "the retention of 1 d less 10 %"),
    ("expires first", kept(4) | {TTL: TimeToLive(seconds=72 * HOUR)}, {}, "messages expire after 3 d"),
    ("too old", kept(4), {"ages": ages(65)}, f"a backlog of {TOPIC} is 65 h old"),
    ("estimated too old", kept(4), {"ages": ages(65, estimated=True)}, "to be 65 h"),
    ("clocks", kept(4), {"clocks_differ_milliseconds": 9_000}, "is proposed: clocks: "),
    ("delayed messages", kept(4), {"delayed_messages": 3}, "is proposed: delayed_kept: "),
)
def test_why_no_age_quota_is_proposed(own: dict[SettingName, Setting], known: dict[str, Any], words: str) -> None:
    proposal = proposed(own, "backlog-quota-missing", **known)
    assert {SIZE} <= set(dict(changes(proposal))) <= {SIZE, RETENTION}
    assert f"{NAMESPACE}: no age quota" in " ".join(proposal.notes)
    assert words in " ".join(proposal.notes)


def test_an_age_quota_is_below_a_retention_that_is_yet_to_be_bounded() -> None:
    proposal = proposed(FOR_EVER, "retention-unbounded", "backlog-quota-missing")
    assert [len(batch.steps) for batch in proposal.batches] == [2, 1]
    assert [name for name, _ in changes(proposal)] == [SIZE, RETENTION, SettingName.AGE_QUOTA]
    assert changes(proposal)[2][1] == by_age(54)


def a_snapshot(folder: Path, *rows: tuple[str, int | None, float | None], **tables: Rows) -> Snapshot:
    """One with loaded topics: name, backlog and bytes per second that come in."""
    topics = [
        {"topic": name, "namespace": NAMESPACE, "backlog_bytes": backlog, "throughput_in_bytes": rate}
        for name, backlog, rate in rows
    ]
    return open_snapshot(written(folder / "snapshot", topics=topics, **tables))


@cases(
    "rows, drilled, expected",
    ("no backlog", [("a", 0, 0.0)], {}, (0, None, False, 0, 0)),
    ("estimated", [("a", 0, 0.0), ("b", 100, 10.0)], {}, (10, "b", True, 1, 0)),
    ("the longest", [("a", 101, 10.0), ("b", 100, 10.0)], {}, (11, "a", True, 2, 0)),
    ("told", [("a", 100, 10.0)], {"a": 50}, (50, "a", False, 1, 0)),
    ("told, not estimated", [("a", 100, 10.0)], {"a": 5}, (5, "a", False, 1, 0)),
    ("unknown", [("a", 100, 0.0), ("b", 100, None), ("c", None, 1.0)], {"elsewhere": 9}, (0, None, False, 3, 3)),
    ("beyond all measure", [("a", 1 << 52, 1e-9)], {}, (1 << 40, "a", True, 1, 0)),
)
def test_how_old_backlogs_are(
    rows: list[tuple[str, int | None, float | None]],
    drilled: dict[str, int],
    expected: tuple[int, str | None, bool, int, int],
    tmp_path: Path,
) -> None:
    """The age of a backlog is what brokers told, else an estimate from its size and incoming rate, else unknown."""
    told = [{"topic": name, "oldest_backlog_age_seconds": seconds} for name, seconds in drilled.items()]
    found = backlog_ages(a_snapshot(tmp_path, *rows, drilled=told), [NAMESPACE]).get(NAMESPACE, BacklogAges())

    assert (found.oldest_seconds, found.topic, found.estimated, found.waiting, found.unknown) == expected
    assert bool(found.why_unknown) == bool(found.unknown)


def test_the_largest_backlogs_are_given_with_whoever_holds_them(tmp_path: Path) -> None:
    west = '[{"cluster":"west","connected":false,"backlog_entries":9,"message_rate_out":0.0,"expired_rate":0.0}]'
    sizes = {"b": 5, "a": 5, "c": 9, "d": 0, "e": None}
    topics = [
        {"topic": name, "namespace": NAMESPACE, "backlog_bytes": size}
        | ({"replication_json": west} if size == 9 else {})
        for name, size in sizes.items()
    ]
    waiting = [
        {"topic": topic, "namespace": NAMESPACE, "subscription": subscription, "backlog_entries": entries}
        for topic, subscription, entries in (("c", "s", 7), ("a", "s", 1), ("c", "r", 3), ("z", "s", 9))
    ]
    snapshot = open_snapshot(written(tmp_path / "snapshot", topics=topics, subscriptions=waiting))

    assert largest_backlogs(snapshot, [NAMESPACE])[NAMESPACE][:3] == [
        backlog_of("c", 9, {"r": 3, "s": 7}, {"west": 9}),
        backlog_of("a", 5, {"s": 1}, {}),
        Backlog(topic="b", bytes=5, holders=(Holder(name="pulsar.dedup", entries=None),)),
    ]


def evicting(most_megabytes: int, *backlogs: Backlog) -> Proposal:
    """Proposal of a quota with eviction that the policy lets evict so much, where the peak is 10 GiB."""
    remedy = {"policy": "consumer_backlog_eviction", "eviction_most_megabytes": most_megabytes}
    policy = a_policy(backlog_quota_remedy=remedy)
    return proposed({}, "backlog-quota-missing", backlog=10 * GIB, backlogs=backlogs, policy=policy)


@cases(
    "most, limit, lost",
    ("none", 0, 15 * GIB, 0),
    ("less than there is", 4096, 4 * GIB, 10 * GIB),
    ("more than is needed", 20_480, 15 * GIB, 0),
)
def test_a_quota_evicts_at_once_only_where_the_policy_says_so(most: int, limit: int, lost: int) -> None:
    step = only_step(evicting(most, backlog_of(TOPIC, 10 * GIB, {"s": 1_000_000}, {})))
    assert isinstance(step.change, ChangeSetting)
    assert step.change.after == BacklogQuota(limit_bytes=limit, policy=QuotaPolicy.EVICT)
    assert step.change.loses_messages
    assert (step.loss.bytes if not isinstance(step.loss, msgspec.UnsetType) else 0) == lost


def test_an_eviction_of_what_was_never_replicated_is_not_proposed() -> None:
    words = f"own_cursors: 1,000 entries of {TOPIC} that were never replicated to west"
    assert words in refusal(evicting(4096, backlog_of(TOPIC, 10 * GIB, {"s": 10}, {"west": 1000})))


def test_an_eviction_of_more_topics_than_were_looked_at_is_not_proposed(golden: Golden) -> None:
    """An eviction is not proposed when it may affect more topics than were looked at, as its loss is not known."""
    golden(refusal(evicting(4096, *(backlog_of(f"t{number}", 10 * GIB, {"s": 1}, {}) for number in range(1000)))))
