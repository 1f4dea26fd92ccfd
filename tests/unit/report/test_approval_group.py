"""Text about hundreds of steps in many namespaces: sums, largest effects first, and where all of it is."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.ledger.rows import Decision, RecordedAnswer
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.loss import NOTHING_LOST, Loss, TopicLoss
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, GuardResult, Step, Touched
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.approval import body, labels
from pulsar_steward.report.approval_group import MAX_ROWS, MAX_STEPS_IN_FULL
from tests.builders import NOW, a_batch, a_plan, a_split, a_step

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Batch
    from tests.golden import Golden

PAGE = "/steward/plans/made-up#b1"
PASSED = (GuardResult(guard="setting_as_planned", passed=True, reason="as it was"),)


def kept(minutes: int) -> Retention:
    """A retention of so many minutes."""
    return Retention(minutes=minutes, megabytes=-1)


def held(gibibytes: int) -> BacklogQuota:
    """A size quota that stops producers."""
    return BacklogQuota(limit_bytes=gibibytes << 30, policy=QuotaPolicy.HOLD)


def settings_of(number: int) -> tuple[tuple[SettingName, Setting, Setting], ...]:
    """Settings of a namespace; every third one had another retention before."""
    return (
        (SettingName.RETENTION, kept(10_080 + number % 3), kept(1440)),
        (SettingName.SIZE_QUOTA, held(9), held(4)),
        (SettingName.TTL, TimeToLive(seconds=600), TimeToLive(seconds=7200)),
    )


def a_group(namespaces: int) -> Batch:
    """A batch of three settings in each of so many namespaces; the later ones lose more."""
    steps: list[Step] = []
    for number in range(namespaces):
        name = f"{'shop' if number % 2 else 'bank'}/ns-{number:03d}"
        for setting, before, after in settings_of(number):
            loses = setting is SettingName.RETENTION and number % 2
            topics = (TopicLoss(topic=f"persistent://{name}/t", messages=0, bytes=number << 20),)
            lost = Loss(topics=topics, messages=0, bytes=number << 20) if loses else NOTHING_LOST
            more: dict[str, Any] = {"loss": lost} if setting is SettingName.RETENTION else {}
            if setting is SettingName.TTL:
                more["averts"] = Loss(topics=topics, messages=number, bytes=number << 10)
            change = ChangeSetting(namespace=name, name=setting, before=before, after=after)
            steps.append(
                a_step(
                    change,
                    step_id=f"b1.s{len(steps) + 1:02d}",
                    why=f"reason {number}",
                    touched=Touched(producers=0, consumers=0, topics=number, coordinators=0),
                    guards=PASSED,
                    undo=change.inverse,
                    **more,
                )
            )
    findings = tuple(
        Finding(
            check_id="retention-unbounded" if number % 2 else "backlog-near-quota",
            severity=Severity.CRITICAL if number % 5 == 0 else Severity.WARNING,
            subject=f"ns-{number}",
            evidence=f"Made up {number}.",
            figures={},
            first_seen=NOW - timedelta(hours=number),
            snapshots_in_a_row=number,
        )
        for number in range(namespaces)
    )
    return a_batch(*steps, kind="retention", title="many namespaces", findings=findings, parts=(3,) * namespaces)


def words_of(batch: Batch, **fields: Any) -> str:
    """Text of the question."""
    plan = a_plan(batch)
    words = body(plan, batch, Policy(), **{"page": PAGE, **fields})
    return words.replace(plan.digest, "DIGEST").replace(plan.digest[:12], "DIGEST")


def test_many_steps_are_told_by_sums(golden: Golden) -> None:
    words = words_of(a_group(60))
    assert len(words.split("## Details")[0].split()) <= 120
    golden(words)


def test_the_text_does_not_grow_with_the_namespaces() -> None:
    """The question about 600 steps is less than a tenth longer than one about 150, and each step has its tick."""
    large, larger = words_of(a_group(50)), words_of(batch := a_group(200))
    assert len(larger) < 1.1 * len(large)
    assert len(labels(batch)) == 600
    assert f"And {200 - MAX_ROWS} more namespaces." in larger
    assert "shop/ns-199" in larger
    assert "bank/ns-010" not in larger


def test_the_page_of_the_plan_is_the_only_link() -> None:
    """The question's only link leads to the plan's page, and is left out if the page's address is not known."""
    assert re.findall(r"\]\([^)]*\)", words_of(a_group(20))) == [f"]({PAGE})"]
    assert re.findall(r"\]\([^)]*\)", words_of(a_group(20), page="")) == []


def test_what_is_lost_is_summed_up_in_the_largest_letters() -> None:
    """The top headings count all steps that delete messages or stop producers, and the text gives the total loss."""
    words = words_of(a_group(60))
    deletes, stops = re.findall(r"^# .*$", words, re.MULTILINE)
    assert deletes == "# Each of 60 steps LETS BROKERS DELETE MESSAGES"
    assert stops == "# Each of 60 steps stops producers of a topic that is over it"
    lost = sum(number << 20 for number in range(1, 60, 2))
    assert f"in 30 namespaces together at once: {lost >> 20} MiB at most" in words


def test_few_steps_are_told_one_by_one() -> None:
    """Few steps are listed one by one, also if they are in several namespaces."""
    few = words_of(a_group(MAX_STEPS_IN_FULL // 3))
    assert all(step.step_id in few for step in a_group(MAX_STEPS_IN_FULL // 3).steps)
    assert "Namespaces that you leave out stay as they are" in few
    assert PAGE not in few


def test_many_steps_in_one_namespace_are_told_one_by_one() -> None:
    change = settings_of(0)[0]
    steps = [
        a_step(
            ChangeSetting(namespace="a/b", topic=f"persistent://a/b/{n}", name=change[0], before=None, after=change[2]),
            step_id=f"b1.s{n:02d}",
        )
        for n in range(1, 50)
    ]
    words = words_of(a_batch(*steps))
    assert all(step.step_id in words for step in steps)
    assert "leave out" not in words


def test_what_cannot_be_undone_is_said_of_many() -> None:
    """The question says of many splits that they cannot be undone; splits have no value table."""
    steps = [a_step(a_split(namespace=f"a/n{n}"), step_id=f"b1.s{n:02d}") for n in range(1, 41)]
    words = words_of(a_batch(*steps, kind="bundle_split", parts=(1,) * 40))
    assert "It cannot be undone." in words
    assert "120 clients reconnect" in words
    assert "| value |" not in words


def test_a_second_person_reads_how_much_the_first_one_approved() -> None:
    batch = a_group(60)
    ids = tuple(step.step_id for step in batch.steps)
    first = RecordedAnswer(
        answer_id=1,
        plan_id="p",
        batch_id="b1",
        run="r/r/0",
        decision=Decision.APPROVED,
        answered_by="alice",
        answered_at=NOW,
        reason="made up",
        step_ids=ids[:100],
    )
    assert "alice approved 100 of 180 steps" in words_of(batch, first=first)
    assert "and 95 more" in words_of(batch, first=first)


@pytest.mark.parametrize("evil", ["<img src=x>|[a](b)`", "![a](b)", "a\u202eb", "**a**\n# b"])
def test_names_in_a_group_stay_names(evil: str) -> None:
    """Outside names are escaped in the question about a group, so that they add no links and no headings."""
    change = ChangeSetting(namespace=f"a/{evil}", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
    steps = [*a_group(10).steps, a_step(change, step_id="b1.s99", why=evil, loss=Loss(messages=0, bytes=1 << 40))]
    words = words_of(a_batch(*steps, title=evil, parts=(30, 1))).split("### The exact calls")[0]
    assert evil not in words
    assert re.findall(r"(?<!\\)\]\([^)]*\)", words) == [f"]({PAGE})"]
    assert len(re.findall(r"^# ", words, re.MULTILINE)) == 2  # what deletes messages, and what stops producers
