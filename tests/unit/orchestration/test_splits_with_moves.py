"""A batch that splits bundles and moves their parts: what a no to it, or to one of its two kinds, comes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from pulsar_steward.ledger.batch_record import BatchState
from pulsar_steward.model.canonical import digest
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.loss import InFlight
from pulsar_steward.model.plan import (
    BUNDLE_BALANCE,
    BUNDLE_SPLIT,
    ROLLBACK,
    TakenBack,
    changes_digest,
    content_digest,
    covered_by_rejection,
    further_digests,
    goal_digest,
    no_digests,
)
from pulsar_steward.orchestration.observing import plan_around_noes
from pulsar_steward.orchestration.publish import SnapshotView, decide
from tests.builders import a_batch, a_finding, a_move, a_plan, a_split, a_step, broker, planning_facts_with
from tests.unit.orchestration.test_publish import a_new_plan, asked, decided, in_short, rejected
from tests.unit.orchestration.test_silence import silenced
from tests.unit.planners.bundles.scenes import CROWDED
from tests.unit.planners.bundles.test_split_then_move import scene_beside
from tests.unit.planners.test_plan import FACTS
from tests.unit.planners.test_plan import SKEW as SKEWED

if TYPE_CHECKING:
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.model.plan import Batch
    from pulsar_steward.orchestration.asked import RejectedBatch, SilencedGoal

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
    question = asked(1, BOTH, BatchState.UNANSWERED)
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
    question = asked(1, changing, BatchState.CHANGING)
    assert not decided([batch], [question]).ask
    assert decided([splits(findings=(HOT,))], [asked(1, moves(), BatchState.CHANGING)]).ask


def test_an_open_question_about_splits_with_moves_holds_up_no_moves() -> None:
    """A question that waits for its answer neither holds nor ends one about other moves."""
    assert in_short(decided([BOTH, moves()], [asked(1, BOTH)])) == (["b2"], [1], [])


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
