"""Retentions that are shorter than asked for, and quotas of age: from finding to steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.facts.backlogs import Backlog, BacklogAges, backlog_of
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.model.subscription import Holder
from pulsar_steward.planners.settings.facts import TopicSettings, backlog_ages, largest_backlogs
from pulsar_steward.snapshots.read import Snapshot, open_snapshot
from tests.builders import a_policy, planning_facts_with
from tests.cases import cases
from tests.unit.planners.proposals import changes, only_step, refusal
from tests.unit.planners.test_settings import (
    DAY,
    FOR_EVER,
    GIB,
    MIB,
    NAMESPACE,
    RETENTION,
    SIZE,
    TTL,
    of_settings,
    proposed,
    size,
)
from tests.unit.report_checkup.snapshots import Rows, written

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.planners.base import Proposal
    from tests.golden import Golden

FOUND = "retention-too-long"


def kept(minutes: int, megabytes: int) -> Retention:
    return Retention(minutes=minutes, megabytes=megabytes)


def with_quotas(retention: Retention, gibibytes: int = 0, hours: int = 0) -> dict[SettingName, Setting]:
    """A namespace's own settings."""
    own: dict[SettingName, Setting] = {SettingName.RETENTION: retention}
    if gibibytes:
        own[SettingName.SIZE_QUOTA] = size(gibibytes * GIB)
    if hours:
        own[SettingName.AGE_QUOTA] = BacklogQuota(limit_seconds=hours * 3600, policy=QuotaPolicy.HOLD)
    return own


@cases(
    "own, known, expected",
    ("time", with_quotas(kept(30 * DAY, -1)), {}, kept(3 * DAY, -1)),
    ("age quota", with_quotas(kept(30 * DAY, -1), hours=90), {}, kept(100 * 60, -1)),
    ("topic's age", with_quotas(kept(30 * DAY, -1)), {"topic_quotas": (0, 90 * 3600)}, kept(100 * 60, -1)),
    ("size quota", with_quotas(kept(-1, 102_400), 9), {}, kept(-1, 10_240)),
    ("topic's size", with_quotas(kept(-1, 102_400)), {"topic_quotas": (9 * GIB, 0)}, kept(-1, 10_240)),
    ("backlog", with_quotas(kept(-1, 102_400)), {"backlog": 6 * GIB}, kept(-1, 10_240)),
    ("outage", with_quotas(kept(-1, 409_600)), {"rate": float(MIB)}, kept(-1, 96_000)),
    ("both", with_quotas(kept(30 * DAY, 102_400), 9), {}, kept(3 * DAY, 10_240)),
    ("short already", with_quotas(kept(2 * DAY, 102_400), 9), {}, kept(2 * DAY, 10_240)),
)
def test_it_is_lowered_to_what_quota_and_outage_need(
    own: dict[SettingName, Setting], known: dict[str, Any], expected: Retention
) -> None:
    proposal = proposed(own, FOUND, consumed_bytes=GIB, **known)

    assert changes(proposal) == [(SettingName.RETENTION, expected)]


def test_what_it_deletes_is_said_and_has_to_be_confirmed(golden: Golden) -> None:
    """A step that lowers a retention counts as losing messages, and states the largest loss and that it is final."""
    (batch,) = proposed(with_quotas(kept(30 * DAY, -1)), FOUND, consumed_bytes=5 * GIB).batches
    (step,) = batch.steps

    assert isinstance(step.change, ChangeSetting)
    assert step.change.loses_messages
    assert step.loss == Loss(messages=0, bytes=5 * GIB)
    golden(step.why)
    golden(step.undo_note)
    assert batch.kind == "retention"


def test_it_comes_after_the_quotas() -> None:
    """The retention is lowered after the size quota is set, and the age quota is a share of the lower retention."""
    proposal = proposed(with_quotas(kept(30 * DAY, 409_600)), FOUND, "backlog-quota-missing", backlog=6 * GIB)

    assert changes(proposal) == [
        (SettingName.SIZE_QUOTA, size(9 * GIB)),
        (SettingName.RETENTION, kept(3 * DAY, 10_240)),
        (SettingName.AGE_QUOTA, BacklogQuota(limit_seconds=54 * 3600, policy=QuotaPolicy.HOLD)),
    ]


@cases(
    "own, checks, known",
    ("a quota needs it", with_quotas(kept(30 * DAY, -1), hours=27 * 24), (FOUND,), {}),
    (
        "a backlog needs more",
        with_quotas(kept(30 * DAY, 10)),
        (FOUND, "retention-too-short"),
        {"outgrown": (40 * MIB, 60)},
    ),
    (
        "the policy keeps it",
        with_quotas(kept(30 * DAY, -1)),
        (FOUND,),
        {"policy": a_policy(retention_remedy={"keep_hours": 30 * 24})},
    ),
)
def test_what_is_needed_is_kept(
    own: dict[SettingName, Setting], checks: tuple[str, ...], known: dict[str, Any]
) -> None:
    """A retention that a quota, a backlog or the policy needs is not lowered, and a note says so."""
    proposal = proposed(own, *checks, **known)

    lowered = [value for name, value in changes(proposal) if isinstance(value, Retention) and value.minutes < 30 * DAY]
    assert not lowered
    assert f"{NAMESPACE}: its retention is not lowered" in " ".join(proposal.notes)


def test_a_size_stays_where_it_is_not_known_how_much_comes_in() -> None:
    """What is retained outlasts an outage by the busiest topic's throughput: one that is no number is not 0."""
    own = with_quotas(kept(-1, 409_600))
    assert changes(proposed(own, FOUND, consumed_bytes=GIB))
    assert changes(proposed(own, FOUND, consumed_bytes=GIB, rate=None)) == []


TOPIC = f"persistent://{NAMESPACE}/basket"
SMALL, LARGE = Retention(minutes=DAY, megabytes=20_480), Retention(minutes=DAY, megabytes=204_800)
NEAR = "backlog-near-quota"


def found(check: str = NEAR, subject: str = TOPIC, severity: Severity = Severity.CRITICAL) -> Finding:
    return Finding(check_id=check, severity=severity, subject=subject, evidence="made up", figures={})


def proposed_own(
    own: Setting | None = LARGE,
    retains: Setting | None = SMALL,
    quota: Setting | None = None,
    *,
    findings: tuple[Finding, ...] = (found(),),
    fact: dict[str, Any] | None = None,
    **fields: Any,
) -> Proposal:
    """Proposal for a topic under a quota of 10 GiB of its namespace."""
    common = {SettingName.SIZE_QUOTA: quota or size(10 * GIB), SettingName.RETENTION: retains}
    about: dict[str, Any] = {
        "own": {} if own is None else {SettingName.RETENTION: own},
        "peak": 9 * GIB,
        "snapshots": 3,
        "delayed_messages": 0,
    }
    facts = tuple(
        TopicSettings(
            subject=subject,
            topic=TOPIC,
            namespace=NAMESPACE,
            inherited={name: value for name, value in common.items() if value is not None},
            **{**about, **(fact or {})},
        )
        for subject in sorted({finding.subject for finding in findings})
    )
    known = {"quotas_are_checked": True, "clocks_differ_milliseconds": 0}
    return of_settings(planning_facts_with(3, **{"findings": findings, "topics": facts, **known, **fields}))


def limits(proposal: Proposal) -> list[tuple[str | None, Setting | None]]:
    """Returns the topic and the new value of each setting that the proposal changes."""
    steps = [step.change for batch in proposal.batches for step in batch.steps]
    return [(change.topic, change.after) for change in steps if isinstance(change, ChangeSetting)]


@cases(
    "more, limit",
    ("peak", {}, size(13_824 * MIB)),
    ("outage", {"fact": {"busiest_bytes_per_second": float(MIB)}}, size(24 * 3600 * MIB)),
    ("unbounded", {"own": Retention(minutes=DAY, megabytes=-1)}, size(13_824 * MIB)),
    ("of its own alone", {"own": Retention(minutes=DAY, megabytes=-1), "retains": None}, size(13_824 * MIB)),
    (
        "what its retention leaves",
        {"own": Retention(minutes=DAY, megabytes=30_720), "fact": {"busiest_bytes_per_second": float(MIB)}},
        size(27 * GIB),
    ),
    ("the same policy", {"quota": size(10 * GIB, QuotaPolicy.EVICT)}, size(13_824 * MIB, QuotaPolicy.EVICT)),
    ("growing", {"findings": (found("backlog-growing"),)}, size(13_824 * MIB)),
)
def test_a_topic_that_needs_more_than_its_namespace_gets_its_own(more: dict[str, Any], limit: BacklogQuota) -> None:
    """A topic's own quota covers an outage and the peak backlog within its retention, and keeps the policy."""
    assert limits(proposed_own(**more)) == [(TOPIC, limit)]


@cases(
    "more",
    ("as its namespace", {"own": None}),
    ("no more", {"own": SMALL}),
    ("its namespace all", {"own": LARGE, "retains": Retention(minutes=DAY, megabytes=-1)}),
    ("no need", {"fact": {"peak": 6 * GIB}}),
    ("has one", {"fact": {"own": {SettingName.RETENTION: LARGE, SettingName.SIZE_QUOTA: size(GIB)}}}),
    ("no limit", {"quota": BacklogQuota(limit_bytes=-1, policy=QuotaPolicy.HOLD)}),
    ("information", {"findings": (found(severity=Severity.INFO),)}),
    ("young", {"policy": a_policy(plan={"standing_snapshots": 2})}),
)
def test_all_other_topics_get_nothing(more: dict[str, Any]) -> None:
    """A topic that does not meet the conditions gets neither a quota of its own nor a note."""
    proposal = proposed_own(**more)

    assert (limits(proposal), proposal.notes) == ([], ())


@cases(
    "more, words",
    (
        "its retention is too small",
        {"own": Retention(minutes=DAY, megabytes=30_720), "fact": {"peak": 20 * GIB}},
        "leaves 27 GiB: raise that by hand",
    ),
    ("a guard", {"quotas_are_checked": False}, "is proposed: quotas_checked: "),
)
def test_why_it_gets_none(more: dict[str, Any], words: str) -> None:
    """A note gives the reason if a topic needs a higher quota and gets none."""
    proposal = proposed_own(**more)

    assert not proposal.batches
    assert words in " ".join(proposal.notes)


def test_partitions_share_one_quota_and_all_that_was_found_of_them(golden: Golden) -> None:
    """All findings of a topic's partitions lead to one step for the topic, which names the namespace's quota."""
    findings = tuple(
        found(check, f"{TOPIC}-partition-{number}")
        for number in (0, 1)
        for check in (NEAR, "producer-hold-restart-risk")
    )
    (batch,) = proposed_own(findings=findings).batches
    (step,) = batch.steps

    assert batch.findings == findings
    golden(batch.title)
    golden(step.why)
    assert "its namespace's quota is 10 GiB" in step.why
    golden(step.undo_note)


HOUR = 3600
AGE_TOPIC = f"persistent://{NAMESPACE}/t"


def age_kept(days: int, megabytes: int = -1) -> dict[SettingName, Setting]:
    """A namespace that retains for so many days."""
    return {SettingName.RETENTION: Retention(minutes=days * DAY, megabytes=megabytes)}


def by_age(hours: int, policy: QuotaPolicy = QuotaPolicy.HOLD) -> BacklogQuota:
    return BacklogQuota(limit_seconds=hours * HOUR, policy=policy)


def ages(hours: int, **more: Any) -> BacklogAges:
    """A backlog so old, as far as it is known."""
    return msgspec.structs.replace(BacklogAges(oldest_seconds=hours * HOUR, topic=AGE_TOPIC, waiting=1), **more)


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
    proposal = proposed(age_kept(days), "backlog-quota-missing", policy=a_policy(backlog_quota_remedy=remedy))
    policy = QuotaPolicy(remedy.get("policy", QuotaPolicy.HOLD))

    assert [name for name, _ in changes(proposal)] == [SettingName.SIZE_QUOTA, SettingName.AGE_QUOTA]
    assert changes(proposal)[1][1] == by_age(hours, policy)
    assert [len(batch.steps) for batch in proposal.batches] == [1, 1]  # one guard's veto is not to stop the other
    assert not proposal.notes


def test_the_sum_and_what_it_would_have_done_are_said(golden: Golden) -> None:
    """A step for an age quota states how the quota was computed, its effect, and the backlogs of unknown age."""
    unknown = ages(2, estimated=True, waiting=5, unknown=2, why_unknown="nobody tells")
    (_, batch) = proposed(age_kept(4), "backlog-quota-missing", ages=unknown).batches
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
    ("no time", age_kept(0, 100), {}, "has no limit in time"),
    ("unbounded", FOR_EVER, {}, "has no limit in time"),
    ("no room", age_kept(1), {}, "the retention of 1 d less 10 %"),
    ("expires first", age_kept(4) | {TTL: TimeToLive(seconds=72 * HOUR)}, {}, "messages expire after 3 d"),
    ("too old", age_kept(4), {"ages": ages(65)}, f"a backlog of {AGE_TOPIC} is 65 h old"),
    ("estimated too old", age_kept(4), {"ages": ages(65, estimated=True)}, "to be 65 h"),
    ("clocks", age_kept(4), {"clocks_differ_milliseconds": 9_000}, "is proposed: clocks: "),
    ("delayed messages", age_kept(4), {"delayed_messages": 3}, "is proposed: delayed_kept: "),
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
    step = only_step(evicting(most, backlog_of(AGE_TOPIC, 10 * GIB, {"s": 1_000_000}, {})))
    assert isinstance(step.change, ChangeSetting)
    assert step.change.after == BacklogQuota(limit_bytes=limit, policy=QuotaPolicy.EVICT)
    assert step.change.loses_messages
    assert (step.loss.bytes if not isinstance(step.loss, msgspec.UnsetType) else 0) == lost


def test_an_eviction_of_what_was_never_replicated_is_not_proposed() -> None:
    words = f"own_cursors: 1,000 entries of {AGE_TOPIC} that were never replicated to west"
    assert words in refusal(evicting(4096, backlog_of(AGE_TOPIC, 10 * GIB, {"s": 10}, {"west": 1000})))


def test_an_eviction_of_more_topics_than_were_looked_at_is_not_proposed(golden: Golden) -> None:
    """An eviction is not proposed when it may affect more topics than were looked at, as its loss is not known."""
    golden(refusal(evicting(4096, *(backlog_of(f"t{number}", 10 * GIB, {"s": 1}, {}) for number in range(1000)))))
