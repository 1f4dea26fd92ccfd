"""Whether a new plan is a new question, by how the earlier ones stand."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Answer, Decision, PlanRow
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.plan import ROLLBACK, approval_digest
from pulsar_steward.orchestration.publish import Publication, Standing, View, decide, standing_plans
from pulsar_steward.policy.approval import ApprovalPolicy
from pulsar_steward.policy.schema import ApplyPolicy, Policy
from tests.builders import CLUSTER, IDENTITY, NOW, a_batch, a_move, a_plan, a_step, an_outcome, broker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Engine

    from pulsar_steward.model.plan import Plan

POLICY = ApprovalPolicy(response_timeout_minutes=60, ask_again_minutes=120)
WHOLE_POLICY = Policy(approval=POLICY)
NEW = a_plan(snapshot_id="new", pulsar_cluster=IDENTITY, policy_digest=WHOLE_POLICY.digest)
SAME = a_plan(snapshot_id="older")
OTHER = a_plan(a_batch(a_step(a_move(target=broker(2)))), snapshot_id="other")
EMPTY = a_plan(batches=(), snapshot_id="empty", notes=("all is well",))
RUN = "dag/run/0"


def standing(
    plan: Plan,
    *,
    waiting: bool = False,
    answerable: bool = True,
    rejected: int | None = None,
    superseded: bool = False,
) -> Standing:
    """How a plan stands; `rejected` is minutes ago."""
    row = PlanRow(
        plan_id=plan.plan_id,
        cluster=CLUSTER,
        snapshot_id=plan.snapshot_id,
        created_at=NOW,
        digest=plan.digest,
        proposal_digest=plan.proposal_digest,
        superseded_by="a newer one" if superseded else None,
        superseded_at=NOW if superseded else None,
    )
    rejected_at = None if rejected is None else NOW - timedelta(minutes=rejected)
    return Standing(row=row, waiting=waiting, answerable=answerable, rejected_at=rejected_at)


@pytest.mark.parametrize(
    ("plan", "earlier", "asks", "superseded", "reason"),
    [
        pytest.param(NEW, [], True, [], "1 batch", id="the first"),
        pytest.param(NEW, [standing(SAME, waiting=True)], False, None, "still waits", id="the same waits"),
        pytest.param(
            NEW,
            [standing(SAME, waiting=True, answerable=False)],
            True,
            [SAME],
            "1 batch",
            id="the same waits, and an answer to it would be refused",
        ),
        pytest.param(NEW, [standing(SAME)], True, [SAME], "1 batch", id="the same timed out"),
        pytest.param(NEW, [standing(OTHER, waiting=True)], True, [OTHER], "1 batch", id="another waits"),
        pytest.param(NEW, [standing(SAME, rejected=119)], False, None, "was rejected at", id="rejected lately"),
        pytest.param(NEW, [standing(SAME, rejected=120)], True, [SAME], "1 batch", id="rejected long ago"),
        pytest.param(NEW, [standing(OTHER, rejected=1)], True, [OTHER], "1 batch", id="another was rejected"),
        pytest.param(
            NEW,
            [standing(EMPTY), standing(SAME, rejected=10, superseded=True)],
            False,
            None,
            "was rejected at",
            id="rejected lately, then all was well",
        ),
        pytest.param(
            NEW,
            [standing(OTHER, waiting=True), standing(SAME, rejected=10, superseded=True)],
            True,
            [OTHER],
            "1 batch",
            id="rejected lately, but an outdated question waits",
        ),
        pytest.param(NEW, [standing(OTHER, superseded=True)], True, [], "1 batch", id="superseded before"),
        pytest.param(NEW, [standing(NEW)], True, [], "1 batch", id="itself once more"),
        pytest.param(EMPTY, [], False, [], "all is well", id="nothing to do"),
        pytest.param(EMPTY, [standing(OTHER, waiting=True)], False, [OTHER], "all is well", id="healed by itself"),
    ],
)
def test_what_becomes_of_a_plan(
    plan: Plan, earlier: list[Standing], asks: bool, superseded: list[Plan] | None, reason: str
) -> None:
    """It is asked about unless the same waits or was rejected lately, and supersedes what it differs from.

    `superseded` None stands for a plan that is not even recorded.
    """
    publication = decide(plan, View.COMPLETE, earlier, POLICY, NOW)
    assert (publication.ask, publication.record) == (asks, superseded is not None)
    assert publication.supersede == tuple(older.plan_id for older in superseded or ())
    assert reason in publication.reason


def test_a_partial_snapshot_without_findings_changes_nothing() -> None:
    """That nothing was seen where not all was seen withdraws no question."""
    publication = decide(EMPTY, View.PARTIAL, [standing(OTHER, waiting=True)], POLICY, NOW)
    expected = Publication(ask=False, record=False, reason="a partial snapshot changes nothing; all is well")
    assert publication == expected


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """A ledger that holds one plan, recorded now."""
    engine = open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    LedgerWriter(engine).record_plan(NEW, NOW, policy=WHOLE_POLICY)
    yield engine
    engine.dispose()


def stands(engine: Engine, minutes: int) -> tuple[bool, bool]:
    """Whether the newest plan waits, and whether it was rejected, so many minutes from now."""
    newest = standing_plans(LedgerReader(engine), CLUSTER, WHOLE_POLICY, NOW + timedelta(minutes=minutes))[0]
    return newest.waiting, newest.rejected_at is not None


def test_a_question_is_put_anew_where_its_answer_would_be_refused(engine: Engine) -> None:
    """As the policy is looser by now, or the plan names no Pulsar cluster."""

    def answerable(policy: Policy) -> bool:
        return standing_plans(LedgerReader(engine), CLUSTER, policy, NOW)[0].answerable

    assert answerable(WHOLE_POLICY)
    assert not answerable(Policy(approval=POLICY, apply=ApplyPolicy(most_clients_per_step=1_000_000)))
    LedgerWriter(engine).record_plan(SAME, NOW)
    assert not answerable(WHOLE_POLICY)


def answer(engine: Engine, decision: Decision, **fields: Any) -> None:
    """Records an answer, given five minutes from now."""
    at = NOW + timedelta(minutes=5)
    approved = decision is Decision.APPROVED
    LedgerWriter(engine).record_answer(
        Answer(
            plan_id=NEW.plan_id,
            batch_id="b1",
            run=RUN,
            decision=decision,
            answered_by="operator",
            answered_at=at,
            reason="made up",
            step_ids=("b1.s01",) if approved else (),
            digest=approval_digest(NEW, "b1", ["b1.s01"]) if approved else None,
            expires_at=at + timedelta(minutes=30) if approved else None,
        )
    )


def test_an_unanswered_plan_waits_until_its_time_is_up(engine: Engine) -> None:
    """From its record, or from when somebody was last asked."""
    assert [stands(engine, minutes)[0] for minutes in (0, 59, 60)] == [True, True, False]
    LedgerWriter(engine).record_request(NEW, "b1", RUN, NOW + timedelta(minutes=50))
    assert [stands(engine, minutes)[0] for minutes in (60, 109, 110)] == [True, True, False]


@pytest.mark.parametrize("decision", [Decision.REJECTED, Decision.NO_ANSWER, Decision.MALFORMED])
def test_an_answered_plan_waits_no_longer(engine: Engine, decision: Decision) -> None:
    """Only a rejection is remembered as one."""
    answer(engine, decision)
    assert stands(engine, 6) == (False, decision is Decision.REJECTED)


def test_a_question_that_was_asked_again_waits_again(engine: Engine) -> None:
    """The answer to an earlier question is none to this one."""
    answer(engine, Decision.MALFORMED)
    LedgerWriter(engine).record_request(NEW, "b1", RUN, NOW + timedelta(minutes=10))
    assert stands(engine, 11)[0]


def test_an_approved_plan_waits_until_its_outcomes_are_there_or_it_expires(engine: Engine) -> None:
    """While it may be carried out, the same is not asked anew."""
    answer(engine, Decision.APPROVED)
    assert [stands(engine, minutes)[0] for minutes in (6, 34, 35)] == [True, True, False]
    LedgerWriter(engine).record_outcome(an_outcome(NEW, run=RUN))
    assert not stands(engine, 6)[0]


def test_a_superseded_plan_waits_for_nobody_and_its_rejection_stands(engine: Engine) -> None:
    """A healthy moment in between does not make a rejected proposal a new question."""
    answer(engine, Decision.REJECTED)
    LedgerWriter(engine).record_plan(EMPTY, NOW, supersede=[NEW.plan_id])
    earlier = standing_plans(LedgerReader(engine), CLUSTER, WHOLE_POLICY, NOW + timedelta(minutes=6))
    assert [(each.row.plan_id, each.waiting, each.rejected_at is not None) for each in earlier] == [
        (EMPTY.plan_id, False, False),
        (NEW.plan_id, False, True),
    ]
    assert not decide(SAME, View.COMPLETE, earlier, POLICY, NOW + timedelta(minutes=6)).ask


def test_a_way_back_is_no_proposal(engine: Engine) -> None:
    """It is neither the same question nor an outdated one, and no observation takes its place."""
    back = a_plan(a_batch(kind=ROLLBACK), snapshot_id="back")
    LedgerWriter(engine).record_plan(back, NOW)
    LedgerWriter(engine).record_request(back, "b1", "pulsar_rollback/manual/0", NOW)
    earlier = standing_plans(LedgerReader(engine), CLUSTER, WHOLE_POLICY, NOW)
    assert [each.row.plan_id for each in earlier] == [NEW.plan_id]
    assert back.plan_id not in decide(EMPTY, View.COMPLETE, earlier, POLICY, NOW).supersede
