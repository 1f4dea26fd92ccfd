"""Shown is recorded: an answer counts for the text that it was given to, and for nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from pulsar_steward.errors import Refused
from pulsar_steward.ledger.publishing import QuestionChanges
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.orchestration import rolling_back
from pulsar_steward.orchestration.approval_response import ApprovalQuestion, interpret
from pulsar_steward.orchestration.question_form import APPROVE, NEVER, QUESTION, REJECT, SNOOZE
from pulsar_steward.orchestration.question_trigger import END
from pulsar_steward.orchestration.shown import ShownQuestion, asked_digest
from pulsar_steward.policy.approval import ApprovalPolicy
from tests.apply.refusals import assert_refused
from tests.apply.worksite import RUN, a_question, quick_policy, said
from tests.asking import a_context, a_task, answer_of, asked
from tests.builders import ASKED_DIGEST, CLUSTER, NOW, a_batch, a_plan, a_step

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.plan import Plan
    from tests.apply.worksite import Worksite
    from tests.asking import AirflowRows
    from tests.attacks.conftest import Connect

NOES = [(REJECT, Decision.REJECTED), (SNOOZE, Decision.SNOOZED), (NEVER, Decision.NEVER)]


@pytest.fixture(autouse=True)
def _connected(site: Worksite, home: Path, connect: Connect) -> None:
    """The worksite behind Airflow's connections."""
    assert home.is_dir()
    connect(site.simulator, no_policy_file=True)


def a_setting(site: Worksite, namespace: str) -> Plan:
    """A recorded plan with one question about a namespace."""
    change = ChangeSetting(namespace=namespace, name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
    plan = a_plan(a_batch(a_step(change), kind="retention"), snapshot_id=namespace, taken_at=site.clock())
    return site.record(plan, questions=QuestionChanges(asked=(a_question(plan),)))


def answered(site: Worksite, task: Any, option: str, form: dict[str, Any], voice: int = 1, by: str = "alice") -> str:
    """The decision that is recorded for a person's answer."""
    told = task.execute_complete(a_context(voice=voice), answer_of(option, form, site.clock(), by))
    return str(told["decision"])


# -- what Airflow shows is another question


def test_a_task_that_is_cleared_and_names_another_batch_asks_nobody(site: Worksite, airflow_rows: AirflowRows) -> None:
    """Where `choose` names an irreversible split by now, an approver who reads a move approves the move alone."""
    shown, other = site.plan(site.move(0)), site.plan(site.split(1))
    asked(shown)
    page = airflow_rows.form()
    with pytest.raises(AirflowFailException, match=r"still shows an earlier question.* Start a new run"):
        a_task(other).execute(a_context())
    assert (airflow_rows.form(), site.ledger.batch(other.plan_id, "b1").requests) == (page, ())
    assert site.ledger.batch(shown.plan_id, "b1").waiting(site.clock()) == ()  # so that another run can ask it
    assert answered(site, a_task(other), APPROVE, page) == "approved"
    assert_refused(site, other, "holds no answer")
    decisions = [answer.decision for answer in site.ledger.answers(shown.plan_id, "b1")]
    assert decisions == [Decision.NO_ANSWER, Decision.APPROVED]


def test_an_approval_outlives_a_task_that_is_cleared(site: Worksite, airflow_rows: AirflowRows) -> None:
    """What was approved is not taken back because its task is cleared and names another batch."""
    shown, other = site.plan(site.move(0)), site.plan(site.split(1))
    asked(shown)
    assert answered(site, a_task(shown), APPROVE, airflow_rows.form()) == "approved"
    with pytest.raises(AirflowFailException, match="still shows an earlier question"):
        a_task(other).execute(a_context())
    assert said(site.carry_out(shown)) == ["done"]


def test_a_rollback_takes_back_the_batch_that_it_asked_about(site: Worksite, airflow_rows: AirflowRows) -> None:
    """Where another batch was carried out since, a rollback that is cleared asks nobody in the name of the first."""
    wanted = rolling_back.RollbackParams(cluster=CLUSTER, plan_id=None, batch_id=None)
    backs = []
    for bundle in (0, 1):
        plan = site.approved(site.move(bundle))
        assert said(site.carry_out(plan)) == ["done"]
        site.proved(plan)
        (ref,) = rolling_back.choose(wanted, "pulsar_rollback/manual")
        backs.append(site.ledger.plan(ref["plan_id"]))
        site.clock.advance(minutes=30)
    run = "pulsar_rollback/manual/0"
    asked(backs[0], run=run)
    with pytest.raises(AirflowFailException, match="still shows an earlier question"):
        a_task(backs[1]).execute(a_context(run))
    assert backs[0].batches[0].title in airflow_rows.subject(run=run)
    assert site.ledger.batch(backs[1].plan_id, "b1").requests == ()


@pytest.mark.usefixtures("airflow_rows")
def test_a_policy_that_changed_is_asked_about_in_a_new_run(site: Worksite, home: Path) -> None:
    """A page that was written under another policy is not shown again, as its terms are others by now."""
    plan = site.plan(site.move(0))
    asked(plan)
    (home / "policy.yaml").write_text("approval: {assigned_users: [alice]}", encoding="utf-8")
    with pytest.raises(AirflowFailException, match="still shows an earlier question"):
        a_task(plan).execute(a_context())


def test_a_page_whose_text_was_changed_asks_nobody(site: Worksite, airflow_rows: AirflowRows) -> None:
    """A question whose text in Airflow is not the one that was written is not waited for."""
    plan = site.plan(site.split(0))
    asked(plan)
    airflow_rows.change(subject="east: move a bundle (low risk)")
    with pytest.raises(AirflowFailException, match="still shows an earlier question"):
        a_task(plan).execute(a_context())


def test_the_same_question_may_be_asked_again(site: Worksite, airflow_rows: AirflowRows) -> None:
    """A retry, or a task that is cleared by itself, asks what Airflow shows already, also an hour and a move later."""
    plan = site.plan(site.move(0))
    asked(plan)
    page = airflow_rows.form()
    assert answered(site, a_task(plan), REJECT, page) == "rejected"
    site.clock.advance(minutes=60)
    assert said(site.carry_out(site.approved(site.move(1)))) == ["done"]
    asked(plan)
    assert airflow_rows.form() == page
    assert answered(site, a_task(plan), APPROVE, page) == "approved"
    (first, second) = site.ledger.requests(plan.plan_id, "b1", RUN)
    assert first.asked_digest == second.asked_digest == page[QUESTION]


# -- what `choose` hands on is another batch


@pytest.mark.parametrize(("option", "decision"), NOES)
def test_a_no_silences_what_it_was_given_to_and_nothing_else(
    site: Worksite, airflow_rows: AirflowRows, option: str, decision: Decision
) -> None:
    """A no to the question about one namespace is not taken for one about another that `choose` names by now."""
    shown, other = a_setting(site, "shop/orders"), a_setting(site, "shop/bills")
    asked(shown)
    assert answered(site, a_task(other), option, airflow_rows.form()) == decision
    (silence,) = site.ledger.questions.silences(NamedCluster(CLUSTER), site.clock())
    assert (silence.plan_id, silence.decision) == (shown.plan_id, decision)
    assert site.ledger.answers(other.plan_id, "b1") == ()


@pytest.mark.usefixtures("airflow_rows")
def test_the_end_of_another_question_ends_no_wait(site: Worksite) -> None:
    """A question that stands is not left because the one that `choose` names by now has ended."""
    shown = site.asked_without_answer(site.move(0))
    other = site.asked_without_answer(site.split(1))
    asked(shown)
    site.end(other)
    told = a_task(other).execute_complete(a_context(), {END: "it was seen otherwise"})
    assert told["decision"] == Decision.MALFORMED.value
    assert len(site.ledger.answers(shown.plan_id, "b1")) == 1


# -- what an answer carries


def an_answer(option: str, carried: dict[str, Any]) -> Any:
    """Answer recorded where the form is untouched but for the field that says which question it is for."""
    change = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
    plan = a_plan(a_batch(a_step(change), kind="retention"))
    question = ApprovalQuestion(plan=plan, batch_id="b1", run=RUN, asked_digest=ASKED_DIGEST)
    form = {"steps": ["b1.s01"], "comment": "", "messages_may_be_lost": True, **carried}
    return interpret(answer_of(option, form, NOW), question, ApprovalPolicy(), NOW)


@pytest.mark.parametrize("option", [APPROVE, REJECT, SNOOZE, NEVER])
@pytest.mark.parametrize(
    "carried",
    [
        {},
        {QUESTION: None},
        {QUESTION: ""},
        {QUESTION: "b6" * 32},
        {QUESTION: ASKED_DIGEST[:16]},
        {QUESTION: ASKED_DIGEST.upper()},
        {QUESTION: f" {ASKED_DIGEST}"},
        {QUESTION: [ASKED_DIGEST]},
        {QUESTION: True},
        {"asked": ASKED_DIGEST},
    ],
    ids=str,
)
def test_an_answer_that_does_not_say_what_it_answers_is_neither_a_yes_nor_a_no(
    option: str, carried: dict[str, Any]
) -> None:
    """An answer by a program without the field, or with that of a stale page, permits and silences nothing."""
    answer = an_answer(option, carried)
    assert (answer.decision, answer.step_ids, answer.digest) == (Decision.MALFORMED, (), None)
    assert (answer.silent_until, answer.policy_entry, answer.asked_digest) == (None, None, None)
    assert "question" in answer.reason


@pytest.mark.parametrize("option", [APPROVE, REJECT, SNOOZE, NEVER])
def test_an_answer_is_kept_with_what_it_answers(option: str) -> None:
    """An answer that carries the digest of what was shown is recorded with that digest."""
    answer = an_answer(option, {QUESTION: ASKED_DIGEST})
    assert answer.decision is not Decision.MALFORMED
    assert answer.asked_digest == ASKED_DIGEST


def test_a_question_that_was_never_shown_has_no_answer() -> None:
    """A request without a digest takes no answer, whatever that carries."""
    question = ApprovalQuestion(plan=a_plan(), batch_id="b1", run=RUN)
    for form in ({}, {QUESTION: None}, {QUESTION: ""}):
        given = answer_of(APPROVE, {"steps": ["b1.s01"], **form}, NOW)
        assert interpret(given, question, ApprovalPolicy(), NOW).decision is Decision.MALFORMED


def test_a_form_of_another_run_answers_nothing_here(site: Worksite, airflow_rows: AirflowRows) -> None:
    """The same batch asked in two runs is two questions, and an answer to one of them is none to the other."""
    plan, run = site.plan(site.move(0)), "pulsar_remediate/another/0"
    asked(plan)
    asked(plan, run=run)
    assert airflow_rows.form(run=run) != airflow_rows.form()
    assert answered(site, a_task(plan), APPROVE, airflow_rows.form(run=run)) == "malformed"
    assert answered(site, a_task(plan), APPROVE, airflow_rows.form()) == "approved"


SHOWN = ShownQuestion(
    subject="east: one move",
    body="### Why",
    options=[APPROVE, REJECT],
    fields={"steps": {"value": ["b1.s01"], "schema": {"type": "array"}}},
    users=[{"id": "7", "name": "7"}],
)
ABOUT = ApprovalQuestion(plan=a_plan(), batch_id="b1", run=RUN)


@pytest.mark.parametrize(
    ("shown", "about", "policy"),
    [
        ({"subject": "east: two moves"}, {}, "p"),
        ({"body": "### Why not"}, {}, "p"),
        ({"options": [REJECT, APPROVE]}, {}, "p"),
        ({"fields": {"steps": {"value": ["b1.s02"], "schema": {"type": "array"}}}}, {}, "p"),
        ({"fields": {}}, {}, "p"),
        ({"users": []}, {}, "p"),
        ({}, {"plan": a_plan(notes=("seen again",))}, "p"),
        ({}, {"batch_id": "b2"}, "p"),
        ({}, {"run": "pulsar_remediate/another/0"}, "p"),
        ({}, {"voice": 2}, "p"),
        ({}, {}, "q"),
    ],
)
def test_each_part_of_a_question_makes_it_another(shown: dict[str, Any], about: dict[str, Any], policy: str) -> None:
    """Text, form, users, plan, batch, run, approver and policy are each in the digest that answers carry."""
    other = asked_digest(
        msgspec.structs.replace(SHOWN, **shown), msgspec.structs.replace(ABOUT, **about), policy_digest=policy
    )
    assert other != asked_digest(SHOWN, ABOUT, policy_digest="p")


# -- the second person


@pytest.fixture
def two_people(site: Worksite, home: Path) -> Plan:
    """A recorded plan that two people have to approve."""
    (home / "policy.yaml").write_text("approval: {two_people_for: [tc_balance]}", encoding="utf-8")
    site.policy = quick_policy(approval={"two_people_for": ["tc_balance"]})
    return site.plan(site.move(0), site.move(1))


def test_the_first_persons_page_confirms_nothing(site: Worksite, airflow_rows: AirflowRows, two_people: Plan) -> None:
    """An answer to the first question is none to the second, which shows what the first person left ticked."""
    asked(two_people)
    assert answered(site, a_task(two_people), APPROVE, airflow_rows.form()) == "approved"
    asked(two_people, voice=2)
    confirm = a_task(two_people, voice=2)
    assert answered(site, confirm, APPROVE, airflow_rows.form(), voice=2, by="bob") == "malformed"
    assert answered(site, confirm, APPROVE, airflow_rows.form(voice=2), voice=2, by="bob") == "approved"
    assert said(site.carry_out(two_people)) == ["done", "done"]


def test_a_confirmation_is_of_the_first_persons_last_words(
    site: Worksite, airflow_rows: AirflowRows, two_people: Plan
) -> None:
    """A confirmation is void once the first person answered anew, and is not asked for on the page of before."""
    for _ in range(2):
        asked(two_people)
        assert answered(site, a_task(two_people), APPROVE, airflow_rows.form()) == "approved"
        if not site.ledger.answers(two_people.plan_id, "b1")[1:]:
            asked(two_people, voice=2)
            confirmed = answer_of(APPROVE, airflow_rows.form(voice=2), site.clock(), "bob")
            a_task(two_people, voice=2).execute_complete(a_context(voice=2), confirmed)
    with pytest.raises(Refused, match="given anew since the second person was asked"):
        site.carry_out(two_people)
    with pytest.raises(AirflowFailException, match="still shows an earlier question"):
        a_task(two_people, voice=2).execute(a_context(voice=2))
    assert site.untouched()


def test_nobody_confirms_what_the_first_person_took_back(
    site: Worksite, airflow_rows: AirflowRows, two_people: Plan
) -> None:
    """A second approval after the first person's rejection approves nothing, and does not take its place."""
    asked(two_people)
    answered(site, a_task(two_people), APPROVE, airflow_rows.form())
    asked(two_people, voice=2)
    asked(two_people)
    answered(site, a_task(two_people), REJECT, airflow_rows.form())
    confirm = a_task(two_people, voice=2)
    assert answered(site, confirm, APPROVE, airflow_rows.form(voice=2), voice=2, by="bob") == "malformed"
    with pytest.raises(Refused, match="rejected"):
        site.carry_out(two_people)


# -- the gate


@pytest.mark.parametrize("answer_digest", ["b6" * 32, None])
def test_the_gate_takes_no_answer_to_another_text(site: Worksite, answer_digest: str | None) -> None:
    """A recorded approval is refused unless it and the last request are of the same text."""
    plan = site.plan(site.move(0))
    site.approve(plan, asked_digest=answer_digest)
    assert_refused(site, plan, "not given to the text that was shown")


@pytest.mark.parametrize(("minutes", "outcome"), [(6, None), (4, "done")])
def test_no_answer_is_older_than_its_question(site: Worksite, minutes: int, outcome: str | None) -> None:
    """An approval that is dated before its request is refused, but for a difference of clocks of five minutes."""
    plan = site.plan(site.move(0))
    site.approve(plan, answered_at=site.clock() - timedelta(minutes=minutes))
    if outcome is None:
        assert_refused(site, plan, "and was asked for at")
    else:
        assert said(site.carry_out(plan)) == [outcome]
