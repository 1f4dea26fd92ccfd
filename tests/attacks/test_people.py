"""By these people: who asked, who answered, to which question, and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from airflow.sdk import Asset
from pydantic import ValidationError

from pulsar_steward.errors import Refused
from pulsar_steward.ledger.clock import LedgerClock
from pulsar_steward.ledger.halts import Halt, say
from pulsar_steward.ledger.rows import Decision, Origin
from pulsar_steward.model.people import Person, same_person
from pulsar_steward.model.risk import Risk
from pulsar_steward.model.setting import Retention, SettingName
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.orchestration.approval import origin_of
from pulsar_steward.orchestration.approval_response import ApprovalQuestion, interpret
from pulsar_steward.orchestration.question_form import APPROVE, QUESTION, STEPS
from pulsar_steward.policy.approval import ApprovalPolicy
from pulsar_steward.policy.looser import loosened
from pulsar_steward.policy.recorded import RecordedPolicy
from tests.apply.refusals import assert_refused
from tests.apply.test_rollback import BACK, back_of, done
from tests.apply.worksite import RUN, quick_policy
from tests.builders import ASKED_DIGEST, CLUSTER, NOW, a_plan

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tests.apply.worksite import Worksite

# -- asked again


def test_an_answer_to_an_earlier_question_is_void(site: Worksite) -> None:
    """An approval is refused if the question was asked again after it."""
    plan = site.approved(site.move(0))
    site.ask(plan)
    assert_refused(site, plan, "asked for anew")


def test_an_answer_to_no_question_is_void(site: Worksite) -> None:
    """An approval is refused if no question was recorded for it."""
    plan = site.plan(site.move(0))
    site.writes.record_answer(site.approval(plan))
    assert_refused(site, plan, "nobody was asked for the first approval")


def test_the_first_persons_answer_is_void_where_only_they_are_asked_again(site: Worksite) -> None:
    """A batch is refused after the first of two approvers is asked again, although the second approval stays."""
    site.policy = quick_policy(approval={"two_people_for": ["tc_balance"]})
    plan = site.plan(site.move(0))
    site.approve(plan, voice=1)
    site.approve(plan, voice=2, answered_by="bob")
    site.ask(plan, voice=1)
    assert_refused(site, plan, "asked for anew")


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
    assert_refused(site, plan, "who started the run is not known")
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
        "params_input": {QUESTION: ASKED_DIGEST, STEPS: ["b1.s01"]},
        "responded_at": NOW,
        "responded_by_user": user,
    }
    question = ApprovalQuestion(plan=plan, batch_id="b1", run=RUN, asked_digest=ASKED_DIGEST, **asked)
    return interpret(event, question, policy, NOW)


ALIASES = [
    ("alice", "ALICE"),
    ("alice", "alice "),
    ("alice", "\u2002Alice"),
    ("alice", "\uff41lice"),
    *(("alice", f"ali{unseen}ce") for unseen in "\u200b\u2060\u00ad\u034f\u202e\ufe0f\u3164\u2800\x00\U000e0061"),
]


@pytest.mark.parametrize(("one", "other"), ALIASES)
def test_nobody_is_two_people(site: Worksite, one: str, other: str) -> None:
    """Two approvals count as one person's when the names differ only in case, in what has no width, or in form."""
    site.policy = quick_policy(approval={"two_people_for": ["tc_balance"]})
    plan = site.plan(site.move(0))
    site.approve(plan, voice=1, answered_by=one, answered_by_id="7")
    site.approve(plan, voice=2, answered_by=other, answered_by_id="8")
    assert_refused(site, plan, "both approvals are by")


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
    assert same_person(Person("bob", "Bob B."), Person("8", "bob"))
    assert same_person(Person("8", "bob"), Person("bob", "Bob B."))


def test_a_policy_names_people_by_their_id() -> None:
    """A policy names people by their id, and a person who has such an id as a name may not approve."""
    policy = ApprovalPolicy(assigned_users=("7",))
    assert answered({"id": "7", "name": "alice"}, policy).decision is Decision.APPROVED
    assert answered({"id": "8", "name": "7"}, policy).decision is Decision.MALFORMED


@pytest.mark.parametrize("user", [{"id": "", "name": "alice"}, {"id": "7", "name": " "}, {"id": "7", "name": "\u200b"}])
def test_nobody_is_nobody(user: dict[str, str]) -> None:
    """An answer whose user has no id or no name that can be seen is recorded as `NO_ANSWER`."""
    assert answered(user, ApprovalPolicy()).decision is Decision.NO_ANSWER


@pytest.mark.parametrize(("one", "other"), ALIASES)
def test_whoever_started_the_run_is_known_under_any_writing_of_their_name(one: str, other: str) -> None:
    """The person who started a run may not approve it under another spelling of the same name."""
    policy = ApprovalPolicy(requester_may_approve=False)
    given = answered({"id": "7", "name": one}, policy, requested_by=other, origin=Origin.PERSON)
    assert given.decision is Decision.MALFORMED
    assert "started the run" in given.reason


# -- a way back, here of a batch whose kind is `tc_balance`, as any of this worksite


LONGER_KEPT = ChangeSetting(
    namespace="shop/orders", name=SettingName.RETENTION, before=None, after=Retention(minutes=1440, megabytes=10_240)
)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"two_people_for": ["tc_balance"]}, "rollback of a tc_balance .* needs the approval of a second person"),
        (
            {"assigned_users_by_kind": {"tc_balance": ["zoe"]}},
            "operator may not approve batches of kind rollback of a tc_balance",
        ),
    ],
)
def test_a_way_back_is_under_the_rules_of_what_it_takes_back(site: Worksite, rules: dict[str, Any], words: str) -> None:
    """A rollback is refused where those who approved it may not approve the kind of batch that it takes back."""
    plan = done(site, LONGER_KEPT)
    site.policy = quick_policy(approval=rules)
    assert_refused(site, site.approve(back_of(site, plan), run=BACK), words, run=BACK)


def test_a_way_back_of_a_way_back_is_under_the_same_rules(site: Worksite) -> None:
    """A rollback that is taken back itself is under the rules of the first batch, and those of rollbacks still hold."""
    policy = ApprovalPolicy(two_people_for=("tc_balance",), assigned_users_by_kind={"rollback": ("operator", "ann")})
    back = site.approve(back_of(site, done(site, LONGER_KEPT)), run=BACK)
    assert [each.outcome for each in site.carry_out(back, BACK)] == ["done"]
    (batch,) = back_of(site, back).batches
    terms = policy.terms(batch.answered_as, Risk.LOW)
    assert (terms.people, terms.users) == (2, frozenset({"operator", "ann"}))


def test_a_way_back_that_nobody_could_approve_is_an_error_of_the_policy() -> None:
    """Lists of a kind and of rollbacks that have nobody in common are an error: nobody could take such a batch back."""
    with pytest.raises(ValidationError, match="nobody may answer to rollback of a retention"):
        ApprovalPolicy.model_validate({"assigned_users_by_kind": {"retention": ["zoe"], "rollback": ["ann"]}})


def test_who_may_take_back_is_compared_as_well() -> None:
    """A policy is looser if others may take a kind of batch back, though to no kind by itself others may answer."""
    then = quick_policy(approval={"assigned_users_by_kind": {"rollback": ["xenia"]}})
    now = quick_policy(approval={"assigned_users": ["xenia"], "assigned_users_by_kind": {"retention": ["zoe"]}})
    (words,) = loosened(now, RecordedPolicy.of(then))
    assert words.startswith("['zoe'] may answer to rollback of a retention, and only ['xenia'] might")


# -- who could


ALONE = [
    {"assigned_users": ["alice"], "two_people_for": ["retention"]},
    {"assigned_users": ["alice", "Alice"], "two_people_for": ["retention"]},
    {"assigned_users": ["alice", "\uff41lice"], "two_people_for": ["retention"]},
    {"assigned_users_by_kind": {"retention": ["alice"]}, "two_people_for": ["retention"]},
    {"assigned_users": ["alice"], "by_risk": {"critical": {"people": 2}}},
    {"by_risk": {"medium": {"people": 2}, "high": {"users": ["alice"]}}},
    {"assigned_users_by_kind": {"rollback": ["alice"]}, "two_people_for": ["retention"]},
    {
        "assigned_users_by_kind": {"rollback": ["alice", "bob"], "retention": ["bob", "zoe"]},
        "two_people_for": ["retention"],
    },
]


@pytest.mark.parametrize("rules", ALONE, ids=str)
def test_two_people_are_demanded_of_no_fewer_than_two(rules: dict[str, Any]) -> None:
    """A policy is an error where two have to approve, and fewer than two different people may answer."""
    with pytest.raises(ValidationError, match=r"two people have to approve .*, who is one, may .* to .*retention"):
        ApprovalPolicy.model_validate(rules)


@pytest.mark.parametrize("users", [[], ["alice"]])
def test_an_empty_list_lets_nobody_in(users: list[str]) -> None:
    """A kind's empty list is refused, as it may mean everyone or nobody; one that is recorded widens nothing."""
    rules = {"assigned_users": users, "assigned_users_by_kind": {"retention": []}}
    with pytest.raises(ValidationError, match=r"assigned_users_by_kind.retention: an empty list is not allowed"):
        ApprovalPolicy.model_validate(rules)
    recorded = RecordedPolicy.decoded(msgspec.json.encode({"approval": rules}))
    assert recorded.approval.terms(("retention",), Risk.LOW).users == (frozenset(users) or None)


# -- clocks


def test_a_clock_that_is_behind_does_not_keep_an_approval_alive(site: Worksite) -> None:
    """An approval expires by the newest time in the ledger when the worker's clock is behind it."""
    plan = site.approved(site.move(0))
    site.clock.advance(minutes=170)
    site.plan(site.move(1))
    site.clock.advance(minutes=-170)
    assert_refused(site, plan, "the approval has expired")


def test_the_present_is_not_before_what_was_written(site: Worksite) -> None:
    """`LedgerClock` is never behind the newest row of the ledger, and follows the worker's clock beyond it."""
    site.clock.advance(minutes=170)
    site.plan(site.move(1))
    assert LedgerClock(site.ledger, lambda: datetime.now(UTC))() - datetime.now(UTC) > timedelta(minutes=169)
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
    assert_refused(site, plan, "which is yet to come")
    assert LedgerClock(site.ledger, lambda: datetime.now(UTC))() < answered_at
