"""A retention that is far too long, and a topic's own quota: never silently, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.planners.settings.facts import TopicSettings
from tests.builders import a_policy, planning_facts_with
from tests.cases import cases
from tests.unit.planners.proposals import changes
from tests.unit.planners.test_settings import DAY, GIB, MIB, NAMESPACE, of_settings, proposed, size

if TYPE_CHECKING:
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
