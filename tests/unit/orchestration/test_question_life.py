"""The life of a task that asks: it asks only what stands, and leaves when its question ends."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
import pytest
from airflow.providers.common.compat.sdk import AirflowSkipException, TaskDeferred
from airflow.providers.standard.triggers.hitl import HITLTrigger
from airflow.triggers.base import TriggerEvent
from sqlalchemy import Engine, create_engine
from sqlalchemy.event import listen

from pulsar_steward.apply.gate import ask_for_permit
from pulsar_steward.errors import LedgerError, Refused
from pulsar_steward.ledger.publishing import QuestionChanges
from pulsar_steward.ledger.rows import BatchKey, Decision
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.orchestration import connections, question_trigger
from pulsar_steward.orchestration.approval import ApproveBatch
from pulsar_steward.orchestration.question_form import (
    APPROVE,
    COMMENT,
    LEFT_OUT,
    NEVER,
    QUESTION,
    REJECT,
    SNOOZE,
    SNOOZE_DAYS,
    STEPS,
    UNTIL_WORSE,
)
from pulsar_steward.orchestration.question_trigger import END, QuestionTrigger, is_end
from pulsar_steward.runtime import installed_airflow
from pulsar_steward.runtime.installed_airflow import InstalledAirflow
from tests.apply.worksite import RUN, Worksite, a_question
from tests.asking import a_context, a_task, answer_of, asked
from tests.builders import ASKED_DIGEST, a_batch, a_plan, a_step, waiting_in
from tests.cases import row_by_row

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection

    from pulsar_steward.model.plan import Plan
    from tests.asking import AirflowRows

ANSWERED = TriggerEvent({"chosen_options": [APPROVE]})  # type: ignore[no-untyped-call]  # Airflow has no types there


def a_trigger(**fields: Any) -> QuestionTrigger:
    """A trigger that looks into the ledger again and again."""
    usual: dict[str, Any] = {
        "plan_id": "p",
        "batch_id": "b1",
        "look_every_seconds": 0.01,
        "ti_id": uuid4(),
        "options": [APPROVE],
        "params": {},
        "timeout_datetime": datetime.now(UTC) + timedelta(hours=1),
    }
    return QuestionTrigger(**{**usual, **fields})


def fired(trigger: QuestionTrigger) -> list[Any]:
    """Event of the trigger, in at most some seconds."""

    async def events() -> list[Any]:
        return [event.payload async for event in trigger.run()]

    return asyncio.run(asyncio.wait_for(events(), timeout=60))


def answers(monkeypatch: pytest.MonkeyPatch, wait: Callable[[], Any]) -> list[str]:
    """Has Airflow's trigger give an answer once it has waited; returns what became of that wait."""
    seen: list[str] = []

    async def run(_: HITLTrigger) -> AsyncIterator[TriggerEvent]:
        try:
            await wait()
            yield ANSWERED
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    monkeypatch.setattr(HITLTrigger, "run", run)
    return seen


def ledger_says(monkeypatch: pytest.MonkeyPatch, *words: str | Exception | None) -> list[frozenset[BatchKey]]:
    """Has the ledger say this of all that is asked, in turn, the last one for ever; returns what was asked."""
    said = list(words)
    asked: list[frozenset[BatchKey]] = []

    def read_over(batches: Collection[BatchKey]) -> dict[BatchKey, str]:
        asked.append(frozenset(batches))
        now = said.pop(0) if len(said) > 1 else said[0]
        if isinstance(now, Exception):
            raise now
        return {} if now is None else dict.fromkeys(batches, now)

    monkeypatch.setattr(question_trigger, "read_over", read_over)
    return asked


def test_an_answer_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trigger ends with the answer of Airflow's own trigger, also after several looks into the ledger."""
    asked = ledger_says(monkeypatch, None)

    async def until_asked_twice() -> None:
        while len(asked) < 2:  # noqa: ASYNC110 - asked by another thread, which sets no event of this loop
            await asyncio.sleep(0.01)

    answers(monkeypatch, until_asked_twice)
    assert fired(a_trigger()) == [ANSWERED.payload]
    assert set(asked) == {frozenset({("p", "b1")})}


def test_the_end_of_the_question_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = answers(monkeypatch, lambda: asyncio.sleep(3600))
    ledger_says(monkeypatch, None, None, "it was seen otherwise")
    (event,) = fired(a_trigger())
    assert event == {END: "it was seen otherwise"}
    assert is_end(event)
    assert seen == ["cancelled"]


def test_a_ledger_that_cannot_be_read_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question waits on while the ledger cannot be read, and ends when the ledger says so."""
    answers(monkeypatch, lambda: asyncio.sleep(3600))
    ledger_says(monkeypatch, LedgerError("gone"), OSError("no route"), "it went")
    assert fired(a_trigger()) == [{END: "it went"}]


def test_all_questions_of_a_process_share_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """All triggers of a process share one look into the ledger, which goes on until the last question has ended."""
    answers(monkeypatch, lambda: asyncio.sleep(3600))
    every = [("p", f"b{number}") for number in range(200)]
    asked: list[frozenset[BatchKey]] = []

    def read_over(batches: Collection[BatchKey]) -> dict[BatchKey, str]:
        asked.append(frozenset(batches))
        if len(asked) == 1:
            return {}
        return {every[7]: "it went"} if every[7] in batches else dict.fromkeys(batches, "all of it went")

    monkeypatch.setattr(question_trigger, "read_over", read_over)

    async def waited() -> tuple[list[Any], set[Any]]:
        before = asyncio.all_tasks()
        events = [anext(a_trigger(plan_id=plan_id, batch_id=batch_id).run()) for plan_id, batch_id in every]
        found = await asyncio.gather(*events)
        for _ in range(10):  # turns of the loop, in which the look and the waits for answers are over
            await asyncio.sleep(0)
        return [event.payload[END] for event in found], asyncio.all_tasks() - before

    said, left = asyncio.run(asyncio.wait_for(waited(), timeout=60))
    assert said == ["it went" if batch == every[7] else "all of it went" for batch in every]
    assert asked[0] == frozenset(every)
    assert frozenset(every) - {every[7]} in asked
    assert len(asked) < len(every)
    assert left == set()


def test_a_question_that_comes_later_is_looked_for_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that comes after the last one ended is looked for in the ledger as well."""
    answers(monkeypatch, lambda: asyncio.sleep(3600))
    asked = ledger_says(monkeypatch, "it went")

    async def one_after_the_other() -> None:
        for batch_id in ("b1", "b2"):
            await anext(a_trigger(batch_id=batch_id).run())

    asyncio.run(asyncio.wait_for(one_after_the_other(), timeout=60))
    assert asked == [frozenset({("p", "b1")}), frozenset({("p", "b2")})]


def test_a_look_opens_the_ledger_once_and_closes_it(site: Worksite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look reads all questions through one connection of one engine, reports those that ended, and closes it."""
    plan = a_question_of(site)
    site.end(plan)
    opened: list[Engine] = []
    happened: list[str] = []

    def ledger() -> Engine:
        opened.append(create_engine(site.engine.url))
        for name in ("checkout", "checkin", "close"):
            listen(opened[-1], name, lambda *_, name=name: happened.append(name))
        return opened[-1]

    monkeypatch.setattr(connections, "ledger", ledger)
    over = question_trigger.read_over([(plan.plan_id, "b1"), ("another", "b1")])
    assert over == {(plan.plan_id, "b1"): site.ledger.questions.over(plan.plan_id, "b1")}
    assert len(opened) == 1
    assert happened == ["checkout", "checkin", "close"]


def test_a_trigger_that_is_started_anew_waits_for_the_same() -> None:
    """A trigger that is made anew from its serialized form waits for the same question until the same time."""
    first = a_trigger()
    name, arguments = first.serialize()
    assert name == f"{QuestionTrigger.__module__}.{QuestionTrigger.__name__}"
    second = QuestionTrigger(**arguments)
    assert second.serialize() == first.serialize()
    assert (second.plan_id, second.batch_id, second.timeout_datetime) == ("p", "b1", first.timeout_datetime)


@pytest.mark.parametrize("event", [{}, {END: "x", "chosen_options": [APPROVE]}, None, [END], {"chosen_options": []}])
def test_only_the_triggers_own_event_is_an_end(event: object) -> None:
    """An event with any other content than the trigger's own end is not taken for the end of the question."""
    assert not is_end(event)


# -- the task


def a_question_of(site: Worksite) -> Plan:
    """A plan with one question, which nobody was asked yet."""
    plan = site.proposed(site.move(0))
    return site.record(plan, questions=QuestionChanges(asked=(a_question(plan),)))


def an_approval(site: Worksite) -> dict[str, Any]:
    """The event of a person's approval."""
    return answer_of(APPROVE, {QUESTION: ASKED_DIGEST, STEPS: ["b1.s01"], COMMENT: ""}, site.clock())


@pytest.mark.usefixtures("airflow_rows")
def test_a_task_waits_in_our_trigger(site: Worksite) -> None:
    """A task that asks waits in Steward's own trigger, until the time that is recorded with its question."""
    plan = a_question_of(site)
    with pytest.raises(TaskDeferred) as deferred:
        a_task(plan).execute(a_context())
    assert isinstance(deferred.value.trigger, QuestionTrigger)
    assert (deferred.value.trigger.plan_id, deferred.value.trigger.batch_id) == (plan.plan_id, "b1")
    assert deferred.value.method_name == "execute_complete"
    (waiting,) = waiting_in(site.engine, site.clock())
    assert waiting.ends_at == deferred.value.trigger.timeout_datetime


def asked_form(site: Worksite, plan: Plan, run: str = RUN) -> ApproveBatch:
    """The task, as it waits for an answer to a plan that was just recorded."""
    return asked(site.record(plan, questions=QuestionChanges(asked=(a_question(plan),))), run=run)


@pytest.mark.usefixtures("airflow_rows")
def test_a_question_about_several_namespaces_lets_some_be_left_out(site: Worksite) -> None:
    names = ["shop/a", "shop/b"]
    changes = [
        ChangeSetting(namespace=name, name=SettingName.TTL, before=None, after=TimeToLive(seconds=0)) for name in names
    ]
    plan = site.proposed(*changes)
    plan = msgspec.structs.replace(plan, batches=(msgspec.structs.replace(plan.batches[0], parts=(1, 1)),))
    task = asked_form(site, plan)
    left_out = task.params.get_param(LEFT_OUT)
    assert (left_out.value, left_out.schema["items"]["enum"]) == ([], names)
    alone = asked_form(site, site.proposed(changes[0]), "dag/another run/0")
    assert LEFT_OUT not in alone.params


@pytest.mark.usefixtures("airflow_rows")
def test_every_step_may_be_taken_out(site: Worksite) -> None:
    """The form's field for steps accepts null, which Airflow sends when every step is taken out."""
    task = asked_form(site, site.proposed(site.move(0)))
    steps = task.params.get_param(STEPS)
    assert steps.value == ["b1.s01"]
    assert steps.resolve(None) is None


def test_what_ended_is_not_asked(site: Worksite) -> None:
    plan = a_question_of(site)
    site.end(plan)
    with pytest.raises(AirflowSkipException, match="nobody is asked: the question ended"):
        a_task(plan).execute(a_context())
    assert site.ledger.batch(plan.plan_id, "b1").requests == ()


@pytest.mark.usefixtures("airflow_rows")
def test_what_another_run_asks_is_not_asked_here(site: Worksite) -> None:
    plan = a_question_of(site)
    site.ask(plan, "pulsar_remediate/other/0")
    with pytest.raises(AirflowSkipException, match="nobody is asked here: run pulsar_remediate/other/0 asks about it"):
        a_task(plan).execute(a_context())
    assert [each.run for each in waiting_in(site.engine, site.clock())] == ["pulsar_remediate/other/0"]


def test_a_question_that_ended_is_no_answer(site: Worksite) -> None:
    """The task is skipped with the reason for a question that ended while it waited, and no answer is recorded."""
    plan = a_question_of(site)
    site.ask(plan)
    site.end(plan)
    with pytest.raises(AirflowSkipException, match="it was seen otherwise"):
        a_task(plan).execute_complete(a_context(), {END: "whatever the trigger says"})
    assert site.ledger.answers(plan.plan_id, "b1") == ()
    assert waiting_in(site.engine, site.clock()) == []


def test_an_end_that_the_ledger_does_not_know_is_no_approval(site: Worksite) -> None:
    """An event of an end that the ledger does not have is recorded as a malformed answer."""
    plan = a_question_of(site)
    site.ask(plan)
    told = a_task(plan).execute_complete(a_context(), {END: "made up"})
    assert told["decision"] == Decision.MALFORMED.value


def test_an_answer_after_the_end_is_kept_and_permits_nothing(site: Worksite) -> None:
    """An approval after the question's end is recorded in the ledger, and the task is skipped without any change."""
    plan = a_question_of(site)
    site.ask(plan)
    site.end(plan)
    with pytest.raises(AirflowSkipException, match="approved, and it changes nothing: the question ended"):
        a_task(plan).execute_complete(a_context(), an_approval(site))
    (answer,) = site.ledger.answers(plan.plan_id, "b1")
    assert (answer.decision, answer.answered_by) == (Decision.APPROVED, "alice")


def a_setting_of(site: Worksite) -> Plan:
    """A plan with one question about a namespace's setting."""
    change = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
    plan = a_plan(a_batch(a_step(change), kind="retention"))
    return site.record(plan, questions=QuestionChanges(asked=(a_question(plan),)))


@row_by_row(
    "proposed, options", (a_question_of, [APPROVE, REJECT, SNOOZE]), (a_setting_of, [APPROVE, REJECT, SNOOZE, NEVER])
)
@pytest.mark.usefixtures("airflow_rows")
def test_a_question_may_be_snoozed_or_never_wanted(
    site: Worksite, proposed: Callable[[Worksite], Plan], options: list[str]
) -> None:
    task = asked(proposed(site))
    assert task.options == options
    assert (task.params[SNOOZE_DAYS], task.params[UNTIL_WORSE]) == (7, True)
    schema = task.serialized_params[SNOOZE_DAYS]["schema"]
    assert (schema["type"], schema["minimum"], schema["maximum"]) == (["integer", "null"], 1, 90)


@pytest.mark.usefixtures("airflow_rows")
def test_the_page_of_airflow_3_1_is_given_no_fourth_answer(site: Worksite, monkeypatch: pytest.MonkeyPatch) -> None:
    """With four its page has no button for any of them; what is left out is *never*."""
    monkeypatch.setattr(installed_airflow, "installed_airflow", lambda: InstalledAirflow("3.1.8", "1.21.0"))
    assert asked(a_setting_of(site)).options == [APPROVE, REJECT, SNOOZE]


def test_no_button_of_a_form_is_emphasised_and_silence_rejects(site: Worksite, airflow_rows: AirflowRows) -> None:
    """Airflow's page paints the options of `defaults`, and all where that is null; the trigger's count at its end."""
    with pytest.raises(TaskDeferred) as deferred:
        a_task(a_question_of(site)).execute(a_context())
    assert [row.defaults for row in airflow_rows.all()] == [[]]
    assert deferred.value.trigger.serialize()[1]["defaults"] == [REJECT]


@pytest.mark.usefixtures("airflow_rows")
def test_no_field_of_a_form_looks_required_but_the_one_that_nobody_sees(site: Worksite) -> None:
    """Airflow marks a field as required that may not be null: people would fill it in for an approval."""
    fields = asked(a_setting_of(site)).serialized_params
    assert [name for name, field in fields.items() if "null" not in field["schema"]["type"]] == [QUESTION]


def test_a_snooze_is_kept_and_permits_nothing(site: Worksite) -> None:
    """A snooze is recorded with the time of its end, silences its batch until then, and gives it no permit."""
    plan = a_setting_of(site)
    site.ask(plan)
    event = an_approval(site) | {"chosen_options": [SNOOZE]}
    event["params_input"] |= {SNOOZE_DAYS: 2, UNTIL_WORSE: False}
    told = a_task(plan).execute_complete(a_context(), event)
    assert told["decision"] == Decision.SNOOZED.value
    (answer,) = site.ledger.answers(plan.plan_id, "b1")
    until = event["responded_at"] + timedelta(days=2)
    assert (answer.decision, answer.silent_until) == (Decision.SNOOZED, until)
    before, after = (
        site.ledger.questions.silences(plan.named_cluster, until + timedelta(seconds=by)) for by in (-1, 0)
    )
    assert [(each.answer_id, each.until, each.until_worse) for each in before] == [(answer.answer_id, until, False)]
    assert after == ()
    with pytest.raises(Refused, match="snoozed"):
        ask_for_permit(site.ledger, plan.plan_id, "b1", RUN, site.clock(), site.policy)


def test_a_never_tells_its_policy_entry(site: Worksite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A "never" is logged and recorded with its policy entry, line by line, and then refuses its batch a permit."""
    plan = a_setting_of(site)
    site.ask(plan)
    said: list[str] = []
    log = SimpleNamespace(info=lambda words, *values: said.append(words % values))
    monkeypatch.setattr(ApproveBatch, "log", log)  # Airflow's own goes to the task's file
    a_task(plan).execute_complete(a_context(), an_approval(site) | {"chosen_options": [NEVER]})
    (answer,) = site.ledger.answers(plan.plan_id, "b1")
    assert answer.decision is Decision.NEVER
    entry = (answer.policy_entry or "").splitlines()
    assert "  shop/orders:" in entry
    assert [line for line in said if line in entry] == entry
    with pytest.raises(Refused, match="never"):
        ask_for_permit(site.ledger, plan.plan_id, "b1", RUN, site.clock(), site.policy)
