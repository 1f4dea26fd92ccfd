"""Which batches were carried out, and which plans are ways back: listed by the ledger, the newest first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pulsar_steward.ledger.rows import CarriedOut, Outcome
from pulsar_steward.model.plan import ROLLBACK
from tests.builders import CLUSTER, a_batch, a_plan, a_step, an_outcome

if TYPE_CHECKING:
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.ledger.write import LedgerWriter
    from pulsar_steward.model.plan import Plan

AT = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
FIRST = a_plan(
    a_batch(a_step(step_id="b1.s01"), a_step(step_id="b1.s02")),
    a_batch(a_step(step_id="b2.s01"), batch_id="b2", kind="retention", title="settings"),
)
BACK = a_plan(a_batch(kind=ROLLBACK, title="takes it back"), snapshot_id="back")
ELSEWHERE = a_plan(cluster="west")
NOTHING = a_plan(snapshot_id="nothing", batches=())


def record(write: LedgerWriter, *plans: Plan) -> None:
    """Adds the plans, in this order."""
    for plan in plans:
        write.record_plan(plan, AT)


def came_to(write: LedgerWriter, plan: Plan, step_id: str, outcome: Outcome, minutes: int) -> None:
    """Records what a step came to, so many minutes later."""
    at, batch_id = AT + timedelta(minutes=minutes), step_id.partition(".")[0]
    write.record_outcome(an_outcome(plan, step_id, outcome, batch_id=batch_id, at=at))


def test_batches_with_a_step_that_is_done_are_listed_by_their_last_one(read: LedgerReader, write: LedgerWriter) -> None:
    """Batches of a cluster with a step that is done are listed once each, ordered by their last such step."""
    record(write, FIRST, BACK, ELSEWHERE)
    came_to(write, FIRST, "b1.s01", Outcome.DONE, 1)
    came_to(write, FIRST, "b2.s01", Outcome.FAILED, 2)
    came_to(write, ELSEWHERE, "b1.s01", Outcome.DONE, 3)
    came_to(write, BACK, "b1.s01", Outcome.DONE, 4)
    came_to(write, FIRST, "b1.s02", Outcome.DONE, 5)
    first = CarriedOut(
        plan_id=FIRST.plan_id, batch_id="b1", kind="tc_balance", title="made up", at=AT + timedelta(minutes=5)
    )
    back = CarriedOut(
        plan_id=BACK.plan_id, batch_id="b1", kind=ROLLBACK, title="takes it back", at=AT + timedelta(minutes=4)
    )
    assert read.carried_out(CLUSTER) == (first, back)
    assert read.carried_out(CLUSTER, ways_back=True) == (back,)
    assert read.carried_out(CLUSTER, ways_back=False) == (first,)
    assert read.carried_out("nowhere") == ()


def test_ways_back_are_told_from_proposals(read: LedgerReader, write: LedgerWriter) -> None:
    """Plans are listed with rollbacks only, without rollbacks or both, and the limit counts only the listed kind."""
    record(write, FIRST, NOTHING, BACK)
    ids = [FIRST.plan_id, NOTHING.plan_id, BACK.plan_id]
    assert [row.plan_id for row in read.plans(CLUSTER)] == ids[::-1]
    assert [row.plan_id for row in read.plans(CLUSTER, ways_back=False)] == [NOTHING.plan_id, FIRST.plan_id]
    assert [row.plan_id for row in read.plans(CLUSTER, ways_back=True)] == [BACK.plan_id]
    assert [row.plan_id for row in read.plans(CLUSTER, ways_back=False, limit=1)] == [NOTHING.plan_id]
