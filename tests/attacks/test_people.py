"""By these people: who asked, who answered, to which question, and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import Asset

from pulsar_steward.errors import Refused
from pulsar_steward.ledger.clock import LedgerClock
from pulsar_steward.ledger.halts import Halt, say
from pulsar_steward.ledger.rows import Decision, Origin
from pulsar_steward.model.people import Person, same_person
from pulsar_steward.orchestration.approval import origin_of
from pulsar_steward.orchestration.approval_response import APPROVE, STEPS, ApprovalQuestion, interpret
from pulsar_steward.policy.approval import ApprovalPolicy
from tests.apply.worksite import RUN, quick_policy
from tests.builders import CLUSTER, NOW, a_plan

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tests.apply.worksite import Worksite

# -- asked again


def test_an_answer_to_an_earlier_question_is_void(site: Worksite) -> None:
    """An approval is refused if the question was asked again after it."""
    plan = site.approved(site.move(0))
    site.ask(plan)
    with pytest.raises(Refused, match="asked for anew"):
        site.carry_out(plan)
    assert site.untouched()


def test_an_answer_to_no_question_is_void(site: Worksite) -> None:
    """An approval is refused if no question was recorded for it."""
    plan = site.plan(site.move(0))
    site.writes.record_answer(site.approval(plan))
    with pytest.raises(Refused, match="nobody was asked"):
        site.carry_out(plan)
    assert site.untouched()


def test_the_first_persons_answer_is_void_where_only_they_are_asked_again(site: Worksite) -> None:
    """A batch is refused after the first of two approvers is asked again, although the second approval stays."""
    site.policy = quick_policy(approval={"two_people_for": ["tc_balance"]})
    plan = site.plan(site.move(0))
    site.approve(plan, voice=1)
    site.approve(plan, voice=2, answered_by="bob")
    site.ask(plan, voice=1)
    with pytest.raises(Refused, match="asked for anew"):
        site.carry_out(plan)
    assert site.untouched()


# -- who started the run


def observed(**fields: Any) -> SimpleNamespace:
    """An event of the asset, as Airflow gives it to a run."""
    usual = {"source_dag_id": "pulsar_observe", "source_task_id": "plan", "extra": {"plan_id": "p"}}
    return SimpleNamespace(**{**usual, **fields})


def context(run_type: str, *events: SimpleNamespace, user: str | None = None) -> Context:
    """Context of a task, with what it knows of its run."""
    run = SimpleNamespace(run_type=run_type, triggering_user_name=user)
    given: Any = {"dag_run": run, "triggering_asset_events": {Asset("pulsar_plan"): list(events)}}
    return given  # type: ignore[no-any-return]  # a part of what Airflow gives


@pytest.mark.parametrize(
    ("made", "origin"),
    [
        (context("scheduled"), Origin.SCHEDULE),
        (context("asset_triggered", observed()), Origin.SCHEDULE),
        (context("asset_triggered", observed(extra={"from_rest_api": True})), Origin.UNKNOWN),
        (context("asset_triggered", observed(), observed(extra={"from_rest_api": True})), Origin.UNKNOWN),
        (context("asset_triggered", observed(source_dag_id="mine")), Origin.UNKNOWN),
        (context("asset_triggered", observed(source_task_id=None)), Origin.UNKNOWN),
        (context("asset_triggered"), Origin.UNKNOWN),
        (context("manual"), Origin.UNKNOWN),
        (context("manual", user="alice"), Origin.PERSON),
        (context("asset_triggered", observed(), user="alice"), Origin.PERSON),
        (context("backfill"), Origin.UNKNOWN),
        (context("operator_triggered"), Origin.UNKNOWN),
    ],
)
def test_only_a_schedule_is_a_schedule(made: Context, origin: Origin) -> None:
    """A run has the origin `SCHEDULE` only when a timer or an asset event of Steward's planning task started it."""
    assert origin_of(made) is origin


def test_nobody_approves_where_anybody_may_have_asked(site: Worksite) -> None:
    """If requesters may not approve, an approval is void while it is not known who started the run."""
    site.policy = quick_policy(approval={"requester_may_approve": False})
    plan = site.plan(site.move(0))
    site.approve(plan, asked={"origin": Origin.UNKNOWN})
    with pytest.raises(Refused, match="who started the run is not known"):
        site.carry_out(plan)
    assert site.untouched()
    given = answered({"id": "7", "name": "operator"}, site.policy.approval)
    assert (given.decision, given.answered_by_id) == (Decision.MALFORMED, "7")


def test_one_of_two_requests_by_the_approver_is_enough_to_refuse(site: Worksite) -> None:
    """A batch is refused when its approver started the run of the first of two requests."""
    site.policy = quick_policy(approval={"requester_may_approve": False})
    plan = site.plan(site.move(0))
    site.ask(plan, requested_by="Operator ")
    site.approve(plan)
    with pytest.raises(Refused, match="operator started the run"):
        site.carry_out(plan)


# -- who is who


def answered(user: dict[str, str], policy: ApprovalPolicy, **asked: Any) -> Any:
    """Answer recorded for an approval by this user."""
    plan = a_plan()
    event = {
        "chosen_options": [APPROVE],
        "params_input": {STEPS: ["b1.s01"]},
        "responded_at": NOW,
        "responded_by_user": user,
    }
    return interpret(event, ApprovalQuestion(plan=plan, batch_id="b1", run=RUN, **asked), policy, NOW)


ALIASES = [("alice", "ALICE"), ("alice", "alice "), ("alice", "\u2002Alice"), ("alice", "\uff41lice")]


@pytest.mark.parametrize(("one", "other"), ALIASES)
def test_nobody_is_two_people(site: Worksite, one: str, other: str) -> None:
    """Two approvals count as one person's when the names differ only in case, white space or form of letters."""
    site.policy = quick_policy(approval={"two_people_for": ["tc_balance"]})
    plan = site.plan(site.move(0))
    site.approve(plan, voice=1, answered_by=one, answered_by_id="7")
    site.approve(plan, voice=2, answered_by=other, answered_by_id="8")
    with pytest.raises(Refused, match="both approvals are by"):
        site.carry_out(plan)
    assert site.untouched()


def test_people_are_told_apart_by_their_id(site: Worksite) -> None:
    """Two approvals with the same user id count as one person's, although the names differ."""
    site.policy = quick_policy(approval={"two_people_for": ["tc_balance"]})
    plan = site.plan(site.move(0))
    site.approve(plan, voice=1, answered_by="Alice A.", answered_by_id="7")
    site.approve(plan, voice=2, answered_by="A. Lice", answered_by_id="7")
    with pytest.raises(Refused, match="both approvals are by Alice A"):
        site.carry_out(plan)
    assert same_person(Person("7", "a"), Person("7", "b"))
    assert not same_person(Person("7", "alice"), Person("8", "bob"))


def test_a_policy_names_people_by_their_id() -> None:
    """A policy names people by their id, and a person who has such an id as a name may not approve."""
    policy = ApprovalPolicy(assigned_users=("7",))
    assert answered({"id": "7", "name": "alice"}, policy).decision is Decision.APPROVED
    assert answered({"id": "8", "name": "7"}, policy).decision is Decision.MALFORMED


@pytest.mark.parametrize("user", [{"id": "", "name": "alice"}, {"id": "7", "name": " "}])
def test_nobody_is_nobody(user: dict[str, str]) -> None:
    """An answer whose user has no id or no name is recorded as `NO_ANSWER`."""
    assert answered(user, ApprovalPolicy()).decision is Decision.NO_ANSWER


@pytest.mark.parametrize(("one", "other"), ALIASES)
def test_whoever_started_the_run_is_known_under_any_writing_of_their_name(one: str, other: str) -> None:
    """The person who started a run may not approve it under another spelling of the same name."""
    policy = ApprovalPolicy(requester_may_approve=False)
    given = answered({"id": "7", "name": one}, policy, requested_by=other, origin=Origin.PERSON)
    assert given.decision is Decision.MALFORMED
    assert "started the run" in given.reason


# -- clocks


def test_a_clock_that_is_behind_does_not_keep_an_approval_alive(site: Worksite) -> None:
    """An approval expires by the newest time in the ledger when the worker's clock is behind it."""
    plan = site.approved(site.move(0))
    site.clock.advance(minutes=170)
    site.plan(site.move(1))
    site.clock.advance(minutes=-170)
    with pytest.raises(Refused, match="the approval has expired"):
        site.carry_out(plan)
    assert site.untouched()


def test_the_present_is_not_before_what_was_written(site: Worksite) -> None:
    """`LedgerClock` is never behind the newest row of the ledger, and follows the worker's clock beyond it."""
    site.clock.advance(minutes=170)
    site.plan(site.move(1))
    late = LedgerClock(site.ledger, lambda: datetime.now(UTC))
    assert late() - datetime.now(UTC) > timedelta(minutes=169)
    right = LedgerClock(site.ledger, lambda: datetime.now(UTC) + timedelta(minutes=180))
    assert right() - datetime.now(UTC) < timedelta(minutes=181)


def test_a_halt_by_a_machine_whose_clock_is_ahead_moves_no_time(site: Worksite) -> None:
    """A halt and its end bound no time: any machine may write them, also one whose clock is ahead."""
    site.approved(site.move(0))
    for halted in (True, False):
        ahead = site.clock() + timedelta(minutes=45)
        say(site.engine, Halt(cluster=CLUSTER, at=ahead, halted=halted, said_by="bob", reason="stop"))
    assert LedgerClock(site.ledger, site.clock)() - site.clock() < timedelta(minutes=1)


def test_an_answer_that_is_yet_to_come_permits_nothing(site: Worksite) -> None:
    """An approval that is dated in the future is refused, and its date does not move Steward's clock."""
    plan = site.plan(site.move(0))
    answered_at = datetime(2999, 1, 1, tzinfo=UTC)
    site.approve(plan, answered_at=answered_at, expires_at=answered_at + timedelta(hours=1))
    with pytest.raises(Refused, match="which is yet to come"):
        site.carry_out(plan)
    assert site.untouched()
    assert LedgerClock(site.ledger, lambda: datetime.now(UTC))() < answered_at
