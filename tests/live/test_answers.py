"""Answers are carried out as given, on real brokers: batches of one run answered apart, and a target that dies."""

from __future__ import annotations

import itertools
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec
import pytest

from pulsar_steward.ledger.rows import Decision, Outcome
from pulsar_steward.model.step import UnloadBundle
from pulsar_steward.orchestration.batches import BatchRef
from pulsar_steward.orchestration.home import now
from pulsar_steward.orchestration.question_form import QUESTION
from tests.builders import a_batch, a_plan, a_step
from tests.live.care import Care
from tests.live.moves import loaded_bundle, owner_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.airflow.server import Airflow
    from lab.cluster import Lab
    from lab.pool import LabPool
    from pulsar_steward.model.plan import Plan

pytestmark = [pytest.mark.live, pytest.mark.airflow]

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def care(airflow: Airflow, labs: LabPool, pulsar: Lab) -> Iterator[Care]:
    """The shared lab under a name of these tests' own.

    It is nobody's afterwards: what a killed broker owned finds new owners by and by, whenever a client comes back.
    """
    with Care.taken(airflow, pulsar, "answers") as care:
        yield care
    labs.discard(pulsar)


def plan_of(care: Care, moves: list[UnloadBundle]) -> Plan:
    """A recorded plan with one batch a move."""
    batches = [
        a_batch(a_step(move, step_id=f"b{number}.s01"), batch_id=f"b{number}", kind="bundle_move", title=move.namespace)
        for number, move in enumerate(moves, start=1)
    ]
    plan = a_plan(*batches, cluster=care.cluster, snapshot_id=f"{care.cluster}-made-{next(_numbers)}", taken_at=now())
    return care.record(plan)


def test_a_rejected_batch_stays_exactly_where_it_was(care: Care) -> None:
    moves = [loaded_bundle(care.lab, f"public/answers-{next(_numbers)}") for _ in range(3)]
    plan = plan_of(care, moves)
    run = care.remediate(plan_id=plan.plan_id)
    first, second, third = care.approvals(3, run)
    care.approve(first)
    care.reject(second)
    care.approve(third)
    assert care.ended(run) == "success"
    assert [owner_of(care.lab, move) for move in moves] == [moves[0].target, moves[1].source, moves[2].target]
    decisions = [care.ledger.answers(plan.plan_id, batch.batch_id)[-1].decision for batch in plan.batches]
    assert decisions == [Decision.APPROVED, Decision.REJECTED, Decision.APPROVED]
    assert care.ledger.intents(plan.plan_id, "b2") == ()
    states = care.airflow.api.states("pulsar_remediate", run)
    assert [states[f"batch.apply[{index}]"] for index in range(3)] == ["success", "skipped", "success"]


@pytest.mark.extended(
    "tests/attacks/test_shown_is_recorded.py::test_a_task_that_is_cleared_and_names_another_batch_asks_nobody"
)
def test_a_cleared_task_asks_nobody_in_the_name_of_another_batch(care: Care) -> None:
    shown, other = (plan_of(care, [loaded_bundle(care.lab, f"public/answers-{next(_numbers)}")]) for _ in range(2))
    run = care.remediate(plan_id=shown.plan_id)
    (page,) = care.approvals(1, run)
    refs = {each.plan_id: msgspec.to_builtins(BatchRef.of(each, each.batches[0])) for each in (shown, other)}
    with closing(care.airflow.api_as("bob")) as somebody:
        somebody.hand_on("pulsar_remediate", run, "choose", [refs[other.plan_id]])
        somebody.clear("pulsar_remediate", run, "batch.approve")
        assert care.ended(run) == "failed"
        assert care.airflow.api.states("pulsar_remediate", run)["batch.approve[0]"] == "failed"
        log = care.airflow.api.log("pulsar_remediate", run, "batch.approve", map_index=0, attempt=2)
        assert "Airflow still shows an earlier question for this task" in log
        assert care.ledger.batch(other.plan_id, "b1").requests == ()

        somebody.hand_on("pulsar_remediate", run, "choose", [refs[shown.plan_id]])
        somebody.clear("pulsar_remediate", run, "batch.approve")
        (again,) = care.approvals(1, run)
        assert (again["subject"], again["params"]) == (page["subject"], page["params"])
        care.approve(again)
        assert care.ended(run) == "success"
    left, answer = care.ledger.answers(shown.plan_id, "b1")
    assert (left.decision, answer.decision) == (Decision.NO_ANSWER, Decision.APPROVED)
    assert answer.asked_digest == page["params"][QUESTION]["value"]
    (moved, stayed) = (each.batches[0].steps[0].change for each in (shown, other))
    assert isinstance(moved, UnloadBundle)
    assert isinstance(stayed, UnloadBundle)
    assert (owner_of(care.lab, moved), owner_of(care.lab, stayed)) == (moved.target, stayed.source)


def test_a_dry_run_prints_the_calls_and_changes_nothing(care: Care) -> None:
    move = loaded_bundle(care.lab, f"public/answers-{next(_numbers)}")
    plan = plan_of(care, [move])
    before = care.lab.owned_bundles()
    assert care.ended(care.remediate(plan_id=plan.plan_id, dry_run=True)) == "success"
    (kept,) = care.ledger.dry_runs(plan.plan_id)
    assert f"/{move.bundle}/unload?destinationBroker={move.target}" in kept.text
    assert care.lab.owned_bundles() == before
    assert care.waiting() == []


@pytest.mark.extended(
    "tests/apply/test_drain.py::test_a_target_goes_away",
    "tests/apply/test_guards_before_calls.py::test_a_broker_that_cannot_be_read_stops_everything",
)
def test_a_target_that_dies_after_the_approval_leaves_nothing_half_done(care: Care) -> None:
    moves = [loaded_bundle(care.lab, f"public/answers-{next(_numbers)}") for _ in range(2)]
    doomed = next(broker for broker in sorted(care.lab.owned_bundles()) if broker not in {m.source for m in moves})
    sound = next(broker for broker in sorted(care.lab.owned_bundles()) if broker not in {doomed, moves[0].source})
    steps = [a_step(_towards(moves[0], sound), step_id="b1.s01"), a_step(_towards(moves[1], doomed), step_id="b1.s02")]
    plan = a_plan(
        a_batch(*steps), cluster=care.cluster, snapshot_id=f"{care.cluster}-made-{next(_numbers)}", taken_at=now()
    )
    plan = care.record(plan)
    (detail,) = care.approvals(1, care.remediate(plan_id=plan.plan_id))
    care.approve(detail, meanwhile=lambda: care.lab.kill_broker(doomed))
    assert care.ended(detail) == "failed"
    assert [owner_of(care.lab, move) for move in moves] == [move.source for move in moves]
    outcomes = {outcome.step_id: outcome for outcome in care.ledger.outcomes(plan.plan_id, "b1")}
    assert outcomes["b1.s02"].outcome is Outcome.DRIFTED
    assert doomed in outcomes["b1.s02"].reason
    assert outcomes["b1.s01"].outcome is Outcome.REFUSED
    assert outcomes["b1.s01"].reason.startswith(f"whole_cluster: no answer from {doomed}")
    assert care.ledger.intents(plan.plan_id, "b1") == ()


def _towards(move: UnloadBundle, target: str) -> UnloadBundle:
    return UnloadBundle(namespace=move.namespace, bundle=move.bundle, source=move.source, target=target)
