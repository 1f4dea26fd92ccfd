"""Which plan and batches a run is about, and who is asked."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml
from airflow.providers.common.compat.sdk import AirflowSkipException

from pulsar_steward.errors import Refused
from pulsar_steward.ledger.publishing import NewQuestion, QuestionChanges
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.ledger.silences import SilenceEnd, take_back
from pulsar_steward.model.plan import Plan, content_digest, goal_of
from pulsar_steward.orchestration.remediating import RemediateParams, choose, dry_run, wanted_by
from pulsar_steward.orchestration.run_states import RunStates
from tests.apply.worksite import Worksite, said
from tests.asking import AirflowRows, asked
from tests.builders import CLUSTER, a_batch, a_plan, a_policy, a_step
from tests.cases import cases

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.step import Step

MINE, OTHER = "pulsar_remediate/mine", "pulsar_remediate/other/0"


@pytest.fixture
def plan(site: Worksite) -> Plan:
    """A plan of two questions."""
    batches = (
        a_batch(a_step(site.move(0))),
        a_batch(a_step(site.move(1), step_id="b2.s01"), batch_id="b2", kind="bundle_balance"),
    )
    drawn = a_plan(*batches, taken_at=site.clock())
    asked = (
        NewQuestion(batch_id=batch.batch_id, content_digest=content_digest(drawn, batch), goal=goal_of(batch))
        for batch in batches
    )
    return site.record(drawn, questions=QuestionChanges(asked=tuple(asked)))


def chosen(plan: Plan | None, run: str = MINE, *, published: bool = False) -> list[str]:
    """The batches that a run asks about."""
    named = None if plan is None else plan.plan_id
    wanted = RemediateParams(cluster=CLUSTER, plan_id=named, published=published)
    return [ref["batch_id"] for ref in choose([wanted], run)]


def test_what_stands_is_asked(plan: Plan) -> None:
    """A run asks about all open batches of a plan that is given by name, as the newest one, or as just published."""
    assert chosen(plan) == chosen(None) == chosen(plan, published=True) == ["b1", "b2"]


def test_what_another_run_asks_is_not_asked_again(site: Worksite, plan: Plan) -> None:
    """A question that another run asks is not asked until it is answered there; that run itself may be tried again."""
    site.ask(plan, OTHER)
    assert chosen(plan) == ["b2"]
    assert chosen(plan, OTHER.rpartition("/")[0]) == ["b1", "b2"]
    site.writes.record_answer(site.approval(plan, run=OTHER, decision=Decision.REJECTED, step_ids=(), expires_at=None))
    assert chosen(plan) == ["b1", "b2"]


def test_what_was_approved_in_another_run_is_left_to_it(site: Worksite, plan: Plan) -> None:
    site.approve(plan, run=OTHER)
    assert chosen(plan) == ["b2"]
    assert said(site.carry_out(plan, OTHER)) == ["done"]
    site.clock.advance(minutes=61)
    assert chosen(plan) == ["b2"]


def test_what_was_said_no_to_in_a_third_run_may_be_asked_again(site: Worksite, plan: Plan) -> None:
    site.ask(plan, OTHER)
    site.writes.record_answer(site.approval(plan, run=OTHER))
    assert chosen(plan) == ["b2"]
    no = {"decision": Decision.REJECTED, "step_ids": (), "expires_at": None}
    site.writes.record_answer(site.approval(plan, run="pulsar_remediate/third/0", **no))
    assert chosen(plan) == ["b1", "b2"]


def test_a_run_by_hand_of_which_nothing_is_left_says_who_asks(site: Worksite, plan: Plan) -> None:
    site.ask(plan, OTHER)
    wanted = RemediateParams(cluster=CLUSTER, plan_id=plan.plan_id, kinds=("tc_balance",))
    with pytest.raises(Refused, match=rf"nothing of plan .* is to be asked: b1: run {OTHER} asks about it"):
        choose([wanted], MINE)
    assert choose([msgspec.structs.replace(wanted, published=True)], MINE) == []


@pytest.mark.parametrize("decision", [Decision.SNOOZED, Decision.NEVER])
def test_what_is_silent_is_not_asked_by_hand_either(site: Worksite, plan: Plan, decision: Decision) -> None:
    """A run by hand refuses a silent question and names the command that takes the silence back."""
    site.ask(plan, OTHER)
    until = site.clock() + timedelta(days=1) if decision is Decision.SNOOZED else None
    no = site.approval(plan, run=OTHER, decision=decision, step_ids=(), expires_at=None, silent_until=until)
    number = site.writes.record_answer(no)
    wanted = RemediateParams(cluster=CLUSTER, plan_id=plan.plan_id, kinds=("tc_balance",))
    with pytest.raises(Refused, match=f"b1: nobody is to be asked .*{decision} by .*ask-again {number}"):
        choose([wanted], MINE)
    assert chosen(plan, published=True) == ["b2"]
    assert take_back(site.engine, SilenceEnd(answer_id=number, at=site.clock(), said_by="bob", reason="it may"))
    assert chosen(plan) == ["b1", "b2"]


def test_what_ended_is_not_asked(site: Worksite) -> None:
    """A question that ended is not asked, and the refusal says why; a dry run of it is refused as well."""
    plan = site.asked(site.move(0))
    site.end(plan)
    assert chosen(plan, published=True) == []
    with pytest.raises(Refused, match=r"b1: the question ended at .*: it was seen otherwise"):
        chosen(plan)
    with pytest.raises(Refused, match=r"nothing of plan .* stands"):
        dry_run([RemediateParams(cluster=CLUSTER, plan_id=plan.plan_id)], MINE)


DEMO = {"cluster": "demo"}
OF_EAST, OF_WEST = {"cluster": "east", "plan_ids": ["p1"]}, {"cluster": "west", "plan_ids": ["w1"]}


@cases(
    "params, published, wanted",
    ("the newest of a cluster", {"cluster": "east"}, [], [("east", None, ())]),
    ("a named plan", {"cluster": "east", "plan_id": "p1"}, [], [("east", "p1", ())]),
    ("an empty name is none", {"cluster": "east", "plan_id": ""}, [], [("east", None, ())]),
    ("only some kinds", {"cluster": "east", "kinds": ["tc_balance"]}, [], [("east", None, ("tc_balance",))]),
    ("a publication", DEMO, [OF_EAST], [("east", "p1", ())]),
    ("only some of one", DEMO | {"kinds": ["tc_balance"]}, [OF_EAST], [("east", "p1", ("tc_balance",))]),
    (
        "every publication, as questions of older ones stand",
        {"cluster": "demo", "kinds": None},
        [OF_WEST, OF_EAST | {"plan_ids": ["p1", "p3"]}, OF_EAST | {"plan_ids": ["p2", "p1"]}],
        [("east", "p1", ()), ("east", "p3", ()), ("east", "p2", ()), ("west", "w1", ())],
    ),
    (
        "one among events that are none",
        DEMO,
        [OF_EAST | {"cluster": 7}, {"plan_ids": "x"}, OF_EAST],
        [("east", "p1", ())],
    ),
    ("a publication of no plan", DEMO, [{"cluster": "east"}], [("demo", None, ())]),
)
def test_what_a_run_is_about(
    params: dict[str, Any], published: list[dict[str, Any]], wanted: list[tuple[str, str | None, tuple[str, ...]]]
) -> None:
    """Publications take precedence over a run's cluster and plan, and clusters come in order of their names."""
    expected = tuple(
        RemediateParams(
            cluster=cluster,
            plan_id=plan_id,
            kinds=kinds,
            published=any(plan_id in event.get("plan_ids", ()) for event in published),
        )
        for cluster, plan_id, kinds in wanted
    )
    assert wanted_by(params, published) == expected


def test_a_run_is_asked_about_once() -> None:
    """All tasks of a run are known by one question to Airflow, mapped and unmapped ones."""
    asked: list[tuple[str, list[str]]] = []

    def get_task_states(dag_id: str, run_ids: list[str]) -> dict[str, Any]:
        asked.append((dag_id, run_ids))
        return {run_ids[0]: {"batch.approve_0": "deferred", "batch.approve_10": "failed", "report": None}}

    states = RunStates(SimpleNamespace(get_task_states=get_task_states))
    run = "pulsar_remediate/asset_triggered__2026-03-01T12:00:00+00:00"
    ended = [states.has_ended(f"{run}/{index}", "batch.approve") for index in (0, 10, 1)]
    assert (ended, states.has_ended(f"{run}/-1", "report"), states.has_ended(f"{run}/-1", "choose")) == (
        [False, True, True],
        False,
        True,
    )
    assert states.failed("pulsar_remediate/asset_triggered__2026-03-01T12:00:00+00:00", ["batch.approve"]) == [
        "batch.approve_10"
    ]
    assert asked == [("pulsar_remediate", [run.removeprefix("pulsar_remediate/")])]


@pytest.mark.parametrize("paused", [True, False, None])
def test_whether_the_dag_that_asks_is_paused(paused: bool | None) -> None:
    """Airflow says it since 3.2; of 3.1 it is not known."""
    dags: dict[str, Any] = {} if paused is None else {"get_dag": lambda _: SimpleNamespace(is_paused=paused)}
    assert RunStates(SimpleNamespace(**dags)).asking_is_paused() is paused


@pytest.fixture
def folder(tmp_path: Path, airflow_rows: AirflowRows) -> Path:
    """Home of the policy in force, beside an Airflow that keeps questions."""
    assert airflow_rows is not None
    return tmp_path


def by_risk(site: Worksite, folder: Path, **levels: dict[str, Any]) -> None:
    """Puts a policy in force."""
    approval = {"by_risk": levels}
    (folder / "policy.yaml").write_text(
        yaml.safe_dump({"approval": {"valid_minutes": 60, **approval}}), encoding="utf-8"
    )
    site.policy = a_policy(approval=approval)


def calm(site: Worksite) -> Step:
    """A move that can be undone."""
    return a_step(site.move(1), step_id="b1.s01", undo=site.move(1), undo_note="Move it back.")


def test_those_are_asked_whom_the_risk_demands(site: Worksite, folder: Path) -> None:
    """A step that cannot be undone is asked of the users of its risk, and one that can be undone of anybody."""
    by_risk(site, folder, medium={"users": ["7", "8"]})
    assert asked(site.asked_without_answer(calm(site))).assigned_users is None
    assert asked(site.asked_without_answer(site.split(1)), run="dag/another run/0").assigned_users == [
        {"id": "7", "name": "7"},
        {"id": "8", "name": "8"},
    ]


def test_a_second_person_is_asked_where_the_risk_demands_one(site: Worksite, folder: Path) -> None:
    """A second approver is asked for medium risk only, as the policy demands it."""
    by_risk(site, folder, medium={"people": 2})
    plan = site.asked_without_answer(site.split(0))
    site.approve(plan)
    assert "second approval" in asked(plan, voice=2).subject
    other = site.asked_without_answer(calm(site))
    site.approve(other)
    with pytest.raises(AirflowSkipException, match="no second person"):
        asked(other, voice=2)


def test_the_question_says_its_risk_and_until_when_an_answer_counts(site: Worksite, folder: Path) -> None:
    """A question states the risk of its batch, and until when an answer to it counts."""
    by_risk(site, folder)
    task = asked(site.asked_without_answer(site.split(0)))
    assert "medium risk" in task.subject
    assert "approval lasts" in (task.body or "")
