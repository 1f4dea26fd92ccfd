"""Text about hundreds of steps in many namespaces: sums, largest effects first, and where all of it is."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.loss import NOTHING_LOST, Loss, TopicLoss
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, Retention, Setting, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, GuardResult, Step, Touched
from pulsar_steward.report.approval import labels
from tests.builders import NOW, a_batch, a_plan, a_split, a_step
from tests.questions import FIRST, question

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
    return question(a_plan(batch), batch, **{"page": PAGE, **fields})


def test_many_steps_are_told_by_sums(golden: Golden) -> None:
    words = words_of(a_group(60))
    golden(words)


def test_the_text_does_not_grow_with_the_namespaces() -> None:
    """The question about 600 steps is less than a tenth longer than one about 150, and each step has its tick."""
    large, larger = words_of(a_group(50)), words_of(batch := a_group(200))
    assert len(larger) < 1.1 * len(large)
    assert len(labels(batch)) == 600


def test_the_page_of_the_plan_is_the_only_link() -> None:
    """The question's only link leads to the plan's page, and is left out if the page's address is not known."""
    assert re.findall(r"\]\([^)]*\)", words_of(a_group(20))) == [f"]({PAGE})"]
    assert re.findall(r"\]\([^)]*\)", words_of(a_group(20), page="")) == []


def test_what_is_lost_is_summed_up() -> None:
    """Headings count the steps that delete messages or stop producers, and the headline tells the total loss."""
    words, lost = words_of(a_group(60)), sum(number << 20 for number in range(1, 60, 2))
    assert words.startswith(
        f"east: Deletes up to {lost >> 20} MiB of consumed messages of 30 topics in 30 namespaces, now ("
    )
    assert "### LETS BROKERS DELETE MESSAGES (60 steps)" in words
    assert "### Stops producers of topics over the new limit (60 steps)" in words
    assert f"in 30 namespaces together at once: {lost >> 20} MiB at most" in words


def test_what_cannot_be_undone_is_said_of_many() -> None:
    """The question says of many splits that they cannot be undone; splits have no new values."""
    steps = [a_step(a_split(namespace=f"a/n{n}"), step_id=f"b1.s{n:02d}") for n in range(1, 41)]
    words = words_of(a_batch(*steps, kind="bundle_split", parts=(1,) * 40))
    assert "It cannot be undone." in words
    assert "120 clients reconnect" in words
    assert "### New values" not in words


def test_a_second_person_reads_how_much_the_first_one_approved() -> None:
    batch = a_group(60)
    ids = tuple(step.step_id for step in batch.steps)
    first = msgspec.structs.replace(FIRST, step_ids=ids[:100])
    assert "alice approved 100 of 180 steps" in words_of(batch, first=first)
