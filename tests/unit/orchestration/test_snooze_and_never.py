"""The two kinds of no that keep a goal silent: for some days, and for good."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
import yaml

from pulsar_steward.ledger.rows import Answer, Decision
from pulsar_steward.model.plan import ROLLBACK, Batch
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.orchestration.approval_response import ApprovalQuestion, interpret
from pulsar_steward.orchestration.question_form import APPROVE, NEVER, REJECT, SNOOZE, SNOOZE_DAYS, UNTIL_WORSE
from pulsar_steward.policy.approval import ApprovalPolicy
from tests.builders import ASKED_DIGEST, NOW, a_batch, a_plan, a_step
from tests.unit.orchestration.answering import FIRST, GONE, POLICY, RUN, event

TTL = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
SETTING = a_plan(a_batch(a_step(TTL, step_id="b1.s01"), kind="retention"))
OF_NAMESPACE = ApprovalQuestion(plan=SETTING, batch_id="b1", run=RUN, asked_digest=ASKED_DIGEST)


def said(option: str, asked: ApprovalQuestion = OF_NAMESPACE, **form: Any) -> Answer:
    """An answer with the only step ticked, and these fields of the form."""
    filled = {"steps": ["b1.s01"], "comment": "", SNOOZE_DAYS: 7, UNTIL_WORSE: True, **form}
    given_event = event(
        chosen_options=[option], params_input={name: value for name, value in filled.items() if value is not GONE}
    )
    return interpret(given_event, asked, POLICY, NOW)


@pytest.mark.parametrize("days", [1, 7, 90])
@pytest.mark.parametrize("until_worse", [True, False])
def test_a_snooze_is_for_so_many_days(days: int, until_worse: bool) -> None:
    """A snooze lasts the given days and permits no step; its reason says whether it ends when things get worse."""
    answer = said(SNOOZE, snooze_days=days, until_it_gets_worse=until_worse, comment="after the fair")
    assert (answer.decision, answer.step_ids, answer.digest, answer.expires_at) == (Decision.SNOOZED, (), None, None)
    assert (answer.silent_until, answer.until_worse) == (NOW + timedelta(days=days), until_worse)
    assert ("worse" in answer.reason, answer.comment) == (until_worse, "after the fair")


@pytest.mark.parametrize("days", [GONE, None], ids=["no field", "an empty field"])
def test_a_snooze_without_days_is_the_usual_one(days: object) -> None:
    """A snooze without the form's fields, or with the days left empty, lasts seven days, or until it gets worse."""
    answer = said(SNOOZE, snooze_days=days, until_it_gets_worse=GONE)
    assert (answer.silent_until, answer.until_worse) == (NOW + timedelta(days=7), True)


HUGE = pytest.param(10**5000, id="5,000 digits")


@pytest.mark.parametrize("days", [0, -1, 91, 7.0, float("nan"), float("inf"), "7", True, [7], HUGE])
def test_a_snooze_of_no_known_length_is_none(days: object) -> None:
    """A snooze whose number of days is invalid is malformed, and silences nothing."""
    answer = said(SNOOZE, snooze_days=days)
    assert (answer.decision, answer.silent_until) == (Decision.MALFORMED, None)
    assert len(answer.reason) < 400


@pytest.mark.parametrize("worse", [None, 1, "true", []])
def test_until_it_gets_worse_is_yes_or_no(worse: object) -> None:
    """A snooze is malformed where the field `until_it_gets_worse` is not a boolean."""
    assert said(SNOOZE, until_it_gets_worse=worse).decision is Decision.MALFORMED


def test_never_proposes_a_policy_entry_and_changes_nothing() -> None:
    """A "never" permits no step, and its policy entry keeps the kinds that the policy already never asks about."""
    answer = said(NEVER)
    assert (answer.decision, answer.step_ids, answer.silent_until) == (Decision.NEVER, (), None)
    entry = {"namespaces": {"shop/orders": {"approval": {"never_ask": ["retention"]}}}}
    assert yaml.safe_load(answer.policy_entry or "") == entry
    more = said(NEVER, msgspec.structs.replace(OF_NAMESPACE, never_asked=("backlog_quota",)))
    entry["namespaces"]["shop/orders"]["approval"]["never_ask"].insert(0, "backlog_quota")
    assert yaml.safe_load(more.policy_entry or "") == entry


@pytest.mark.parametrize(
    ("batch", "options"),
    [
        pytest.param(a_batch(a_step(TTL)), (APPROVE, REJECT, SNOOZE, NEVER), id="of a namespace"),
        pytest.param(a_batch(), (APPROVE, REJECT, SNOOZE), id="moves between brokers"),
        pytest.param(
            a_batch(a_step(TTL), a_step(msgspec.structs.replace(TTL, namespace="a/b"))),
            (APPROVE, REJECT, SNOOZE),
            id="of two namespaces",
        ),
        pytest.param(a_batch(a_step(TTL), kind=ROLLBACK), (APPROVE, REJECT), id="a rollback"),
        pytest.param(
            a_batch(a_step(msgspec.structs.replace(TTL, namespace="a/b c"))),
            (APPROVE, REJECT, SNOOZE),
            id="of a name that no policy can hold",
        ),
    ],
)
def test_only_what_can_be_meant_may_be_chosen(batch: Batch, options: tuple[str, ...]) -> None:
    """A question offers only the options that apply to its batch, and any other choice is malformed."""
    asked = ApprovalQuestion(plan=a_plan(batch), batch_id="b1", run=RUN, asked_digest=ASKED_DIGEST)
    assert asked.options == options
    for option, decision in {SNOOZE: Decision.SNOOZED, NEVER: Decision.NEVER}.items():
        assert said(option, asked).decision is (decision if option in options else Decision.MALFORMED)


@pytest.mark.parametrize("option", [SNOOZE, NEVER])
def test_whose_answer_it_is_not_cannot_silence(option: str) -> None:
    """A person whom the policy does not name cannot snooze or answer "never", and a second approver can."""
    policy = ApprovalPolicy(assigned_users=("bob",))
    given_event = event(chosen_options=[option])
    assert interpret(given_event, OF_NAMESPACE, policy, NOW).decision is Decision.MALFORMED
    first = msgspec.structs.replace(FIRST, plan_id=SETTING.plan_id, step_ids=("b1.s01",))
    second = msgspec.structs.replace(OF_NAMESPACE, voice=2, first=first)
    answer = said(option, second)
    assert (answer.decision, answer.voice) == ({SNOOZE: Decision.SNOOZED, NEVER: Decision.NEVER}[option], 2)


@pytest.mark.parametrize("option", [SNOOZE, NEVER])
def test_a_comment_that_cannot_be_kept_does_not_undo_a_no(option: str) -> None:
    """A snooze or a "never" still counts when its comment is not a text, and its reason says so."""
    answer = said(option, comment=7)
    assert answer.decision in {Decision.SNOOZED, Decision.NEVER}
    assert "the comment is not a text" in answer.reason
