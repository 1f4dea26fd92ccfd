"""Answers of people, about batches and about groups."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pendulum
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pulsar_steward.ledger.rows import Answer, Decision, Origin, RecordedAnswer
from pulsar_steward.model.plan import approval_digest
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, Step
from pulsar_steward.orchestration.approval_response import ApprovalQuestion, interpret
from pulsar_steward.orchestration.question_form import APPROVE, LEFT_OUT, LOSS, NEVER, REJECT, SNOOZE, SNOOZE_DAYS
from pulsar_steward.policy.approval import ApprovalPolicy
from pulsar_steward.policy.guards import MaintenanceWindow
from tests.builders import ASKED_DIGEST, NOW, a_batch, a_plan, a_step
from tests.cases import cases, row_by_row
from tests.unit.orchestration.answering import ASKED, FIRST, GONE, IDS, PLAN, POLICY, RUN, answer_to, event, ticked


@cases(
    "given_event, steps",
    ("every step", event(), IDS),
    ("one", ticked("b1.s02"), ("b1.s02",)),
    ("in another order", ticked("b1.s03", "b1.s01"), ("b1.s01", "b1.s03")),
    ("without a word of timeouts", event(timedout=GONE), IDS),
    ("time as text", event(responded_at="2026-03-01T12:00:00Z"), IDS),
    ("time of another zone", event(responded_at="2026-03-01T13:00:00+01:00"), IDS),
    ("time as Airflow has it", event(responded_at=pendulum.datetime(2026, 3, 1, 12, tz="UTC")), IDS),
    (
        "time as Airflow has it elsewhere",
        event(responded_at=pendulum.datetime(2026, 3, 1, 13, tz="Europe/Berlin")),
        IDS,
    ),
)
def test_a_plain_yes_is_an_approval_of_exactly_the_ticked_steps(
    given_event: dict[str, Any], steps: tuple[str, ...]
) -> None:
    answer = answer_to(given_event)
    assert (answer.decision, answer.answered_by, answer.step_ids) == (Decision.APPROVED, "operator", steps)
    assert answer.digest == approval_digest(PLAN, "b1", steps)
    assert answer.expires_at == NOW + timedelta(minutes=30)
    assert (answer.plan_id, answer.batch_id, answer.run) == (PLAN.plan_id, "b1", RUN)


@pytest.mark.parametrize(
    ("given_event", "decision", "reason"),
    [
        pytest.param(event(chosen_options=[REJECT]), "rejected", "a person rejected it", id="rejected"),
        pytest.param(
            event(chosen_options=[REJECT], params_input={}), "rejected", "a person rejected it", id="rejected bare"
        ),
        pytest.param(ticked(), "rejected", "nothing is approved, and nothing is changed", id="nothing ticked"),
        pytest.param(
            event(params_input={"steps": None}),
            "rejected",
            "nothing is approved, and nothing is changed",
            id="every step taken out, as Airflow's form has it",
        ),
        pytest.param(event(params_input={}), "malformed", "not a list of steps", id="no steps"),
        pytest.param(event(params_input=GONE), "malformed", "does not say which question", id="no form"),
        pytest.param(event(params_input={"steps": False}), "malformed", "not a list of steps", id="steps are false"),
        pytest.param(event(params_input={"steps": "b1.s01"}), "malformed", "not a list", id="steps are a text"),
        pytest.param(event(params_input={"steps": {"b1.s01": 1}}), "malformed", "not a list", id="steps are an object"),
        pytest.param(ticked("b1.s01", "b9.s01"), "malformed", "not a list of steps", id="an unknown step"),
        pytest.param(ticked("b1.s01", 1), "malformed", "not a list of steps", id="a number for a step"),
        pytest.param(ticked("b1.s01", ["b1.s02"]), "malformed", "not a list of steps", id="a list for a step"),
        pytest.param(ticked("b1.s01", "b1.s01"), "malformed", "not a list of steps", id="a step twice"),
        pytest.param(ticked("B1.S01"), "malformed", "not a list of steps", id="a step in other letters"),
        pytest.param(event(chosen_options=["Yes"]), "malformed", "chosen options", id="an unknown option"),
        pytest.param(event(chosen_options=["approve"]), "malformed", "chosen options", id="in other letters"),
        pytest.param(event(chosen_options=[APPROVE, REJECT]), "malformed", "chosen options", id="both options"),
        pytest.param(event(chosen_options=[APPROVE, APPROVE]), "malformed", "chosen options", id="an option twice"),
        pytest.param(event(chosen_options=[SNOOZE, APPROVE]), "malformed", "chosen options", id="a snooze and a yes"),
        pytest.param(event(chosen_options=[NEVER]), "malformed", "chosen options", id="never, of no namespace"),
        pytest.param(event(chosen_options=["snooze"]), "malformed", "chosen options", id="a snooze in other letters"),
        pytest.param(event(chosen_options=[]), "malformed", "chosen options", id="no option"),
        pytest.param(event(chosen_options=APPROVE), "malformed", "cannot be read", id="an option as text"),
        pytest.param(event(chosen_options=GONE), "malformed", "cannot be read", id="options missing"),
        pytest.param(event(params_input={"steps": [*IDS], "comment": 7}), "malformed", "comment", id="a number to say"),
        pytest.param(event(responded_at=GONE), "malformed", "cannot be read", id="no time"),
        pytest.param(event(responded_at="today"), "malformed", "cannot be read", id="no time that can be read"),
        pytest.param(event(responded_at=datetime(2026, 3, 1)), "malformed", "cannot be read", id="time without a zone"),  # noqa: DTZ001 - that is the case
        pytest.param(event(responded_at=datetime.max.replace(tzinfo=UTC)), "malformed", "yet to come", id="far future"),
        pytest.param(event(responded_at=NOW + timedelta(hours=1)), "malformed", "yet to come", id="in an hour"),
        pytest.param(event(responded_by_user="operator"), "malformed", "cannot be read", id="a person as text"),
        pytest.param(event(responded_by_user={"id": "7"}), "malformed", "cannot be read", id="a person without a name"),
        pytest.param(event(responded_by_user=GONE), "malformed", "cannot be read", id="person missing"),
        pytest.param(event(timedout="no"), "malformed", "cannot be read", id="a text for a timeout"),
        pytest.param(event(responded_by_user=None), "no answer", "nobody answered", id="no person"),
        pytest.param(event(responded_by_user={"id": "", "name": " "}), "no answer", "nobody", id="a blank name"),
        pytest.param(event(timedout=True), "no answer", "nobody answered in time", id="timed out"),
        pytest.param({"error": "late", "error_type": "timeout"}, "no answer", "nobody answered in time", id="timeout"),
        pytest.param({"error": "boom", "error_type": "unknown"}, "no answer", "Airflow reports: boom", id="an error"),
        pytest.param(event(error="boom"), "no answer", "Airflow reports: boom", id="an error beside a yes"),
        pytest.param({}, "malformed", "cannot be read", id="nothing at all"),
        pytest.param(None, "malformed", "no mapping", id="no event"),
        pytest.param([APPROVE], "malformed", "no mapping", id="a list for an event"),
    ],
)
def test_whatever_is_no_plain_yes_permits_nothing(given_event: Any, decision: str, reason: str) -> None:
    """An event that is no plain approval is a rejection, no answer or malformed, with a reason and without steps."""
    answer = answer_to(given_event)
    assert answer.decision == decision
    assert reason in answer.reason
    assert (answer.step_ids, answer.digest, answer.expires_at) == ((), None, None)


@pytest.mark.parametrize(
    ("choice", "decision"), [(APPROVE, Decision.APPROVED), (REJECT, Decision.REJECTED), (SNOOZE, Decision.SNOOZED)]
)
def test_the_comment_is_kept(choice: str, decision: Decision) -> None:
    """The comment of an approval, a rejection and a snooze is kept without the blanks around it."""
    answer = answer_to(event(chosen_options=[choice], params_input={"steps": list(IDS), "comment": "  this time\n"}))
    assert (answer.decision, answer.comment) == (decision, "this time")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from([APPROVE, REJECT, *IDS]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
STEPS = st.lists(st.sampled_from([*IDS, "b1.s99"]), max_size=4)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "chosen_options": st.sampled_from(
            [[APPROVE], [REJECT], [SNOOZE], [NEVER], [APPROVE, REJECT], [SNOOZE, APPROVE], []]
        )
        | ANYTHING,
        "params_input": st.fixed_dictionaries(
            {}, optional={"steps": STEPS | ANYTHING, "comment": ANYTHING, SNOOZE_DAYS: st.integers() | ANYTHING}
        )
        | ANYTHING,
        "responded_at": st.just(NOW) | st.datetimes() | st.datetimes(timezones=st.just(UTC)) | ANYTHING,
        "responded_by_user": st.just({"id": "7", "name": "operator"})
        | st.fixed_dictionaries({"id": ANYTHING, "name": ANYTHING})
        | ANYTHING,
        "timedout": st.just(False) | ANYTHING,
    },
)


@example(event())
@example(ticked("b1.s02"))
@given(EVENTS)
def test_no_event_whatsoever_is_an_approval_unless_it_is_a_plain_yes(given_event: dict[str, Any]) -> None:
    """No event raises an error, and an approval needs exactly the one option, a name, and known ticked steps."""
    answer = answer_to(given_event)
    if answer.decision is not Decision.APPROVED:
        assert (answer.step_ids, answer.digest, answer.expires_at) == ((), None, None)
        return
    assert given_event["chosen_options"] == [APPROVE]
    assert given_event["responded_by_user"]["name"].strip()
    assert given_event.get("timedout", False) is False
    steps = given_event["params_input"]["steps"]
    assert steps
    assert sorted(steps) == sorted(answer.step_ids)
    assert set(steps) <= set(IDS)
    assert answer.expires_at is not None
    assert answer.expires_at <= NOW + timedelta(minutes=35)


@given(ANYTHING)
def test_nothing_that_is_no_event_raises(given_event: Any) -> None:
    """Arbitrary data in place of Airflow's event raises no error, and is never read as an approval."""
    assert answer_to(given_event).decision is not Decision.APPROVED


EVICTING = ChangeSetting(
    namespace="shop/orders",
    name=SettingName.SIZE_QUOTA,
    before=None,
    after=BacklogQuota(limit_bytes=1000, policy=QuotaPolicy.EVICT),
)
LOSSY = a_plan(a_batch(a_step(step_id="b1.s01"), a_step(EVICTING, step_id="b1.s02")))


@cases(
    "steps, tick, decision",
    ("confirmed", ["b1.s01", "b1.s02"], {LOSS: True}, Decision.APPROVED),
    ("not confirmed", ["b1.s01", "b1.s02"], {LOSS: False}, Decision.REJECTED),
    ("a text", ["b1.s01", "b1.s02"], {LOSS: "true"}, Decision.REJECTED),
    ("not asked", ["b1.s02"], {}, Decision.REJECTED),
    ("the others only", ["b1.s01"], {}, Decision.APPROVED),
)
def test_what_deletes_messages_needs_a_confirmation_of_its_own(
    steps: list[str], tick: dict[str, Any], decision: Decision
) -> None:
    asked = ApprovalQuestion(plan=LOSSY, batch_id="b1", run=RUN, asked_digest=ASKED_DIGEST)
    answer = interpret(event(params_input={"steps": steps, "comment": "", **tick}), asked, POLICY, NOW)

    assert answer.decision is decision
    assert decision is Decision.APPROVED or "not confirmed, and b1.s02" in answer.reason


KIND = PLAN.batch("b1").kind


@row_by_row(
    "policy, asked, by, said",
    ({"assigned_users": ["bob"]}, {}, "operator", "operator may not answer"),
    ({"assigned_users_by_kind": {KIND: ["bob"]}}, {}, "operator", "operator may not answer"),
    ({"assigned_users_by_kind": {KIND: ["operator"]}, "assigned_users": ["bob"]}, {}, "operator", None),
    ({"assigned_users_by_kind": {"rollback": ["bob"]}}, {}, "operator", None),
    ({"requester_may_approve": False}, {"requested_by": "operator"}, "operator", "operator started the run"),
    ({"requester_may_approve": False}, {"requested_by": "operator"}, "bob", None),
    ({"requester_may_approve": False}, {"origin": Origin.SCHEDULE}, "operator", None),
    ({"requester_may_approve": False}, {}, "operator", "who started the run is not"),
    ({}, {"requested_by": "operator"}, "operator", None),
    ({}, {"first": FIRST}, "alice", "alice gave the first approval"),
    ({}, {"first": FIRST}, "bob", None),
)
def test_only_whom_the_policy_names_can_approve(
    policy: dict[str, Any], asked: dict[str, Any], by: str, said: str | None
) -> None:
    """An approval counts only if the policy lets its responder approve, whatever Airflow accepted."""
    question = ApprovalQuestion(**{"plan": PLAN, "batch_id": "b1", "run": RUN, "asked_digest": ASKED_DIGEST, **asked})
    steps = [step.step_id for step in question.steps]
    given_event = event(
        responded_by_user={"id": by, "name": by}, params_input={"steps": steps, "comment": "", "other": 1}
    )
    answer = interpret(given_event, question, ApprovalPolicy.model_validate(policy), NOW)
    assert answer.decision is (Decision.MALFORMED if said else Decision.APPROVED)
    assert answer.reason.startswith(said or "a ")


def test_who_started_the_run_may_reject_it() -> None:
    """A person who started the run may reject its batch, although the policy forbids that person to approve it."""
    policy = ApprovalPolicy(requester_may_approve=False)
    asked = ApprovalQuestion(plan=PLAN, batch_id="b1", run=RUN, requested_by="operator", asked_digest=ASKED_DIGEST)
    assert interpret(event(chosen_options=[REJECT]), asked, policy, NOW).decision is Decision.REJECTED


def test_a_second_person_confirms_no_more_than_the_first_approved() -> None:
    question = ApprovalQuestion(plan=PLAN, batch_id="b1", run=RUN, voice=2, first=FIRST, asked_digest=ASKED_DIGEST)
    answer = interpret(ticked("b1.s03"), question, POLICY, NOW)
    assert (answer.decision, answer.voice, answer.step_ids) == (Decision.APPROVED, 2, ("b1.s03",))
    assert answer.digest == approval_digest(PLAN, "b1", ["b1.s03"])
    assert interpret(ticked("b1.s02"), question, POLICY, NOW).decision is Decision.MALFORMED


def by_risk(**demands: Any) -> ApprovalPolicy:
    """A policy that demands this of every batch, by its risk."""
    return ApprovalPolicy.model_validate({"by_risk": {"low": demands}})


@row_by_row(
    "demands, asked, decision",
    ({"users": ["7"]}, {}, Decision.APPROVED),
    ({"users": ["8"]}, {}, Decision.MALFORMED),
    ({"requester_may_approve": False}, {"requested_by": "operator"}, Decision.MALFORMED),
    ({"requester_may_approve": False}, {"origin": Origin.SCHEDULE}, Decision.APPROVED),
    ({"people": 2}, {}, Decision.APPROVED),
)
def test_what_a_batch_demands_by_its_risk_is_asked_of_who_answers(
    demands: dict[str, Any], asked: dict[str, Any], decision: Decision
) -> None:
    """An approval is malformed if the policy for the batch's risk does not permit the person who gave it."""
    question = ApprovalQuestion(plan=PLAN, batch_id="b1", run=RUN, asked_digest=ASKED_DIGEST, **asked)
    assert interpret(event(), question, by_risk(**demands), NOW).decision is decision


def test_an_approval_counts_as_long_as_the_risk_lets_it() -> None:
    """An approval expires after the minutes that the policy sets for the batch's risk."""
    assert interpret(event(), ASKED, by_risk(valid_minutes=5), NOW).expires_at == NOW + timedelta(minutes=5)


@pytest.mark.parametrize(("opens", "hours"), [("0 22 * * *", 10), ("0 12 * * *", 0), ("0 12 20 3 *", 0)])
def test_an_approval_before_a_window_counts_from_its_opening(opens: str, hours: int) -> None:
    """An approval's time counts from the next window's opening, or from the answer if that is open or weeks away."""
    windows = (MaintenanceWindow(opens=opens, minutes=60),)
    given = interpret(event(), ASKED, POLICY, NOW, windows)
    assert given.expires_at == NOW + timedelta(hours=hours, minutes=30)


def expiring(namespace: str, number: int, after: TimeToLive | None) -> Step:
    """A step that has a namespace's messages expire, or never."""
    change = ChangeSetting(namespace=namespace, name=SettingName.TTL, before=TimeToLive(seconds=90), after=after)
    return a_step(change, step_id=f"b1.s{number:02d}")


LATER, SOONER = TimeToLive(seconds=900), TimeToLive(seconds=9)
GROUP = a_plan(
    a_batch(expiring("shop/a", 1, LATER), expiring("shop/a", 2, LATER), expiring("shop/b", 3, LATER), parts=(2, 1))
)
ABOUT_GROUP = ApprovalQuestion(plan=GROUP, batch_id="b1", run=RUN, asked_digest=ASKED_DIGEST)


def group_answer(asked: ApprovalQuestion = ABOUT_GROUP, /, **fields: Any) -> Answer:
    """Answer recorded for an approval, with every step ticked and these fields of its form."""
    form = {"steps": [step.step_id for step in asked.steps], "comment": "", LEFT_OUT: [], **fields}
    given_event = event(params_input={name: value for name, value in form.items() if value is not GONE})
    return interpret(given_event, asked, POLICY, NOW)


@cases(
    "fields, steps",
    ("none", {}, IDS),
    ("a field that was cleared", {LEFT_OUT: None}, IDS),
    ("the first", {LEFT_OUT: ["shop/a"]}, IDS[2:]),
    ("the second", {LEFT_OUT: ["shop/b"]}, IDS[:2]),
    ("ticks beside it", {LEFT_OUT: ["shop/b"], "steps": ["b1.s02", "b1.s03"]}, IDS[1:2]),
)
def test_all_but_some_namespaces_are_approved(fields: dict[str, Any], steps: tuple[str, ...]) -> None:
    """A step counts if it is ticked and its namespace is not left out; digest and reason are of exactly that."""
    answer = group_answer(**fields)
    assert (answer.decision, answer.step_ids) == (Decision.APPROVED, steps)
    assert answer.digest == approval_digest(GROUP, "b1", steps)
    assert [name for name in ABOUT_GROUP.namespaces if name in answer.reason] == (fields.get(LEFT_OUT) or [])


@cases(
    "fields, decision",
    ("all", {LEFT_OUT: ["shop/a", "shop/b"]}, Decision.REJECTED),
    ("the only one that is ticked", {LEFT_OUT: ["shop/a"], "steps": ["b1.s01"]}, Decision.REJECTED),
    ("field missing", {LEFT_OUT: GONE}, Decision.MALFORMED),
    ("a text", {LEFT_OUT: "shop/a"}, Decision.MALFORMED),
    ("an object", {LEFT_OUT: {"shop/a": True}}, Decision.MALFORMED),
    ("another namespace", {LEFT_OUT: ["shop/c"]}, Decision.MALFORMED),
    ("the tenant", {LEFT_OUT: ["shop"]}, Decision.MALFORMED),
    ("one twice", {LEFT_OUT: ["shop/a", "shop/a"]}, Decision.MALFORMED),
    ("a list in a list", {LEFT_OUT: [["shop/a"]]}, Decision.MALFORMED),
    ("a number", {LEFT_OUT: ["shop/a", 1]}, Decision.MALFORMED),
    ("a step", {LEFT_OUT: ["b1.s01"]}, Decision.MALFORMED),
    ("without end", {LEFT_OUT: ["shop/a"] * 100_000}, Decision.MALFORMED),
)
def test_what_is_left_out_is_read_strictly(fields: dict[str, Any], decision: Decision) -> None:
    """An approval is malformed when its field of excluded namespaces is anything but a list of the batch's namespaces.

    It is a rejection when no ticked step remains.
    """
    answer = group_answer(**fields)
    assert (answer.decision, answer.step_ids, answer.digest) == (decision, (), None)
    assert len(answer.reason) < 500


def test_namespaces_are_left_out_only_where_that_is_asked() -> None:
    """An answer that leaves out a namespace is malformed where the batch is about one namespace."""
    form = {"steps": list(IDS), "comment": "", LEFT_OUT: ["pulsar/system"]}
    assert answer_to(event(params_input=form)).decision is Decision.MALFORMED


def test_a_second_person_leaves_out_what_the_first_one_kept() -> None:
    first = RecordedAnswer(answer_id=1, **msgspec.structs.asdict(group_answer(**{LEFT_OUT: ["shop/a"]})))
    second = msgspec.structs.replace(
        ABOUT_GROUP, voice=2, first=msgspec.structs.replace(first, answered_by="alice", answered_by_id="8")
    )
    assert (second.namespaces, [step.step_id for step in second.steps]) == (("shop/b",), ["b1.s03"])
    assert group_answer(second).step_ids == ("b1.s03",)
    assert group_answer(second, **{LEFT_OUT: ["shop/a"]}).decision is Decision.MALFORMED
    assert group_answer(second, **{LEFT_OUT: ["shop/b"]}).decision is Decision.REJECTED


def test_the_tick_for_loss_is_for_what_counts() -> None:
    """A loss needs no confirmation where the namespace that would lose messages is left out."""
    plan = a_plan(a_batch(expiring("shop/a", 1, SOONER), expiring("shop/b", 2, LATER), parts=(1, 1)))
    asked = ApprovalQuestion(plan=plan, batch_id="b1", run=RUN, asked_digest=ASKED_DIGEST)
    assert group_answer(asked).decision is Decision.REJECTED
    assert group_answer(asked, **{LOSS: True}).step_ids == ("b1.s01", "b1.s02")
    assert group_answer(asked, **{LEFT_OUT: ["shop/a"]}).step_ids == ("b1.s02",)
