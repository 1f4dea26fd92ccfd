"""A topic's own quota: where the topic retains more and needs more than its namespace, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.planners.settings.facts import TopicSettings
from tests.builders import a_policy, planning_facts_with
from tests.cases import cases
from tests.unit.planners.test_settings import DAY, GIB, MIB, NAMESPACE, of_settings, size

if TYPE_CHECKING:
    from pulsar_steward.planners.base import Proposal
    from tests.golden import Golden

TOPIC = f"persistent://{NAMESPACE}/basket"
SMALL, LARGE = Retention(minutes=DAY, megabytes=20_480), Retention(minutes=DAY, megabytes=204_800)
NEAR = "backlog-near-quota"


def found(check: str = NEAR, subject: str = TOPIC, severity: Severity = Severity.CRITICAL) -> Finding:
    """A finding of a topic."""
    return Finding(check_id=check, severity=severity, subject=subject, evidence="made up", figures={})


def proposed(
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
    assert limits(proposed(**more)) == [(TOPIC, limit)]


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
    proposal = proposed(**more)

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
    proposal = proposed(**more)

    assert not proposal.batches
    assert words in " ".join(proposal.notes)


def test_partitions_share_one_quota_and_all_that_was_found_of_them(golden: Golden) -> None:
    """All findings of a topic's partitions lead to one step for the topic, which names the namespace's quota."""
    findings = tuple(
        found(check, f"{TOPIC}-partition-{number}")
        for number in (0, 1)
        for check in (NEAR, "producer-hold-restart-risk")
    )
    (batch,) = proposed(findings=findings).batches
    (step,) = batch.steps

    assert batch.findings == findings
    golden(batch.title)
    golden(step.why)
    assert "its namespace's quota is 10 GiB" in step.why
    golden(step.undo_note)
