"""All checks together: each has its say, also where another one breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

from pulsar_steward.model.catalog.info import CheckInfo
from pulsar_steward.model.finding import Finding, Outlook, Severity
from pulsar_steward.policy.schema import Policy
from steward_spark.checks.check import Check, Judgement
from steward_spark.diagnosing import judged
from tests.builders import NOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from steward_spark.frames import Frames

pytestmark = pytest.mark.spark


def info(check_id: str) -> CheckInfo:
    """A made-up check's words."""
    return CheckInfo(check_id=check_id, title="made up", advice=(), source="here")


def broken(_frames: Frames, _policy: Policy) -> NoReturn:
    """A check with a defect."""
    raise ZeroDivisionError("division by zero")


def test_a_broken_check_cannot_tell_and_stops_no_other(
    frames_of: Callable[[dict[str, list[dict[str, object]]]], Frames],
) -> None:
    """Its verdict says that it failed itself; silence would look like health."""
    about = {"taken_at": NOW, "unread_brokers": [], "unread_namespaces": [], "cluster": "east"}
    frames = frames_of({"snapshot": [about]})
    fine = Check(info("fine"), lambda _frames, _policy: Judgement(quiet="All is well."))

    findings, verdicts = judged(frames, Policy(), [Check(info("broken"), broken), fine])

    assert findings == []
    assert [(verdict.check_id, verdict.outlook) for verdict in verdicts] == [
        ("broken", Outlook.UNKNOWN),
        ("fine", Outlook.CLEAR),
    ]
    assert "ZeroDivisionError: division by zero" in verdicts[0].reason


def test_a_verdict_counts_what_is_not_listed(
    frames_of: Callable[[dict[str, list[dict[str, object]]]], Frames],
) -> None:
    """Beside the sentence, which counts all but the one that it tells."""
    about = {"taken_at": NOW, "unread_brokers": [], "unread_namespaces": [], "cluster": "east"}
    found = tuple(
        Finding(check_id="many", severity=Severity.WARNING, subject=each, evidence="Too much.") for each in "ab"
    )
    many = Check(info("many"), lambda _frames, _policy: Judgement(findings=found, more=7))

    _, (verdict,) = judged(frames_of({"snapshot": [about]}), Policy(), [many])

    assert (verdict.reason, verdict.more) == ("Too much. And 8 more.", 7)


def test_jobs_say_which_check_they_are_of(
    frames_of: Callable[[dict[str, list[dict[str, object]]]], Frames],
) -> None:
    """As Spark's pages show it, though several checks are carried out at a time."""
    about = {"taken_at": NOW, "unread_brokers": [], "unread_namespaces": [], "cluster": "east"}

    def judge(frames: Frames, _policy: Policy) -> Judgement:
        return Judgement(quiet=str(frames.topics.sparkSession.sparkContext.getLocalProperty("spark.job.description")))

    names = [f"check-{number}" for number in range(8)]

    _, verdicts = judged(frames_of({"snapshot": [about]}), Policy(), [Check(info(name), judge) for name in names])

    assert [verdict.reason for verdict in verdicts] == names
