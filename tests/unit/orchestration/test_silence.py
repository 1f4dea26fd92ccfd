"""Answers that silence a question: snoozes, never, and what ends them."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import msgspec
import pytest
import yaml

from pulsar_steward.ledger.batch_record import BatchState
from pulsar_steward.ledger.rows import Answer, Decision
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.plan import BROKER_GROUP, ROLLBACK, Batch, goal_of
from pulsar_steward.model.setting import Retention, SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting, SetIsolation
from pulsar_steward.orchestration.approval_response import ApprovalQuestion, interpret
from pulsar_steward.orchestration.asked import AskedBatch, RejectedBatch, SilencedGoal
from pulsar_steward.orchestration.observing import plan_around_noes
from pulsar_steward.orchestration.publish import Publication, SnapshotView, decide
from pulsar_steward.orchestration.question_form import APPROVE, NEVER, REJECT, SNOOZE, SNOOZE_DAYS, UNTIL_WORSE
from pulsar_steward.policy.approval import ApprovalPolicy
from tests.builders import ASKED_DIGEST, NOW, a_batch, a_finding, a_plan, a_step, planning_facts_with
from tests.cases import cases
from tests.unit.orchestration.answering import FIRST, GONE, POLICY, RUN, event
from tests.unit.orchestration.test_publish import (
    BANK,
    MOVE,
    OTHER_MOVE,
    SHOP,
    SHOP_LATER,
    SHOP_LOSES,
    STATES,
    a_new_plan,
    asked,
    in_short,
    rejected,
)
from tests.unit.planners.bundles.test_drain import BOTH, scene
from tests.unit.planners.proposals import KNOWN
from tests.unit.planners.test_nearly_full import HOLD, KEPT, ORDERS, a_namespace, found

SHOP_GROUP, NEWS_GROUP = (
    a_batch(a_step(group=name), kind=BROKER_GROUP, findings=(a_finding(check_id="broker-groups", subject=name),))
    for name in ("shop", "news")
)
WHOLE_SHOP_GROUP = msgspec.structs.replace(
    SHOP_GROUP,
    steps=(a_step(SetIsolation(pulsar_cluster="local", policy="shop", before=None, after=None)), *SHOP_GROUP.steps),
)
WORSE = msgspec.structs.replace(SHOP_LATER, findings=(a_finding(Severity.CRITICAL),))


def silenced(batch: Batch | None, days: int | None = 7, *, until_worse: bool = True, **fields: Any) -> SilencedGoal:
    """A goal that was snoozed just now for so many days, or for good."""
    usual = SilencedGoal(
        plan_id="earlier",
        goal=goal_of(batch or SHOP),
        batch=batch,
        at=NOW,
        until=None if days is None else NOW + timedelta(days=days),
        until_worse=until_worse and days is not None,
    )
    return msgspec.structs.replace(usual, **fields)


def decided(
    batches: list[Batch],
    *silences: SilencedGoal,
    standing: tuple[AskedBatch, ...] = (),
    view: SnapshotView = SnapshotView.COMPLETE,
) -> Publication:
    """Decision on a plan of these batches."""
    return decide(a_new_plan(*batches), view, standing, (), silences)


@cases(
    "batch, silence, asks",
    ("the same", SHOP, silenced(SHOP), False),
    ("another value", SHOP_LATER, silenced(SHOP), False),
    ("another namespace", BANK, silenced(SHOP), True),
    ("another move between brokers", OTHER_MOVE, silenced(MOVE), False),
    ("worse", WORSE, silenced(SHOP), True),
    ("worse, and that does not matter", WORSE, silenced(SHOP, until_worse=False), False),
    ("more is lost", SHOP_LOSES, silenced(SHOP), True),
    ("nobody knows whether it is worse", SHOP, silenced(None), True),
    ("that does not matter", SHOP, silenced(None, until_worse=False), False),
    ("never, however bad", WORSE, silenced(SHOP, days=None), False),
    ("never, whatever it was", SHOP_LOSES, silenced(None, days=None), False),
    ("never of another namespace", BANK, silenced(SHOP, days=None), True),
    ("never of another group", NEWS_GROUP, silenced(SHOP_GROUP, days=None), True),
    ("never of this group, whose policy is set by now", SHOP_GROUP, silenced(WHOLE_SHOP_GROUP, days=None), False),
    ("never of this group, whose policy somebody took back", WHOLE_SHOP_GROUP, silenced(SHOP_GROUP, days=None), False),
)
@pytest.mark.parametrize("view", SnapshotView)
def test_what_is_silent_is_not_asked(batch: Batch, silence: SilencedGoal, asks: bool, view: SnapshotView) -> None:
    """A batch of a silenced goal is neither asked nor recorded, unless the silence ends as the goal may be worse."""
    publication = decided([batch], silence, view=view)
    assert (publication.ask, publication.record) == (asks, asks)


def test_one_that_holds_is_enough() -> None:
    """A goal is silent as long as one of several answers `snoozed` or `never` holds for it."""
    over = silenced(SHOP, days=0)
    assert not decided([WORSE], silenced(SHOP), silenced(SHOP, days=None)).ask
    assert not decided([SHOP], over, silenced(SHOP)).ask
    assert decided([WORSE], over, silenced(SHOP)).ask


def test_the_question_that_was_snoozed_is_left_until_it_is_asked_again() -> None:
    """A snoozed question stands until its goal is asked again as worse or is no longer proposed."""
    question = asked(1, SHOP, BatchState.UNANSWERED)
    assert in_short(decided([SHOP_LATER], silenced(SHOP), standing=(question,))) == ([], [], [])
    publication = decided([WORSE], silenced(SHOP), standing=(question,))
    assert in_short(publication) == (["b1"], [], [(1, "worse", "b1")])
    assert "tc-skew of" in publication.questions.ended[0].words
    assert in_short(decided([], silenced(SHOP), standing=(question,))) == ([], [], [(1, "no_longer_proposed", None)])
    assert in_short(decided([SHOP_LATER], standing=(question,))) == (["b1"], [], [(1, "changed", "b1")])


def test_a_question_that_waits_goes_on() -> None:
    """A waiting question goes on although another proposal for its goal is silenced and not asked."""
    waits = asked(1, MOVE)
    assert in_short(decided([MOVE, OTHER_MOVE], silenced(OTHER_MOVE), standing=(waits,))) == ([], [1], [])


def test_the_same_plan_once_more_does_not_ask_what_was_snoozed() -> None:
    plan = a_new_plan(SHOP)
    question = asked(1, SHOP, BatchState.UNANSWERED, plan_id=plan.plan_id)
    assert decide(plan, SnapshotView.COMPLETE, (question,), ()).ask
    assert not decide(plan, SnapshotView.COMPLETE, (question,), (), (silenced(SHOP),)).ask


def test_it_is_said_who_wants_it_so_and_why() -> None:
    """The reason for not asking names the person and the comment, for a snooze, a `never` and a rejection."""
    person: dict[str, Any] = {"by": "alice", "comment": "after the fair"}
    no = msgspec.structs.replace(rejected(BANK, 5), **person)
    silences = (silenced(SHOP, **person), silenced(MOVE, days=None, **person))
    publication = decide(a_new_plan(SHOP, MOVE, BANK), SnapshotView.COMPLETE, (), (no,), silences)
    reasons = publication.reason.split("; ")
    assert [("by alice" in each, '"after the fair"' in each) for each in reasons] == [(True, True)] * 3


def test_whatever_was_said_and_whatever_is_seen() -> None:
    """In every combination a batch is asked exactly if no snooze or `never` holds for its goal.

    A question that waits for the same is confirmed all the same; one that is over stands while its goal is silent; one
    that nobody was asked ends.
    """
    batches = (None, SHOP, SHOP_LATER, WORSE, BANK)
    noes = (None, silenced(SHOP), silenced(SHOP, until_worse=False), silenced(SHOP, days=None))
    for old, state, new, first, second, view in product(batches, STATES, batches, noes, noes, SnapshotView):
        standing = () if old is None else (asked(1, old, state),)
        silences = [each for each in (first, second) if each is not None]
        publication = decided([] if new is None else [new], *silences, standing=standing, view=view)
        asks, confirmed, ended = in_short(publication)
        case = (old, state, new, first, second, view)
        of_shop = new is not None and goal_of(new) == goal_of(SHOP)
        in_force = [each for each in silences if not (each.until_worse and new is WORSE)]
        without = decided([] if new is None else [new], standing=standing, view=view)
        if of_shop and in_force:
            assert (asks, confirmed) == ([], [] if state is BatchState.NOT_ASKED else in_short(without)[1]), case
            over = old is not None and state is BatchState.UNANSWERED and goal_of(old) == goal_of(SHOP)
            stands = (
                old is None or state is BatchState.CHANGING or over or bool(confirmed) or view is SnapshotView.PARTIAL
            )
            assert ended == ([] if stands else [(1, "no_longer_proposed", None)]), case
        else:
            assert (asks, confirmed) == in_short(without)[:2], case
            assert [(number, by) for number, _, by in ended] == [(n, by) for n, _, by in in_short(without)[2]], case
        assert not (confirmed and ended), case


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


@cases("days", ("no field", GONE), ("an empty field", None))
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
    assert said(SNOOZE, until_it_gets_worse=worse).decision is Decision.MALFORMED


def test_never_proposes_a_policy_entry_and_changes_nothing() -> None:
    answer = said(NEVER)
    assert (answer.decision, answer.step_ids, answer.silent_until) == (Decision.NEVER, (), None)
    entry = {"namespaces": {"shop/orders": {"approval": {"never_ask": ["retention"]}}}}
    assert yaml.safe_load(answer.policy_entry or "") == entry
    more = said(NEVER, msgspec.structs.replace(OF_NAMESPACE, never_asked=("backlog_quota",)))
    entry["namespaces"]["shop/orders"]["approval"]["never_ask"].insert(0, "backlog_quota")
    assert yaml.safe_load(more.policy_entry or "") == entry


@cases(
    "batch, options",
    ("of a namespace", a_batch(a_step(TTL)), (APPROVE, REJECT, SNOOZE, NEVER)),
    ("moves between brokers", a_batch(), (APPROVE, REJECT, SNOOZE)),
    (
        "of two namespaces",
        a_batch(a_step(TTL), a_step(msgspec.structs.replace(TTL, namespace="a/b"))),
        (APPROVE, REJECT, SNOOZE),
    ),
    ("a rollback", a_batch(a_step(TTL), kind=ROLLBACK), (APPROVE, REJECT)),
    (
        "of a name that no policy can hold",
        a_batch(a_step(msgspec.structs.replace(TTL, namespace="a/b c"))),
        (APPROVE, REJECT, SNOOZE),
    ),
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


FOR_EVER = Retention(minutes=-1, megabytes=-1)


@pytest.mark.parametrize("kept", [FOR_EVER, KEPT], ids=["another goal", "the same goal"])
def test_settings_that_nobody_is_asked_about_keep_no_others_waiting(kept: Retention) -> None:
    """A quota is raised where a person said no to another retention; what is asked keeps later settings waiting.

    Where the retention has to be raised for the quota, both proposals have one goal.
    """
    findings = (
        found(),
        *(a_finding(check_id=each, subject=ORDERS) for each in ("retention-unbounded", "delayed-past-ttl")),
    )
    fact = a_namespace(own={SettingName.SIZE_QUOTA: HOLD, SettingName.RETENTION: kept})
    facts = planning_facts_with(3, findings=findings, namespaces=(fact,), **KNOWN)
    (unwanted,) = plan_around_noes(facts, [], []).batches
    every: list[tuple[list[RejectedBatch], list[SilencedGoal]]]
    every = [([rejected(unwanted, 1)], []), ([], [silenced(unwanted)])]
    for noes in every:
        plan = plan_around_noes(facts, *noes)
        (question,) = decide(plan, SnapshotView.COMPLETE, (), *noes).questions.asked
        assert "size quota to" in plan.batch(question.batch_id).title
        assert [batch.changes for batch in plan.batches if batch.batch_id != question.batch_id] == [unwanted.changes]
        (waits,) = (note for note in plan.notes if "changes other settings of it first" in note)
        assert "neither a longer time to live" in waits
        assert any("other changes need not wait for it" in note for note in plan.notes)


def test_a_group_that_nobody_is_asked_about_keeps_no_other_waiting() -> None:
    """Two groups leave too few brokers together: the second is asked about once a person said no to the first."""
    facts = scene(5, (), *BOTH)
    (unwanted,) = plan_around_noes(facts, [], []).batches
    noes: tuple[list[RejectedBatch], list[SilencedGoal]] = ([], [silenced(unwanted, days=None)])
    plan = plan_around_noes(facts, *noes)
    (question,) = decide(plan, SnapshotView.COMPLETE, (), *noes).questions.asked
    assert (unwanted.title.partition(":")[0], question.goal) == ("Group news", "broker_group shop")
