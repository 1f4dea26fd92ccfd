"""From what Airflow recorded to what the ledger keeps: only a plain yes of a named person is a yes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pendulum
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pulsar_steward.ledger.rows import Answer, Decision, Origin, RecordedAnswer
from pulsar_steward.model.plan import ROLLBACK, Batch, approval_digest
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.orchestration.approval_response import (
    APPROVE,
    LEFT_OUT,
    LOSS,
    NEVER,
    REJECT,
    SNOOZE,
    SNOOZE_DAYS,
    UNTIL_WORSE,
    Question,
    interpret,
)
from pulsar_steward.policy.approval import ApprovalPolicy
from pulsar_steward.policy.guards import Window
from tests.builders import NOW, a_batch, a_plan, a_step

if TYPE_CHECKING:
    from pulsar_steward.model.step import Step

IDS = ("b1.s01", "b1.s02", "b1.s03")
PLAN = a_plan(a_batch(*(a_step(step_id=step_id) for step_id in IDS)))
POLICY = ApprovalPolicy(valid_minutes=30)
RUN = "dag/run/0"
ASKED = Question(plan=PLAN, batch_id="b1", run=RUN)
GONE = object()
"""Stands for a field that is missing."""


def event(**fields: Any) -> dict[str, Any]:
    """An approval of every step as Airflow reports it, with other fields or without some (`GONE`)."""
    usual = {
        "chosen_options": [APPROVE],
        "params_input": {"steps": list(IDS), "comment": ""},
        "responded_at": NOW,
        "responded_by_user": {"id": "7", "name": "operator"},
        "timedout": False,
    }
    return {name: value for name, value in {**usual, **fields}.items() if value is not GONE}


def ticked(*steps: Any) -> dict[str, Any]:
    """The same with these steps ticked."""
    return event(params_input={"steps": list(steps), "comment": ""})


def answer_to(given_event: Any) -> Answer:
    """What it comes to."""
    return interpret(given_event, ASKED, POLICY, NOW)


@pytest.mark.parametrize(
    ("given_event", "steps"),
    [
        (event(), IDS),
        (ticked("b1.s02"), ("b1.s02",)),
        (ticked("b1.s03", "b1.s01"), ("b1.s01", "b1.s03")),
        (event(timedout=GONE), IDS),
        (event(responded_at="2026-03-01T12:00:00Z"), IDS),
        (event(responded_at="2026-03-01T13:00:00+01:00"), IDS),
        (event(responded_at=pendulum.datetime(2026, 3, 1, 12, tz="UTC")), IDS),
        (event(responded_at=pendulum.datetime(2026, 3, 1, 13, tz="Europe/Berlin")), IDS),
    ],
    ids=[
        "every step",
        "one",
        "in another order",
        "without a word of timeouts",
        "time as text",
        "time of another zone",
        "time as Airflow has it",
        "time as Airflow has it elsewhere",
    ],
)
def test_a_plain_yes_is_an_approval_of_exactly_the_ticked_steps(
    given_event: dict[str, Any], steps: tuple[str, ...]
) -> None:
    """It carries the person, the steps in the plan's order, their digest, and its end."""
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
        pytest.param(ticked(), "rejected", "every step was unticked", id="nothing ticked"),
        pytest.param(event(params_input={}), "malformed", "not a list of steps", id="no steps"),
        pytest.param(event(params_input=GONE), "malformed", "not a list of steps", id="no form"),
        pytest.param(event(params_input={"steps": None}), "malformed", "not a list of steps", id="steps are null"),
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
    """Each other shape is a rejection, no answer or malformed, with the reason, and covers no step."""
    answer = answer_to(given_event)
    assert answer.decision == decision
    assert reason in answer.reason
    assert (answer.step_ids, answer.digest, answer.expires_at) == ((), None, None)


def test_the_comment_is_kept() -> None:
    """Also beside a rejection, without the blanks around it."""
    answer = answer_to(event(chosen_options=[REJECT], params_input={"comment": "  not today\n"}))
    assert answer.comment == "not today"


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


@given(EVENTS)
def test_no_event_whatsoever_is_an_approval_unless_it_is_a_plain_yes(given_event: dict[str, Any]) -> None:
    """An approval rests on exactly the one option, a name, and known steps that were ticked; nothing ever raises."""
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
    """What Airflow hands over may be anything: without all of a plain yes it permits nothing."""
    assert answer_to(given_event).decision is not Decision.APPROVED


EVICTING = ChangeSetting(
    namespace="shop/orders",
    name=SettingName.SIZE_QUOTA,
    before=None,
    after=BacklogQuota(limit_bytes=1000, policy=QuotaPolicy.EVICT),
)
LOSSY = a_plan(a_batch(a_step(step_id="b1.s01"), a_step(EVICTING, step_id="b1.s02")))


@pytest.mark.parametrize(
    ("steps", "tick", "decision"),
    [
        (["b1.s01", "b1.s02"], {LOSS: True}, Decision.APPROVED),
        (["b1.s01", "b1.s02"], {LOSS: False}, Decision.REJECTED),
        (["b1.s01", "b1.s02"], {LOSS: "true"}, Decision.REJECTED),
        (["b1.s02"], {}, Decision.REJECTED),
        (["b1.s01"], {}, Decision.APPROVED),
    ],
    ids=["confirmed", "not confirmed", "a text", "not asked", "the others only"],
)
def test_what_deletes_messages_needs_a_confirmation_of_its_own(
    steps: list[str], tick: dict[str, Any], decision: Decision
) -> None:
    """Approve alone is not enough: the tick is for the ticked steps that take messages away."""
    asked = Question(plan=LOSSY, batch_id="b1", run=RUN)
    answer = interpret(event(params_input={"steps": steps, "comment": "", **tick}), asked, POLICY, NOW)

    assert answer.decision is decision
    assert decision is Decision.APPROVED or "not confirmed, and b1.s02" in answer.reason


# -- a question about several namespaces


def expiring(namespace: str, number: int, after: TimeToLive | None) -> Step:
    """A step that has a namespace's messages expire, or never."""
    change = ChangeSetting(namespace=namespace, name=SettingName.TTL, before=TimeToLive(seconds=90), after=after)
    return a_step(change, step_id=f"b1.s{number:02d}")


LATER, SOONER = TimeToLive(seconds=900), TimeToLive(seconds=9)
GROUP = a_plan(
    a_batch(expiring("shop/a", 1, LATER), expiring("shop/a", 2, LATER), expiring("shop/b", 3, LATER), parts=(2, 1))
)
ABOUT_GROUP = Question(plan=GROUP, batch_id="b1", run=RUN)


def group_answer(asked: Question = ABOUT_GROUP, /, **fields: Any) -> Answer:
    """What an approval comes to, with every step ticked and these fields of its form."""
    form = {"steps": [step.step_id for step in asked.steps], "comment": "", LEFT_OUT: [], **fields}
    given_event = event(params_input={name: value for name, value in form.items() if value is not GONE})
    return interpret(given_event, asked, POLICY, NOW)


@pytest.mark.parametrize(
    ("fields", "steps"),
    [
        pytest.param({}, IDS, id="none"),
        pytest.param({LEFT_OUT: ["shop/a"]}, IDS[2:], id="the first"),
        pytest.param({LEFT_OUT: ["shop/b"]}, IDS[:2], id="the second"),
        pytest.param({LEFT_OUT: ["shop/b"], "steps": ["b1.s02", "b1.s03"]}, IDS[1:2], id="ticks beside it"),
    ],
)
def test_all_but_some_namespaces_are_approved(fields: dict[str, Any], steps: tuple[str, ...]) -> None:
    """A step counts if it is ticked and its namespace is not left out; the digest is over exactly these."""
    answer = group_answer(**fields)
    assert (answer.decision, answer.step_ids) == (Decision.APPROVED, steps)
    assert answer.digest == approval_digest(GROUP, "b1", steps)
    assert all(name in answer.reason for name in fields.get(LEFT_OUT, ()))


@pytest.mark.parametrize(
    ("fields", "decision"),
    [
        pytest.param({LEFT_OUT: ["shop/a", "shop/b"]}, Decision.REJECTED, id="all"),
        pytest.param({LEFT_OUT: ["shop/a"], "steps": ["b1.s01"]}, Decision.REJECTED, id="the only one that is ticked"),
        pytest.param({LEFT_OUT: GONE}, Decision.MALFORMED, id="field missing"),
        pytest.param({LEFT_OUT: None}, Decision.MALFORMED, id="null"),
        pytest.param({LEFT_OUT: "shop/a"}, Decision.MALFORMED, id="a text"),
        pytest.param({LEFT_OUT: {"shop/a": True}}, Decision.MALFORMED, id="an object"),
        pytest.param({LEFT_OUT: ["shop/c"]}, Decision.MALFORMED, id="another namespace"),
        pytest.param({LEFT_OUT: ["shop"]}, Decision.MALFORMED, id="the tenant"),
        pytest.param({LEFT_OUT: ["shop/a", "shop/a"]}, Decision.MALFORMED, id="one twice"),
        pytest.param({LEFT_OUT: [["shop/a"]]}, Decision.MALFORMED, id="a list in a list"),
        pytest.param({LEFT_OUT: ["shop/a", 1]}, Decision.MALFORMED, id="a number"),
        pytest.param({LEFT_OUT: ["b1.s01"]}, Decision.MALFORMED, id="a step"),
        pytest.param({LEFT_OUT: ["shop/a"] * 100_000}, Decision.MALFORMED, id="without end"),
    ],
)
def test_what_is_left_out_is_read_strictly(fields: dict[str, Any], decision: Decision) -> None:
    """Whatever is no list of namespaces of the batch permits nothing."""
    answer = group_answer(**fields)
    assert (answer.decision, answer.step_ids, answer.digest) == (decision, (), None)
    assert len(answer.reason) < 500


def test_namespaces_are_left_out_only_where_that_is_asked() -> None:
    """A batch about one namespace has no such field: somebody meant something that was not asked."""
    form = {"steps": list(IDS), "comment": "", LEFT_OUT: ["pulsar/system"]}
    assert answer_to(event(params_input=form)).decision is Decision.MALFORMED


def test_a_second_person_leaves_out_what_the_first_one_kept() -> None:
    """And is not asked about what the first one left out."""
    first = RecordedAnswer(answer_id=1, **msgspec.structs.asdict(group_answer(**{LEFT_OUT: ["shop/a"]})))
    second = msgspec.structs.replace(
        ABOUT_GROUP, first=msgspec.structs.replace(first, answered_by="alice", answered_by_id="8")
    )
    assert (second.namespaces, [step.step_id for step in second.steps]) == (("shop/b",), ["b1.s03"])
    assert group_answer(second).step_ids == ("b1.s03",)
    assert group_answer(second, **{LEFT_OUT: ["shop/a"]}).decision is Decision.MALFORMED
    assert group_answer(second, **{LEFT_OUT: ["shop/b"]}).decision is Decision.REJECTED


def test_the_tick_for_loss_is_for_what_counts() -> None:
    """A namespace that is left out loses nothing."""
    plan = a_plan(a_batch(expiring("shop/a", 1, SOONER), expiring("shop/b", 2, LATER), parts=(1, 1)))
    asked = Question(plan=plan, batch_id="b1", run=RUN)
    assert group_answer(asked).decision is Decision.REJECTED
    assert group_answer(asked, **{LOSS: True}).step_ids == ("b1.s01", "b1.s02")
    assert group_answer(asked, **{LEFT_OUT: ["shop/a"]}).step_ids == ("b1.s02",)


FIRST = RecordedAnswer(
    answer_id=1,
    plan_id=PLAN.plan_id,
    batch_id="b1",
    run=RUN,
    decision=Decision.APPROVED,
    answered_by="alice",
    answered_at=NOW,
    reason="a person approved 2 of 3 steps",
    step_ids=("b1.s01", "b1.s03"),
)
KIND = PLAN.batch("b1").kind


@pytest.mark.parametrize(
    ("policy", "asked", "by", "said"),
    [
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
    ],
)
def test_only_whom_the_policy_names_can_approve(
    policy: dict[str, Any], asked: dict[str, Any], by: str, said: str | None
) -> None:
    """What Airflow reports as the responder is checked against the policy, whatever Airflow let through."""
    question = Question(**{"plan": PLAN, "batch_id": "b1", "run": RUN, **asked})
    steps = [step.step_id for step in question.steps]
    given_event = event(
        responded_by_user={"id": by, "name": by}, params_input={"steps": steps, "comment": "", "other": 1}
    )
    answer = interpret(given_event, question, ApprovalPolicy.model_validate(policy), NOW)
    assert answer.decision is (Decision.MALFORMED if said else Decision.APPROVED)
    assert answer.reason.startswith(said or "a ")


def test_who_started_the_run_may_reject_it() -> None:
    """A no is everybody's."""
    policy = ApprovalPolicy(requester_may_approve=False)
    asked = Question(plan=PLAN, batch_id="b1", run=RUN, requested_by="operator")
    assert interpret(event(chosen_options=[REJECT]), asked, policy, NOW).decision is Decision.REJECTED


def test_a_second_person_confirms_no_more_than_the_first_approved() -> None:
    """Fewer steps are theirs to leave; a step that the first unticked is malformed."""
    question = Question(plan=PLAN, batch_id="b1", run=RUN, first=FIRST)
    answer = interpret(ticked("b1.s03"), question, POLICY, NOW)
    assert (answer.decision, answer.voice, answer.step_ids) == (Decision.APPROVED, 2, ("b1.s03",))
    assert answer.digest == approval_digest(PLAN, "b1", ["b1.s03"])
    assert interpret(ticked("b1.s02"), question, POLICY, NOW).decision is Decision.MALFORMED


def by_risk(**demands: Any) -> ApprovalPolicy:
    """A policy that demands this of every batch, by its risk."""
    return ApprovalPolicy.model_validate({"by_risk": {"low": demands}})


@pytest.mark.parametrize(
    ("demands", "asked", "decision"),
    [
        ({"users": ["7"]}, {}, Decision.APPROVED),
        ({"users": ["8"]}, {}, Decision.MALFORMED),
        ({"requester_may_approve": False}, {"requested_by": "operator"}, Decision.MALFORMED),
        ({"requester_may_approve": False}, {"origin": Origin.SCHEDULE}, Decision.APPROVED),
        ({"people": 2}, {}, Decision.APPROVED),
    ],
)
def test_what_a_batch_demands_by_its_risk_is_asked_of_who_answers(
    demands: dict[str, Any], asked: dict[str, Any], decision: Decision
) -> None:
    """A second person is asked for by the task that asks, and by the gate."""
    question = Question(plan=PLAN, batch_id="b1", run=RUN, **asked)
    assert interpret(event(), question, by_risk(**demands), NOW).decision is decision


def test_an_approval_counts_as_long_as_the_risk_lets_it() -> None:
    """Not as long as others do."""
    assert interpret(event(), ASKED, by_risk(valid_minutes=5), NOW).expires_at == NOW + timedelta(minutes=5)


@pytest.mark.parametrize(("opens", "hours"), [("0 22 * * *", 10), ("0 12 * * *", 0), ("0 12 20 3 *", 0)])
def test_an_approval_before_a_window_counts_from_its_opening(opens: str, hours: int) -> None:
    """From the answer where it is open, or where the next one is weeks away."""
    windows = (Window(opens=opens, minutes=60),)
    given = interpret(event(), ASKED, POLICY, NOW, windows)
    assert given.expires_at == NOW + timedelta(hours=hours, minutes=30)


TTL = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=60))
SETTING = a_plan(a_batch(a_step(TTL, step_id="b1.s01"), kind="retention"))
OF_NAMESPACE = Question(plan=SETTING, batch_id="b1", run=RUN)


def said(option: str, asked: Question = OF_NAMESPACE, **form: Any) -> Answer:
    """An answer with the only step ticked, and these fields of the form."""
    filled = {"steps": ["b1.s01"], "comment": "", SNOOZE_DAYS: 7, UNTIL_WORSE: True, **form}
    given_event = event(
        chosen_options=[option], params_input={name: value for name, value in filled.items() if value is not GONE}
    )
    return interpret(given_event, asked, POLICY, NOW)


@pytest.mark.parametrize("days", [1, 7, 90])
@pytest.mark.parametrize("until_worse", [True, False])
def test_a_snooze_is_for_so_many_days(days: int, until_worse: bool) -> None:
    """It permits nothing, although steps are ticked; the reason says until when."""
    answer = said(SNOOZE, snooze_days=days, until_it_gets_worse=until_worse, comment="after the fair")
    assert (answer.decision, answer.step_ids, answer.digest, answer.expires_at) == (Decision.SNOOZED, (), None, None)
    assert (answer.silent_until, answer.until_worse) == (NOW + timedelta(days=days), until_worse)
    assert ("worse" in answer.reason, answer.comment) == (until_worse, "after the fair")


def test_a_snooze_without_a_form_is_the_usual_one() -> None:
    """As a program may answer that sends no more than the option."""
    answer = said(SNOOZE, snooze_days=GONE, until_it_gets_worse=GONE)
    assert (answer.silent_until, answer.until_worse) == (NOW + timedelta(days=7), True)


HUGE = pytest.param(10**5000, id="5,000 digits")


@pytest.mark.parametrize("days", [0, -1, 91, 7.0, float("nan"), float("inf"), "7", True, None, [7], HUGE])
def test_a_snooze_of_no_known_length_is_none(days: object) -> None:
    """It is malformed, and asked again: nothing is silent for longer than somebody meant."""
    answer = said(SNOOZE, snooze_days=days)
    assert (answer.decision, answer.silent_until) == (Decision.MALFORMED, None)
    assert len(answer.reason) < 400


@pytest.mark.parametrize("worse", [None, 1, "true", []])
def test_until_it_gets_worse_is_yes_or_no(worse: object) -> None:
    """Anything else is asked again."""
    assert said(SNOOZE, until_it_gets_worse=worse).decision is Decision.MALFORMED


def test_never_proposes_a_policy_entry_and_changes_nothing() -> None:
    """With what the policy leaves out for the namespace already, so that the entry takes nothing away."""
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
    """Whatever else is chosen is malformed."""
    asked = Question(plan=a_plan(batch), batch_id="b1", run=RUN)
    assert asked.options == options
    for option, decision in {SNOOZE: Decision.SNOOZED, NEVER: Decision.NEVER}.items():
        assert said(option, asked).decision is (decision if option in options else Decision.MALFORMED)


@pytest.mark.parametrize("option", [SNOOZE, NEVER])
def test_whose_answer_it_is_not_cannot_silence(option: str) -> None:
    """As they cannot reject it either; somebody with a second approval to give can."""
    policy = ApprovalPolicy(assigned_users=("bob",))
    given_event = event(chosen_options=[option])
    assert interpret(given_event, OF_NAMESPACE, policy, NOW).decision is Decision.MALFORMED
    first = msgspec.structs.replace(FIRST, plan_id=SETTING.plan_id, step_ids=("b1.s01",))
    second = msgspec.structs.replace(OF_NAMESPACE, first=first)
    answer = said(option, second)
    assert (answer.decision, answer.voice) == ({SNOOZE: Decision.SNOOZED, NEVER: Decision.NEVER}[option], 2)


@pytest.mark.parametrize("option", [SNOOZE, NEVER])
def test_a_comment_that_cannot_be_kept_does_not_undo_a_no(option: str) -> None:
    """As with a rejection; the reason says so."""
    answer = said(option, comment=7)
    assert answer.decision in {Decision.SNOOZED, Decision.NEVER}
    assert "the comment is not a text" in answer.reason
