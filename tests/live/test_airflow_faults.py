"""Faults in the whole of Airflow, on real brokers: processes that die, two at once, people, stop, tampering.

After each of these the brokers' request logs, the ledger and the cluster have to tell the same.
"""

from __future__ import annotations

import json
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from sqlalchemy import update

from lab.airflow.rest import AirflowCallError
from lab.request_log import RequestLogs
from lab.testing import cannot_run
from lab.waiting import wait_until
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.rows import Decision, Outcome
from pulsar_steward.ledger.verify import verify_ledger
from pulsar_steward.model.plan import approval_digest
from pulsar_steward.model.units import MINUTE
from pulsar_steward.orchestration.halt_variable import HALT
from tests.beside import lateness
from tests.live.airflow_processes import another_scheduler, kill, scheduler_killed, started_scheduler, task_process
from tests.live.care import ENDED_WITHIN_S, Care
from tests.live.held_up import held_up
from tests.live.three_steps import KIND, STEPS, all_tell_the_same, asked, outcomes_of, refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.airflow.server import Airflow
    from lab.cluster import Lab
    from pulsar_steward.model.plan import Plan
    from tests.live.held_up import HeldUp

pytestmark = [pytest.mark.live, pytest.mark.airflow]

POLICY: dict[str, Any] = {
    "admin": {"connect_timeout_seconds": 2, "read_timeout_seconds": 3},
    "apply": {"lease_seconds": 10},
    "events": {"topic": None},
}
"""As by default, with little patience."""

IMPATIENT = {
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "10",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "3",
}
"""A scheduler that takes over from one which has been silent for so many seconds, and looks for such often."""

MUST_STOP_WITHIN = timedelta(seconds=1)
"""What Steward promises, of a machine that does nothing else."""


@pytest.fixture(scope="module")
def care(airflow: Airflow, pulsar: Lab) -> Iterator[Care]:
    """The shared lab under a name of these tests' own; the ledger has to be in a server's database."""
    if not airflow.spec.ledger.startswith("postgresql"):
        cannot_run("no PostgreSQL on this machine: two schedulers need it, and tables that can be locked")
    with Care.taken(airflow, pulsar, "faults") as care:
        yield care


@pytest.fixture(autouse=True)
def _policy(care: Care) -> None:
    """Each test begins with the same policy."""
    write_policy(care)


def write_policy(care: Care, **sections: dict[str, Any]) -> None:
    """Puts `POLICY` with these differences where tasks read it."""
    care.write_policy({name: {**POLICY.get(name, {}), **sections.get(name, {})} for name in {*POLICY, *sections}})


def attempts(care: Care, run: str) -> int:
    """Returns how many times Airflow began the run's first `apply`."""
    place = f"dags/pulsar_remediate/dagRuns/{run}/taskInstances/batch.apply/0"
    return int(care.airflow.api.get(place)["try_number"])


def begun(care: Care, plan: Plan) -> list[str]:
    """Steps that have an intent and no outcome; a bundle that its former broker took back has more than one intent."""
    over = {row.step_id for row in outcomes_of(care, plan)}
    intended = dict.fromkeys(each.step_id for each in care.ledger.intents(plan.plan_id, "b1"))
    return [step_id for step_id in intended if step_id not in over]


class UnderWay(NamedTuple):
    """A run of a plan of three steps, whose first call is made, and waits for its outcome to be recorded."""

    logs: RequestLogs
    plan: Plan
    run: str
    outcomes: HeldUp


@contextmanager
def held_up_after_its_first_call(care: Care) -> Iterator[UnderWay]:
    """Has a run approved and begun, and keeps it from recording an outcome for the length of the block."""
    logs, plan = RequestLogs(care.lab), asked(care)
    run = care.remediate(plan_id=plan.plan_id)
    (detail,) = care.approvals(1, run)
    with held_up(care.engine, tables.OUTCOMES) as outcomes:
        care.approve(detail)
        outcomes.until_waiting()
        assert begun(care, plan) == ["b1.s01"]
        yield UnderWay(logs, plan, run, outcomes)


def test_a_task_that_is_killed_goes_on_in_its_retry(care: Care) -> None:
    with held_up_after_its_first_call(care) as (logs, plan, run, _):
        kill([task_process(care.airflow, run, "batch.apply")])
    assert care.ended(run) == "success"
    assert attempts(care, run) == 2
    all_tell_the_same(care, plan, logs, *STEPS)


@pytest.mark.extended("tests/live/test_airflow_faults.py::test_a_task_that_is_killed_goes_on_in_its_retry")
def test_an_apply_outlives_its_scheduler(care: Care) -> None:
    write_policy(care, apply={"lease_seconds": 120})  # a lease lasts from before it was held up, however slow the start
    with held_up_after_its_first_call(care) as (logs, plan, run, outcomes), scheduler_killed(care.airflow, alone=True):
        started_scheduler(care.airflow)
        outcomes.let_go()
        applied = "batch.apply[0]"
        states = partial(care.airflow.api.states, "pulsar_remediate", run)
        ended = "the task has ended its work"
        wait_until(lambda: states()[applied] == "success", ended, ENDED_WITHIN_S, every_s=0.3, instead=states)
    # Only now: what the dead one forked shares its connections, so PostgreSQL may keep its locks until that has ended.
    assert care.ended(run) == "success"
    assert attempts(care, run) == 1
    all_tell_the_same(care, plan, logs, *STEPS)


@pytest.mark.extended("tests/live/test_airflow_faults.py::test_a_task_that_is_killed_goes_on_in_its_retry")
def test_an_apply_that_dies_with_its_scheduler_is_taken_up_by_the_next(care: Care) -> None:
    with held_up_after_its_first_call(care) as (logs, plan, run, outcomes), scheduler_killed(care.airflow, alone=False):
        outcomes.let_go()
        with another_scheduler(care.airflow, **IMPATIENT):
            assert care.ended(run) == "success"
    all_tell_the_same(care, plan, logs, *STEPS)


@pytest.mark.extended("tests/apply/test_crash.py::test_two_processes_for_one_run_act_once")
def test_two_schedulers_do_every_step_once(care: Care) -> None:
    logs, plan = RequestLogs(care.lab), asked(care, batches=2)
    with another_scheduler(care.airflow):
        run = care.remediate(plan_id=plan.plan_id)
        for detail in care.approvals(2, run):
            care.approve(detail)
        assert care.ended(run) == "success"
    all_tell_the_same(care, plan, logs, *(step.step_id for batch in plan.batches for step in batch.steps))


@pytest.mark.extended(
    "tests/apply/test_crash.py::test_two_processes_for_one_run_act_once",
    "tests/apply/test_gate.py::test_another_approval_of_a_plan_that_was_tried_opens_nothing",
)
def test_of_two_runs_of_a_plan_one_acts(care: Care) -> None:
    write_policy(care, apply={"lease_seconds": 120})  # a lease lasts from before it had to wait for its table
    logs, plan = RequestLogs(care.lab), asked(care)
    runs = [care.remediate(plan_id=plan.plan_id) for _ in range(2)]
    details = [care.approvals(1, run)[0] for run in runs]
    with held_up(care.engine, tables.LEASES) as leases:
        for number, detail in enumerate(details, start=1):
            care.approve(detail)
            leases.until_waiting(number)
    assert sorted(care.ended(run) for run in runs) == ["failed", "success"]
    (reason,) = refusals(care, plan)
    assert "was tried before, under another approval" in reason
    all_tell_the_same(care, plan, logs, *STEPS)


@pytest.mark.extended("tests/attacks/test_people.py", "tests/browser/test_approval.py")
def test_two_people_have_to_approve(care: Care) -> None:
    write_policy(care, approval={"two_people_for": [KIND]})
    logs, plan = RequestLogs(care.lab), asked(care)
    alone = care.remediate(plan_id=plan.plan_id)
    care.approve(care.approvals(1, alone)[0])
    (second,) = care.approvals(1, alone)
    assert second["subject"].endswith("(second approval) (1 warning; medium risk)")
    care.approve(second)
    care.ended(alone)
    last = care.ledger.answers(plan.plan_id, "b1")[-1]
    assert (last.decision, last.answered_by) == (Decision.MALFORMED, "alice")
    assert "has to be another person's" in last.reason
    all_tell_the_same(care, plan, logs)
    logs, plan = RequestLogs(care.lab), asked(care)
    both = care.remediate(plan_id=plan.plan_id)
    care.approve(care.approvals(1, both)[0], steps=["b1.s01", "b1.s02"])
    (second,) = care.approvals(1, both)
    with closing(care.airflow.api_as("bob")) as bob:
        bob.answer(second, "Approve", steps=["b1.s02"])
    assert care.ended(both) == "success"
    all_tell_the_same(care, plan, logs, "b1.s02")


@pytest.mark.extended("tests/attacks/test_people.py")
def test_who_is_not_asked_and_who_asked_cannot_approve(care: Care) -> None:
    write_policy(care, approval={"assigned_users": ["bob"], "requester_may_approve": False})
    logs, plan = RequestLogs(care.lab), asked(care)
    with closing(care.airflow.api_as("bob")) as bob:
        run = bob.trigger("pulsar_remediate", {"cluster": care.cluster, "plan_id": plan.plan_id})
        (detail,) = care.approvals(1, run)
        with pytest.raises(AirflowCallError, match="403"):
            care.approve(detail)
        bob.answer(detail, "Approve")
    care.ended(run)
    (answer,) = care.ledger.answers(plan.plan_id, "b1")
    assert (answer.decision, answer.answered_by) == (Decision.MALFORMED, "bob")
    assert "bob started the run" in answer.reason
    all_tell_the_same(care, plan, logs)


@pytest.mark.extended("tests/apply/test_halt.py::test_a_batch_that_keeps_pace_stops_within_a_second")
def test_the_halt_variable_stops_a_batch_that_keeps_its_pace(care: Care, pulsar: Lab) -> None:
    with Care.taken(care.airflow, pulsar, "paced") as paced:
        write_policy(paced, apply={"bundle_moves_per_minute": 1})
        logs, plan = RequestLogs(paced.lab), asked(paced)
        run = paced.remediate(plan_id=plan.plan_id)
        paced.approve(paced.approvals(1, run)[0])
        # Another broker may be quicker to take the bundle; the next call for it then waits for its minute.
        wait_until(lambda: len(outcomes_of(paced, plan)) == 1, "the first step is done", 3 * MINUTE)
        with lateness() as late:
            paced.airflow.api.add_variable(HALT, f"elsewhere, {paced.cluster}")
            said = datetime.now(UTC)
            try:
                paced.airflow.api.get(f"variables/{HALT}")
                answered = datetime.now(UTC) - said  # what a task reads goes by the same server, and back
                assert paced.ended(run) == "failed"
            finally:
                paced.airflow.api.remove_variable(HALT)
        stopped = outcomes_of(paced, plan)[1]
        assert stopped.outcome is Outcome.REFUSED
        assert f"halted by the Airflow variable {HALT}" in stopped.reason
        assert stopped.at - said < MUST_STOP_WITHIN + 4 * (answered + timedelta(seconds=late()))
        all_tell_the_same(paced, plan, logs, "b1.s01")

        write_policy(paced)
        logs, plan = RequestLogs(paced.lab), asked(paced)
        run = paced.remediate(plan_id=plan.plan_id)
        paced.approve(paced.approvals(1, run)[0])
        assert paced.ended(run) == "success"
        all_tell_the_same(paced, plan, logs, *STEPS)


@pytest.mark.extended(
    "tests/attacks/test_ledger_forged.py",
    "tests/attacks/test_shown_is_recorded.py::test_the_gate_takes_no_answer_to_another_text",
)
def test_an_answer_that_is_tampered_with_permits_nothing(care: Care) -> None:
    logs, plan = RequestLogs(care.lab), asked(care)
    run = care.remediate(plan_id=plan.plan_id)
    (detail,) = care.approvals(1, run)
    answers = tables.ANSWERS
    change = update(answers).where(answers.c.plan_id == plan.plan_id)
    with held_up(care.engine, tables.LEASES) as leases:
        care.approve(detail, steps=["b1.s02"])
        leases.until_waiting()
        (true,) = care.ledger.answers(plan.plan_id, "b1")
        forged = {"step_ids": json.dumps(STEPS), "digest": approval_digest(plan, "b1", STEPS)}
        with care.engine.begin() as connection:
            connection.execute(change.values(forged))
    try:
        assert care.ended(run) == "failed"
        said = care.airflow.api.log("pulsar_remediate", run, "batch.apply", map_index=0, attempt=attempts(care, run))
        assert "the ledger was tampered with: row" in said
        assert [each.table for each in verify_ledger(care.engine).tampered] == ["answers"]
    finally:
        with care.engine.begin() as connection:
            connection.execute(change.values(step_ids=json.dumps(true.step_ids), digest=true.digest))
    assert outcomes_of(care, plan) == []
    all_tell_the_same(care, plan, logs)
