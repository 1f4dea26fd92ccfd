"""Quotas, retention and time to live: what is proposed, from which sum, in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.facts.backlogs import backlog_of, held_by_pulsar
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.planners.base import Proposal, joined
from pulsar_steward.planners.registry import PLANNERS, proposals_of
from pulsar_steward.planners.settings.facts import BacklogSample, NamespaceFact, TopicSettings, effect
from pulsar_steward.planners.settings.namespaces import in_order, raises
from tests.builders import NOW, a_finding, a_policy, planning_facts_with
from tests.cases import cases, row_by_row
from tests.unit.planners.proposals import KNOWN, changes, only_step, refusal, settings_in, undone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.planners.planning_facts import PlanningFacts
    from tests.golden import Golden

NAMESPACE = "shop/orders"
MIB, GIB = 1 << 20, 1 << 30
DAY = 24 * 60


AGE, RETENTION, SIZE, TTL = (
    SettingName.AGE_QUOTA, SettingName.RETENTION, SettingName.SIZE_QUOTA, SettingName.TTL
)  # fmt: skip
KEPT = Retention(minutes=DAY, megabytes=10_240)
FOR_EVER = {RETENTION: Retention(minutes=-1, megabytes=-1)}
AWAY = (backlog_of("persistent://shop/orders/t", 10 * GIB, {}, {"west": 9}),)
OF_NAMESPACE = ("age_quota_delay_seconds", "ages", "backlogs", "compaction_bytes", "consumed_bytes", "topic_quotas")


def of_settings(planning: PlanningFacts) -> Proposal:
    return joined(proposals_of([each for each in PLANNERS if "backlog_quota" in each.kinds], planning))


def size(limit: int, policy: QuotaPolicy = QuotaPolicy.HOLD) -> BacklogQuota:
    return BacklogQuota(limit_bytes=limit, policy=policy)


def proposed(
    own: Mapping[SettingName, Setting],
    *checks: str,
    backlog: int = 0,
    rate: float | None = 0.0,
    outgrown: tuple[int, int] = (0, 0),
    **fields: Any,
) -> Proposal:
    """Proposal for a namespace that checks found something in; `fields` are of `Scene` or `NamespaceFact`."""
    fact = NamespaceFact(
        namespace=NAMESPACE,
        own=dict(own),
        looks=(BacklogSample(taken_at=NOW, topics=3, backlogs=(backlog,)),),
        busiest_bytes_per_second=rate,
        stored_bytes=backlog,
        outgrown=outgrown,
        delayed_messages=fields.pop("delayed_messages", 0),
        **{name: fields.pop(name) for name in OF_NAMESPACE if name in fields},
    )
    findings = tuple(a_finding(check_id=check, subject=NAMESPACE) for check in checks)
    return of_settings(planning_facts_with(3, **{"findings": findings, "namespaces": (fact,), **KNOWN, **fields}))


@cases(
    "backlog, rate, own, limit",
    ("least", 0, 0.0, {}, GIB),
    ("peak", 10 * GIB, 0.0, {}, 15 * GIB),
    ("a day's outage", GIB, float(MIB), {}, 24 * 3600 * MIB),
    ("what the retention leaves", 0, float(MIB), {RETENTION: KEPT}, 9 * GIB),
)
def test_a_missing_size_quota(backlog: int, rate: float, own: dict[SettingName, Setting], limit: int) -> None:
    """A missing size quota is set with room for an outage and the peak backlog, below the retention by a margin."""
    assert changes(proposed(own, "backlog-quota-missing", backlog=backlog, rate=rate)) == [(SIZE, size(limit))]


@cases(
    "fields, words",
    ("what comes in is not known", {"backlog": GIB, "rate": None}, "how much comes in is not known"),
    ("it has one", {"own": {SIZE: size(10 * GIB, QuotaPolicy.REFUSE)}}, "it has a size quota already"),
    ("compacted later", {"backlog": 10 * GIB, "compaction_bytes": 15 * GIB}, "are compacted only from 15 GiB on"),
    ("not replicated", {"backlog": 10 * GIB, "backlogs": AWAY}, "quota_held: the replicator to west holds 10 GiB"),
    ("partial", {"unread": ("broker-01:8080",)}, "the snapshot is partial without broker-01:8080"),
    ("young", {"policy": a_policy(plan={"standing_snapshots": 2})}, "not stood for 2 snapshots"),
    ("not seen", {"namespaces": ()}, "settings are not in the snapshot"),
    ("not checked", {"quotas_are_checked": False}, "quotas_checked: brokers do not check"),
    ("not known whether it is", {"quotas_are_checked": None}, "quotas_checked: whether brokers check"),
    ("protected", {"policy": a_policy(apply={"protected_namespaces": (NAMESPACE,)})}, "protected: shop/orders"),
)
def test_why_no_size_quota_is_proposed(fields: dict[str, Any], words: str) -> None:
    """A quota without room for an outage, or that Pulsar's own cursors fill, would stop producers.

    A topic without a quota in a namespace that has one sets that itself: the namespace's is left as it is.
    """
    assert words in refusal(proposed(fields.pop("own", {}), "backlog-quota-missing", **fields))


def test_a_replicator_behind_an_application_holds_its_share() -> None:
    """Once the application has consumed what it has, the replicator is the slowest: it counts by its entries."""
    held = held_by_pulsar([backlog_of("t", 1000, {"app": 10}, {"west": 9})], 0)
    assert held.backlog is not None
    assert (held.backlog.bytes, held.backlog.held_by) == (900, "the replicator to west")


def test_a_retention_that_leaves_no_room_is_raised_first() -> None:
    """A retention without room for the new size quota is raised before it, and each step's undo is the former value."""
    kept = Retention(minutes=DAY, megabytes=1024)
    proposal = proposed({RETENTION: kept}, "backlog-quota-missing", backlog=10 * GIB)
    assert changes(proposal) == [(RETENTION, Retention(minutes=DAY, megabytes=17_067)), (SIZE, size(15 * GIB))]
    assert proposal.batches[0].kind == "retention"
    assert [undone(step) for step in proposal.batches[0].steps] == [kept, None]


@cases(
    "backlog, expected",
    ("the quota is lowered where no backlog is near", GIB, (SIZE, size(9 * GIB, QuotaPolicy.EVICT))),
    ("else the retention is raised", 8 * GIB, (RETENTION, Retention(minutes=DAY, megabytes=22_756))),
)
def test_a_quota_over_the_retention(backlog: int, expected: tuple[SettingName, Setting]) -> None:
    """A quota over the retention is lowered if recent backlogs with headroom fit in; else the retention is raised."""
    own: dict[SettingName, Setting] = {RETENTION: KEPT, SIZE: size(20 * GIB, QuotaPolicy.EVICT)}
    assert changes(proposed(own, "quota-over-retention", backlog=backlog)) == [expected]


def test_a_retention_for_ever_is_bounded_in_time() -> None:
    """An unlimited retention time is set to the policy's `keep_hours`, and the size stays unlimited."""
    proposal = proposed(FOR_EVER, "retention-unbounded", policy=a_policy(retention_remedy={"keep_hours": 48}))
    assert changes(proposal) == [(RETENTION, Retention(minutes=2 * DAY, megabytes=-1))]


@cases("lives_s, late_s, hours", ("with a margin, in whole hours", 600, 0, 12), ("acts late", 36_600, 4 * 3600, 16))
def test_a_time_to_live_outlasts_the_age_quota(lives_s: int, late_s: int, hours: int) -> None:
    quota = BacklogQuota(limit_seconds=36_000, policy=QuotaPolicy.HOLD)
    own: dict[SettingName, Setting] = {AGE: quota, TTL: TimeToLive(seconds=lives_s)}
    proposal = proposed(own, "ttl-before-quota", age_quota_delay_seconds=late_s)
    assert changes(proposal) == [(TTL, TimeToLive(seconds=hours * 3600))]
    assert ("up to 4 h later" in only_step(proposal).why) is bool(late_s)


def test_what_would_have_happened_is_said(golden: Golden) -> None:
    """The effect of a new quota says how many topics would have been over it in the last snapshots."""
    (batch,) = proposed({}, "backlog-quota-missing", backlog=GIB).batches
    golden(batch.steps[0].effect)
    golden(batch.steps[0].why)
    golden(batch.title)


SHORT, UNBOUNDED = Retention(minutes=60, megabytes=100), Retention(minutes=-1, megabytes=-1)


@cases(
    "before, after, raised",
    ("size", SHORT, Retention(minutes=60, megabytes=200), True),
    ("less time, more size", SHORT, Retention(minutes=30, megabytes=200), False),
    ("to no limit", SHORT, UNBOUNDED, True),
    ("from no limit", UNBOUNDED, Retention(minutes=60, megabytes=-1), False),
    ("set", None, Retention(minutes=60, megabytes=-1), False),
    ("removed", SHORT, None, True),
)
def test_the_order_of_calls(before: Retention | None, after: Retention | None, *, raised: bool) -> None:
    """A retention that is raised goes before the quotas, one that is lowered after them, in whichever order given."""
    kept = ChangeSetting(namespace=NAMESPACE, name=RETENTION, before=before, after=after)
    quota = ChangeSetting(namespace=NAMESPACE, name=SIZE, before=None, after=size(GIB))
    assert raises(kept) is raised
    for calls in ([quota, kept], [kept, quota]):
        assert in_order(calls) == ((kept, quota) if raised else (quota, kept))


def test_the_order_of_findings_changes_no_proposed_step() -> None:
    one, other = (
        [batch.steps for batch in proposed(FOR_EVER, *checks).batches]
        for checks in (
            ("retention-unbounded", "backlog-quota-missing"),
            ("backlog-quota-missing", "retention-unbounded"),
        )
    )
    assert one == other != []


TOPIC = f"persistent://{NAMESPACE}/basket"


def a_topic(name: str = "basket-partition-3", **fields: Any) -> TopicSettings:
    """A topic with a quota of its own of 200 MiB, over the 100 MiB that its namespace retains."""
    topic = f"persistent://{NAMESPACE}/{name}"
    inherited: dict[SettingName, Setting] = {RETENTION: Retention(minutes=DAY, megabytes=100)}
    usual: dict[str, Any] = {"own": {SIZE: size(200 * MIB)}, "peak": 0, "delayed_messages": 0}
    whole = topic.partition("-partition-")[0]
    return TopicSettings(subject=topic, topic=whole, namespace=NAMESPACE, inherited=inherited, **{**usual, **fields})


def proposed_for_topics(*topics: TopicSettings, **fields: Any) -> Proposal:
    """Proposal for topics whose quotas are over what is retained."""
    found = tuple(a_finding(check_id="quota-over-retention", subject=each.subject) for each in topics)
    return of_settings(planning_facts_with(3, **{"findings": found, "topics": topics, **KNOWN, **fields}))


def test_a_topics_own_quota_is_lowered_on_the_topic() -> None:
    """A topic's own quota is lowered on the topic, and the undo restores the former value."""
    proposal = proposed_for_topics(a_topic())
    assert [(change.topic, change.after) for change in settings_in(proposal)] == [(TOPIC, size(90 * MIB))]
    assert undone(only_step(proposal)) == size(200 * MIB)


def test_no_more_topics_are_changed_than_one_run_permits() -> None:
    policy = a_policy(guards={"most_changes_per_run": 2})
    proposal = proposed_for_topics(*(a_topic(f"basket-{number}") for number in range(3)), policy=policy)
    assert [change.holder for change in settings_in(proposal)] == [f"{TOPIC}-0", f"{TOPIC}-1"]
    (note,) = proposal.notes
    assert note.startswith(
        f"{NAMESPACE}: {TOPIC}-2 come with later plans, as one changes 2 at most (policy key guards."
    )


@cases(
    "of_topic, fields, words",
    ("a backlog needs it", {"peak": 70 * MIB}, {}, "raise the retention by hand"),
    ("below already", {"own": {SIZE: size(80 * MIB)}}, {}, "looked at by hand"),
    ("not seen", {}, {"topics": ()}, "is not in the snapshot"),
    ("not known whether it is checked", {}, {"quotas_are_checked": None}, "quotas_checked"),
)
def test_why_nothing_is_proposed_for_a_topic(of_topic: dict[str, Any], fields: dict[str, Any], words: str) -> None:
    """A note gives the reason if no change is proposed for a topic with a `quota-over-retention` finding."""
    assert words in refusal(proposed_for_topics(a_topic(**of_topic), **fields))


@cases(
    "own, seen, longer",
    ("both", Retention(minutes=60, megabytes=10), (40 * MIB, 7200), Retention(minutes=180, megabytes=60)),
    ("of any size", Retention(minutes=60, megabytes=-1), (40 * MIB, 7200), Retention(minutes=180, megabytes=-1)),
    ("old enough", Retention(minutes=600, megabytes=10), (40 * MIB, 7200), Retention(minutes=600, megabytes=60)),
)
def test_a_retention_that_a_backlog_outgrew_is_raised(own: Retention, seen: tuple[int, int], longer: Retention) -> None:
    proposal = proposed({SettingName.RETENTION: own}, "retention-too-short", outgrown=seen)

    assert changes(proposal) == [(SettingName.RETENTION, longer)]


def test_a_topics_own_short_retention_is_left_to_people(golden: Golden) -> None:
    own = {RETENTION: Retention(minutes=DAY, megabytes=1000)}
    golden(refusal(proposed(own, "retention-too-short", outgrown=(40 * MIB, 60))))


@row_by_row(
    "action, harm",
    (QuotaPolicy.HOLD, "7 producers held"),
    (QuotaPolicy.REFUSE, "7 producers refused"),
    (QuotaPolicy.EVICT, "up to 7 GiB evicted"),
)
def test_what_a_quota_would_have_done(action: QuotaPolicy, harm: str, golden: Golden) -> None:
    """The effect of a quota tells the harm in the worst of the snapshots, not the sum over all of them."""
    worst = BacklogSample(taken_at=NOW, topics=3, backlogs=(4 * GIB, 3 * GIB, 0), producers=(5, 2, 1))
    better = BacklogSample(taken_at=NOW, topics=2, backlogs=(3 * GIB, 0), producers=(5, 1))
    fact = NamespaceFact(namespace=NAMESPACE, own={}, looks=(better, worst), busiest_bytes_per_second=0, stored_bytes=0)
    change = ChangeSetting(namespace=NAMESPACE, name=SettingName.SIZE_QUOTA, before=None, after=size(GIB, action))

    assert effect(fact, change).endswith(harm)
    golden(effect(fact, change))


def test_an_unbounded_retention_is_bounded_with_what_it_costs(golden: Golden) -> None:
    """The reason of a step that limits an unlimited retention tells the approver how much is stored now."""
    golden(only_step(proposed(FOR_EVER, "retention-unbounded", backlog=3 * GIB)).why)
