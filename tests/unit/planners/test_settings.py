"""Quotas, retention and time to live: what is proposed, from which sum, in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pulsar_steward.facts.backlogs import Backlog, held_by_pulsar
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.model.subscription import Holder
from pulsar_steward.planners.base import Proposal, joined
from pulsar_steward.planners.registry import PLANNERS, proposals_of
from pulsar_steward.planners.settings.facts import BacklogSample, NamespaceFact, TopicSettings, effect
from pulsar_steward.planners.settings.namespaces import in_order, raises
from tests.builders import NOW, a_policy, planning_facts_with

if TYPE_CHECKING:
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from tests.golden import Golden

NAMESPACE = "shop/orders"
MIB, GIB = 1 << 20, 1 << 30
DAY = 24 * 60


AWAY = (
    Backlog(topic="persistent://shop/orders/t", bytes=10 * GIB, holders=(Holder(name="pulsar.repl.west", entries=9),)),
)
OF_NAMESPACE = (
    "age_quota_delay_seconds",
    "ages",
    "backlogs",
    "compaction_bytes",
    "consumed_bytes",
    "topic_quotas",
)


def of_settings(planning: PlanningFacts) -> Proposal:
    """Proposals of the planners of settings, one after the other."""
    return joined(proposals_of([each for each in PLANNERS if "backlog_quota" in each.kinds], planning))


def size(limit: int, policy: QuotaPolicy = QuotaPolicy.HOLD) -> BacklogQuota:
    """A quota by size."""
    return BacklogQuota(limit_bytes=limit, policy=policy)


def proposed(
    own: dict[SettingName, Setting],
    *checks: str,
    backlog: int = 0,
    rate: float | None = 0.0,
    outgrown: tuple[int, int] = (0, 0),
    **fields: Any,
) -> Proposal:
    """Proposal for a namespace that checks found something in; `fields` are of `Scene` or `NamespaceFact`."""
    findings = tuple(
        Finding(check_id=check, severity=Severity.WARNING, subject=NAMESPACE, evidence="made up", figures={})
        for check in checks
    )
    look = BacklogSample(taken_at=NOW, topics=3, backlogs=(backlog,))
    fact = NamespaceFact(
        namespace=NAMESPACE,
        own=own,
        looks=(look,),
        busiest_bytes_per_second=rate,
        stored_bytes=backlog,
        outgrown=outgrown,
        delayed_messages=fields.pop("delayed_messages", 0),
        **{name: fields.pop(name) for name in OF_NAMESPACE if name in fields},
    )
    known = {"quotas_are_checked": True, "clocks_differ_milliseconds": 0}
    return of_settings(planning_facts_with(3, **{"findings": findings, "namespaces": (fact,), **known, **fields}))


def changes(proposal: Proposal) -> list[tuple[SettingName, Setting | None]]:
    """Values that are set, in order."""
    steps = [step.change for batch in proposal.batches for step in batch.steps]
    return [(change.name, change.after) for change in steps if isinstance(change, ChangeSetting)]


@pytest.mark.parametrize(
    ("backlog", "rate", "kept", "limit"),
    [
        (0, 0.0, None, GIB),  # the least
        (10 * GIB, 0.0, None, 15 * GIB),  # the peak and a half
        (GIB, float(MIB), None, 24 * 3600 * MIB),  # a day's outage
        (0, float(MIB), Retention(minutes=DAY, megabytes=10_240), 9 * GIB),  # what the retention leaves
    ],
    ids=["least", "peak", "outage", "retention"],
)
def test_a_missing_size_quota(backlog: int, rate: float, kept: Retention | None, limit: int) -> None:
    """A missing size quota is set with room for an outage and the peak backlog, below the retention by a margin."""
    own: dict[SettingName, Setting] = {} if kept is None else {SettingName.RETENTION: kept}
    assert changes(proposed(own, "backlog-quota-missing", backlog=backlog, rate=rate)) == [
        (SettingName.SIZE_QUOTA, size(limit))
    ]


def test_no_quota_is_sized_by_a_throughput_that_is_not_known() -> None:
    """A rate that is no number is not 0: a quota without room for an outage would stop producers."""
    proposal = proposed({}, "backlog-quota-missing", backlog=GIB, rate=None)
    assert changes(proposal) == []
    assert "how much comes in is not known" in " ".join(proposal.notes)


def test_no_quota_is_set_over_one_that_is() -> None:
    """A topic without a quota in a namespace that has one sets that itself: the namespace's is left as it is."""
    refusing = size(10 * GIB, QuotaPolicy.REFUSE)
    proposal = proposed({SettingName.SIZE_QUOTA: refusing}, "backlog-quota-missing", backlog=GIB)
    assert changes(proposal) == []
    assert "it has a size quota already" in " ".join(proposal.notes)


def test_a_replicator_behind_an_application_holds_its_share() -> None:
    """Once the application has consumed what it has, the replicator is the slowest: it counts by its entries."""
    held = held_by_pulsar(
        [
            Backlog(
                topic="t",
                bytes=1000,
                holders=(Holder(name="app", entries=10), Holder(name="pulsar.repl.west", entries=9)),
            )
        ],
        0,
    )
    assert held.backlog is not None
    assert (held.backlog.bytes, held.backlog.held_by) == (900, "the replicator to west")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"compaction_bytes": 15 * GIB}, "quota_held: topics are compacted only from 15 GiB on"),
        ({"backlogs": AWAY}, "quota_held: the replicator to west holds 10 GiB"),
    ],
    ids=["compacted later", "not replicated"],
)
def test_no_quota_is_set_that_pulsars_own_cursors_fill(fields: dict[str, Any], words: str) -> None:
    """A quota that compaction or replication fills would shut producers out, and no application could help."""
    proposal = proposed({}, "backlog-quota-missing", backlog=10 * GIB, **fields)
    assert SettingName.SIZE_QUOTA not in dict(changes(proposal))
    assert words in " ".join(proposal.notes)


def test_a_retention_that_leaves_no_room_is_raised_first() -> None:
    """A retention without room for the new size quota is raised before it, and each step's undo is the former value."""
    own: dict[SettingName, Setting] = {SettingName.RETENTION: Retention(minutes=DAY, megabytes=1024)}
    proposal = proposed(own, "backlog-quota-missing", backlog=10 * GIB)

    (batch,) = proposal.batches
    assert batch.kind == "retention"
    assert changes(proposal) == [
        (SettingName.RETENTION, Retention(minutes=DAY, megabytes=17_067)),
        (SettingName.SIZE_QUOTA, size(15 * GIB)),
    ]
    first, second = batch.steps
    assert isinstance(first.undo, ChangeSetting)
    assert first.undo.after == own[SettingName.RETENTION]
    assert isinstance(second.undo, ChangeSetting)
    assert second.undo.after is None
    assert all(step.guards for step in batch.steps)
    assert all(result.passed for step in batch.steps for result in step.guards)


@pytest.mark.parametrize(
    ("backlog", "expected"),
    [
        (GIB, [(SettingName.SIZE_QUOTA, size(9 * GIB, QuotaPolicy.EVICT))]),
        (8 * GIB, [(SettingName.RETENTION, Retention(minutes=DAY, megabytes=22_756))]),
    ],
    ids=["the quota is lowered where no backlog is near", "else the retention is raised"],
)
def test_a_quota_over_the_retention(backlog: int, expected: list[tuple[SettingName, Setting]]) -> None:
    """A quota over the retention is lowered if recent backlogs with headroom fit in; else the retention is raised."""
    own: dict[SettingName, Setting] = {
        SettingName.RETENTION: Retention(minutes=DAY, megabytes=10_240),
        SettingName.SIZE_QUOTA: size(20 * GIB, QuotaPolicy.EVICT),
    }
    assert changes(proposed(own, "quota-over-retention", backlog=backlog)) == expected


def test_a_retention_for_ever_is_bounded_in_time() -> None:
    """An unlimited retention time is set to the policy's `keep_hours`, and the size stays unlimited."""
    own: dict[SettingName, Setting] = {SettingName.RETENTION: Retention(minutes=-1, megabytes=-1)}
    proposal = proposed(own, "retention-unbounded", policy=a_policy(retention_remedy={"keep_hours": 48}))

    assert changes(proposal) == [(SettingName.RETENTION, Retention(minutes=2 * DAY, megabytes=-1))]


def test_a_time_to_live_is_raised_beyond_the_age_quota() -> None:
    """A time to live below the age quota is raised above it by a margin, in whole hours."""
    own: dict[SettingName, Setting] = {
        SettingName.AGE_QUOTA: BacklogQuota(limit_seconds=36_000, policy=QuotaPolicy.HOLD),
        SettingName.TTL: TimeToLive(seconds=600),
    }
    assert changes(proposed(own, "ttl-before-quota")) == [(SettingName.TTL, TimeToLive(seconds=43_200))]


def test_a_time_to_live_outlasts_an_age_quota_that_acts_late() -> None:
    """The time to live is raised above the sum of the age quota and the delay with which the quota acts."""
    own: dict[SettingName, Setting] = {
        SettingName.AGE_QUOTA: BacklogQuota(limit_seconds=36_000, policy=QuotaPolicy.HOLD),
        SettingName.TTL: TimeToLive(seconds=36_600),
    }
    proposal = proposed(own, "ttl-before-quota", age_quota_delay_seconds=4 * 3600)

    assert changes(proposal) == [(SettingName.TTL, TimeToLive(seconds=57_600))]
    assert "up to 4 h later" in proposal.batches[0].steps[0].why


def test_what_would_have_happened_is_said(golden: Golden) -> None:
    """The effect of a new quota says how many topics would have been over it in the last snapshots."""
    (batch,) = proposed({}, "backlog-quota-missing", backlog=GIB).batches
    golden(batch.steps[0].effect)
    golden(batch.steps[0].why)
    golden(batch.title)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"unread": ("broker-01:8080",)}, "the snapshot is partial without broker-01:8080"),
        ({"policy": a_policy(plan={"standing_snapshots": 2})}, "not stood for 2 snapshots"),
        ({"namespaces": ()}, "settings are not in the snapshot"),
    ],
)
def test_why_nothing_is_proposed(fields: dict[str, Any], words: str) -> None:
    """A note gives the reason if nothing is proposed: a partial snapshot, a young finding or missing settings."""
    proposal = proposed({}, "backlog-quota-missing", **fields)
    assert proposal.batches == ()
    assert words in proposal.notes[0]


@pytest.mark.parametrize(
    ("before", "after", "raised"),
    [
        (Retention(minutes=60, megabytes=100), Retention(minutes=60, megabytes=200), True),
        (Retention(minutes=60, megabytes=100), Retention(minutes=30, megabytes=200), False),
        (Retention(minutes=60, megabytes=100), Retention(minutes=-1, megabytes=-1), True),
        (Retention(minutes=-1, megabytes=-1), Retention(minutes=60, megabytes=-1), False),
        (None, Retention(minutes=60, megabytes=-1), False),
        (Retention(minutes=60, megabytes=100), None, True),
    ],
)
def test_the_order_of_calls(before: Retention | None, after: Retention | None, *, raised: bool) -> None:
    """A retention that is raised goes before the quotas, one that is lowered after them, in whichever order given."""
    kept = ChangeSetting(namespace=NAMESPACE, name=SettingName.RETENTION, before=before, after=after)
    quota = ChangeSetting(namespace=NAMESPACE, name=SettingName.SIZE_QUOTA, before=None, after=size(GIB))

    assert raises(kept) is raised
    for calls in ([quota, kept], [kept, quota]):
        assert in_order(calls) == ((kept, quota) if raised else (quota, kept))


def test_the_order_of_findings_changes_no_proposed_step() -> None:
    """The order of the findings does not change the proposed batches."""
    own: dict[SettingName, Setting] = {SettingName.RETENTION: Retention(minutes=-1, megabytes=-1)}
    first = proposed(own, "retention-unbounded", "backlog-quota-missing")
    second = proposed(own, "backlog-quota-missing", "retention-unbounded")
    assert first.batches
    assert [msgspec.structs.replace(batch, findings=()) for batch in first.batches] == [
        msgspec.structs.replace(batch, findings=()) for batch in second.batches
    ]


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"quotas_are_checked": False}, "quotas_checked: brokers do not check"),
        ({"quotas_are_checked": None}, "quotas_checked: whether brokers check"),
        ({"policy": a_policy(apply={"protected_namespaces": (NAMESPACE,)})}, "protected: shop/orders is protected"),
    ],
    ids=["off", "unknown", "protected"],
)
def test_what_a_guard_vetoes_is_not_proposed(known: dict[str, Any], words: str) -> None:
    """A change that a guard vetoes is not proposed, and a note names the guard and its reason."""
    proposal = proposed({}, "backlog-quota-missing", **known)

    assert not proposal.batches
    assert words in " ".join(proposal.notes)


TOPIC = f"persistent://{NAMESPACE}/basket"


def proposed_for_topic(peak: int = 0, quota: Setting | None = None, **fields: Any) -> Proposal:
    """Proposal for a topic whose own quota of 200 MiB is over the 100 MiB that its namespace retains."""
    own: dict[SettingName, Setting] = {SettingName.SIZE_QUOTA: size(200 * MIB) if quota is None else quota}
    fact = TopicSettings(
        subject=f"{TOPIC}-partition-3",
        topic=TOPIC,
        namespace=NAMESPACE,
        own=own,
        inherited={SettingName.RETENTION: Retention(minutes=DAY, megabytes=100)},
        peak=peak,
        delayed_messages=0,
    )
    finding = Finding(
        check_id="quota-over-retention", severity=Severity.WARNING, subject=fact.subject, evidence="made up", figures={}
    )
    known = {"quotas_are_checked": True, "clocks_differ_milliseconds": 0}
    return of_settings(planning_facts_with(3, **{"findings": (finding,), "topics": (fact,), **known, **fields}))


def test_a_topics_own_quota_is_lowered_on_the_topic() -> None:
    """A topic's own quota is lowered on the topic, and the undo restores the former value."""
    (batch,) = proposed_for_topic().batches

    (step,) = batch.steps
    assert isinstance(step.change, ChangeSetting)
    assert (step.change.topic, step.change.after) == (TOPIC, size(90 * MIB))
    assert isinstance(step.undo, ChangeSetting)
    assert step.undo.after == size(200 * MIB)


def test_no_more_topics_are_changed_than_one_run_permits() -> None:
    """A batch for topics has as many steps as a run permits, and a note names the topics that wait."""
    facts = tuple(
        TopicSettings(
            subject=f"{TOPIC}-{number}",
            topic=f"{TOPIC}-{number}",
            namespace=NAMESPACE,
            own={SettingName.SIZE_QUOTA: size(200 * MIB)},
            inherited={SettingName.RETENTION: Retention(minutes=DAY, megabytes=100)},
            peak=0,
            delayed_messages=0,
        )
        for number in range(3)
    )
    findings = tuple(
        Finding(check_id="quota-over-retention", severity=Severity.WARNING, subject=each.subject, evidence="made up")
        for each in facts
    )
    policy = a_policy(guards={"most_changes_per_run": 2})

    proposal = proposed_for_topic(findings=findings, topics=facts, policy=policy)

    (batch,) = proposal.batches
    assert [step.change.holder for step in batch.steps if isinstance(step.change, ChangeSetting)] == [
        f"{TOPIC}-0",
        f"{TOPIC}-1",
    ]
    assert all(result.passed for step in batch.steps for result in step.guards)
    (note,) = proposal.notes
    assert note == (
        f"{NAMESPACE}: {TOPIC}-2 come with later plans, as one changes 2 at most (policy key"
        " guards.most_changes_per_run)."
    )


@pytest.mark.parametrize(
    ("peak", "fields", "words"),
    [
        (70 * MIB, {}, "raise the retention by hand"),
        (0, {"quota": size(80 * MIB)}, "looked at by hand"),
        (0, {"topics": ()}, "is not in the snapshot"),
        (0, {"quotas_are_checked": None}, "quotas_checked"),
    ],
    ids=["a backlog that needs it", "below already", "not seen", "not known whether it is checked"],
)
def test_why_nothing_is_proposed_for_a_topic(peak: int, fields: dict[str, Any], words: str) -> None:
    """A note gives the reason if no change is proposed for a topic with a `quota-over-retention` finding."""
    proposal = proposed_for_topic(peak, **fields)

    assert not proposal.batches
    assert words in " ".join(proposal.notes)


@pytest.mark.parametrize(
    ("own", "seen", "longer"),
    [
        (Retention(minutes=60, megabytes=10), (40 * MIB, 7200), Retention(minutes=180, megabytes=60)),
        (Retention(minutes=60, megabytes=-1), (40 * MIB, 7200), Retention(minutes=180, megabytes=-1)),
        (Retention(minutes=600, megabytes=10), (40 * MIB, 7200), Retention(minutes=600, megabytes=60)),
    ],
    ids=["both", "of any size", "old enough"],
)
def test_a_retention_that_a_backlog_outgrew_is_raised(own: Retention, seen: tuple[int, int], longer: Retention) -> None:
    """A retention that a backlog outgrew is raised with 50 % headroom; a part without limit or long enough stays."""
    proposal = proposed({SettingName.RETENTION: own}, "retention-too-short", outgrown=seen)

    assert changes(proposal) == [(SettingName.RETENTION, longer)]


def test_a_topics_own_short_retention_is_left_to_people(golden: Golden) -> None:
    """A topic's own short retention gives a note and no batch if its namespace retains enough."""
    own: dict[SettingName, Setting] = {SettingName.RETENTION: Retention(minutes=DAY, megabytes=1000)}
    proposal = proposed(own, "retention-too-short", outgrown=(40 * MIB, 60))

    assert not proposal.batches
    golden(" ".join(proposal.notes))


@pytest.mark.parametrize(
    ("action", "harm"),
    [
        (QuotaPolicy.HOLD, "7 producers held"),
        (QuotaPolicy.REFUSE, "7 producers refused"),
        (QuotaPolicy.EVICT, "up to 7 GiB evicted"),
    ],
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
    own: dict[SettingName, Setting] = {SettingName.RETENTION: Retention(minutes=-1, megabytes=-1)}
    (batch,) = proposed(own, "retention-unbounded", backlog=3 * GIB).batches

    golden(batch.steps[0].why)
