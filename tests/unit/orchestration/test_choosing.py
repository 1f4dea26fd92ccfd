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
from pulsar_steward.ledger.batch_record import BatchState
from pulsar_steward.ledger.publishing import NewQuestion, QuestionChanges
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.ledger.silences import SilenceEnd, take_back
from pulsar_steward.model.canonical import digest
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.loss import InFlight
from pulsar_steward.model.plan import (
    BUNDLE_BALANCE,
    BUNDLE_SPLIT,
    ROLLBACK,
    Plan,
    TakenBack,
    changes_digest,
    content_digest,
    covered_by_rejection,
    further_digests,
    goal_digest,
    goal_of,
    no_digests,
)
from pulsar_steward.orchestration.observing import plan_around_noes
from pulsar_steward.orchestration.publish import SnapshotView, decide
from pulsar_steward.orchestration.remediating import RemediateParams, choose, dry_run, wanted_by
from pulsar_steward.orchestration.run_states import RunStates
from tests.apply.worksite import Worksite, said
from tests.asking import AirflowRows, asked
from tests.builders import (
    CLUSTER,
    a_batch,
    a_finding,
    a_move,
    a_plan,
    a_policy,
    a_split,
    a_step,
    broker,
    planning_facts_with,
)
from tests.cases import cases
from tests.unit.orchestration.test_publish import a_new_plan, decided, in_short, rejected
from tests.unit.orchestration.test_publish import asked as moves_asked
from tests.unit.orchestration.test_silence import silenced
from tests.unit.planners.bundles.scenes import CROWDED
from tests.unit.planners.bundles.test_split_then_move import scene_beside
from tests.unit.planners.test_plan import FACTS
from tests.unit.planners.test_plan import SKEW as SKEWED

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.model.plan import Batch
    from pulsar_steward.model.step import Step
    from pulsar_steward.orchestration.asked import RejectedBatch, SilencedGoal

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


NAMESPACE = "shop/orders"
HOT, SKEW = a_finding(check_id="hot-bundle"), a_finding(check_id="broker-load-skew")
SPLIT = a_split(namespace=NAMESPACE)


def splits(*targets: int, findings: tuple[Finding, ...] = (HOT, SKEW), **fields: object) -> Batch:
    """A split, and moves of its parts to these brokers; `fields` are those of the moves' steps."""
    moves = [
        a_step(a_move(namespace=NAMESPACE, bundle=half, target=broker(target)), **fields)
        for half, target in zip(SPLIT.halves, targets, strict=False)
    ]
    return a_batch(a_step(SPLIT), *moves, kind=BUNDLE_SPLIT, findings=findings)


def moves(target: int = 1, *, namespace: str = "shop/carts") -> Batch:
    """A move between brokers."""
    change = a_move(namespace=namespace, target=broker(target))
    return a_batch(a_step(change), kind=BUNDLE_BALANCE, findings=(SKEW,))


BOTH, ELSEWHERE, ALONE = splits(1), splits(2), splits()


def no_to(batch: Batch) -> RejectedBatch:
    """A rejection, as the ledger's book gives it."""
    plan = a_new_plan(batch)
    return msgspec.structs.replace(
        rejected(batch, 1), content=content_digest(plan, covered_by_rejection(plan.batches[0]))
    )


@pytest.mark.parametrize(
    ("said_of", "batch", "is_asked"),
    [
        pytest.param(moves(), BOTH, False, id="moves are silent: so are splits with moves"),
        pytest.param(moves(), ALONE, True, id="splits alone are not"),
        pytest.param(BOTH, moves(), True, id="a no to splits with moves is none to other moves"),
        pytest.param(BOTH, ELSEWHERE, False, id="the same splits, and other targets"),
        pytest.param(BOTH, ALONE, False, id="the same splits alone"),
    ],
)
@pytest.mark.parametrize("until_worse", [True, False])
def test_a_silence_of_either_goal_silences_both(
    said_of: Batch, batch: Batch, is_asked: bool, *, until_worse: bool
) -> None:
    """Splits that move parts are not asked about while moves, or splits of the namespace, are silent."""
    silence = silenced(said_of, until_worse=until_worse)
    assert decide(a_new_plan(batch), SnapshotView.COMPLETE, (), (), (silence,)).ask is is_asked


def test_only_what_moves_answer_makes_them_worse() -> None:
    """A snooze of moves ends by a worse load of brokers; a bundle that is hot is another matter."""
    snooze = (silenced(moves()),)
    worse = splits(1, findings=(HOT, a_finding(Severity.CRITICAL, check_id="broker-load-skew")))
    hotter = splits(1, findings=(a_finding(Severity.CRITICAL, check_id="hot-bundle"), SKEW))
    assert decide(a_new_plan(worse), SnapshotView.COMPLETE, (), (), snooze).ask
    assert not decide(a_new_plan(hotter), SnapshotView.COMPLETE, (), (), snooze).ask


def test_what_moves_answer_makes_splits_alone_no_worse() -> None:
    """A snooze of splits alone goes on where parts would be moved by now; a hotter bundle ends it."""
    snooze = (silenced(splits(findings=(HOT,))),)
    hotter = splits(1, findings=(a_finding(Severity.CRITICAL, check_id="hot-bundle"), SKEW))
    new = splits(1, findings=(HOT, a_finding(check_id="bundle-topic-skew"), SKEW))
    assert not decide(a_new_plan(BOTH), SnapshotView.COMPLETE, (), (), snooze).ask
    assert decide(a_new_plan(hotter), SnapshotView.COMPLETE, (), (), snooze).ask
    assert decide(a_new_plan(new), SnapshotView.COMPLETE, (), (), snooze).ask


def test_a_silence_of_moves_ends_an_approval_of_splits_with_moves() -> None:
    """The gate looks for a no to any goal of a batch; a no to splits with moves reaches no other moves."""
    plan = a_plan()
    assert goal_digest(plan, moves()) in further_digests(plan, BOTH)
    assert not further_digests(plan, ALONE)
    assert goal_digest(plan, BOTH) not in no_digests(plan, moves())
    assert changes_digest(plan, ELSEWHERE) in no_digests(plan, BOTH)


def test_a_rejection_from_before_still_ends_an_approval() -> None:
    """A no that an earlier version recorded has the digest of all changes, moves too; it counts for the same batch."""
    plan = a_plan()
    earlier = digest([plan.cluster, plan.pulsar_cluster, [[step.change, step.undoes] for step in BOTH.steps]])
    assert earlier in no_digests(plan, BOTH)
    assert earlier not in no_digests(plan, ELSEWHERE)


def test_a_way_back_is_not_ended_by_a_silence_of_moves() -> None:
    """A rollback of moves of parts has its own goal alone, as a person wants it."""
    back = msgspec.structs.replace(moves(), kind=ROLLBACK, takes_back=TakenBack(kind=BUNDLE_SPLIT))
    assert back.kinds == (BUNDLE_SPLIT, BUNDLE_BALANCE)
    assert back.further_goals == ()


@pytest.mark.parametrize("batch", [BOTH, ELSEWHERE, ALONE], ids=["the same", "other targets", "no move"])
def test_a_rejection_rests_for_the_same_splits(batch: Batch) -> None:
    """Targets follow the load of the moment: a rejection rests for the same splits, wherever the parts would go."""
    question = moves_asked(1, BOTH, BatchState.UNANSWERED)
    no = msgspec.structs.replace(no_to(BOTH), plan_id=question.plan_id)
    assert in_short(decided([batch], [question], [no])) == ([], [], [])


def test_a_rejection_does_not_rest_for_other_splits_or_more_in_flight() -> None:
    """Other splits are asked about, and the same ones too once a move of a part redelivers far more."""
    other = a_batch(a_step(a_split(namespace=NAMESPACE, bundle="0x10000000_0x20000000")), kind=BUNDLE_SPLIT)
    more = splits(2, in_flight=InFlight(again=30_001))
    assert decided([other], rejections=[no_to(BOTH)]).ask
    assert decided([more], rejections=[no_to(splits(1, in_flight=InFlight(again=10)))]).ask


@pytest.mark.parametrize(
    ("changing", "batch"), [(BOTH, moves()), (moves(), BOTH), (BOTH, ELSEWHERE)], ids=["moves", "splits", "the same"]
)
def test_moves_wait_while_others_are_carried_out(changing: Batch, batch: Batch) -> None:
    """While a batch moves bundles, no other that moves any is asked; a split alone is."""
    question = moves_asked(1, changing, BatchState.CHANGING)
    assert not decided([batch], [question]).ask
    assert decided([splits(findings=(HOT,))], [moves_asked(1, moves(), BatchState.CHANGING)]).ask


def test_an_open_question_about_splits_with_moves_holds_up_no_moves() -> None:
    """A question that waits for its answer neither holds nor ends one about other moves."""
    assert in_short(decided([BOTH, moves()], [moves_asked(1, BOTH)])) == (["b2"], [1], [])


def test_plans_are_made_without_moves_of_parts_that_a_person_said_no_to() -> None:
    """Moves of parts that are silent or rejected are left out, and others no longer wait; without a no they stay."""
    facts = scene_beside()
    parts, others = sorted(plan_around_noes(facts, [], []).batches, key=lambda batch: batch.kind, reverse=True)
    assert parts.further_goals == (BUNDLE_BALANCE,)
    every: list[tuple[list[RejectedBatch], list[SilencedGoal]]]
    every = [([], [silenced(others)]), ([], [silenced(parts)]), ([no_to(parts)], [])]
    for noes in every:
        plan = plan_around_noes(facts, *noes)
        assert sorted(batch.kinds for batch in plan.batches) == [(BUNDLE_BALANCE,), (BUNDLE_SPLIT,)]
    worse = silenced(msgspec.structs.replace(parts, findings=()))
    assert plan_around_noes(facts, [], [worse]) == plan_around_noes(facts, [], [])


def test_splits_that_nobody_is_asked_about_keep_no_bundle_from_other_moves() -> None:
    """Where splits of a namespace are silent or rejected, its bundles are evened out, which the plan says."""
    facts = planning_facts_with(3, findings=(CROWDED, SKEWED), bundles=FACTS)
    alone, others = sorted(plan_around_noes(facts, [], []).batches, key=lambda batch: batch.kind, reverse=True)
    assert {step.change.namespace for step in others.steps} == {"shop/carts"}
    every: list[tuple[list[RejectedBatch], list[SilencedGoal]]]
    every = [([], [silenced(alone, days=None)]), ([], [silenced(alone)]), ([no_to(alone)], [])]
    for noes in every:
        plan = plan_around_noes(facts, *noes)
        (others,) = (batch for batch in plan.batches if batch.kind == BUNDLE_BALANCE)
        assert NAMESPACE in {step.change.namespace for step in others.steps}
        assert not any("are left where they are" in note for note in plan.notes)
        assert any("other changes need not wait for it" in note for note in plan.notes)
