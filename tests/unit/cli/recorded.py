"""Things that a ledger holds already."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pulsar_steward.ledger.rows import Answer, Decision
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.plan import Plan, approval_digest
from pulsar_steward.policy.schema import Policy
from tests.builders import ASKED_DIGEST, a_batch, a_move, a_plan, a_step, an_intended_call

if TYPE_CHECKING:
    from sqlalchemy import Engine

RUN = "pulsar_remediate/manual__1/0"


def approved(plan: Plan, at: datetime) -> Answer:
    """An approval of the first step of the first batch."""
    return Answer(
        asked_digest=ASKED_DIGEST,
        plan_id=plan.plan_id,
        batch_id="b1",
        run=RUN,
        decision=Decision.APPROVED,
        answered_by="alice",
        answered_at=at,
        reason="approved in the Airflow UI",
        comment="after lunch",
        step_ids=("b1.s01",),
        digest=approval_digest(plan, "b1", ["b1.s01"]),
        expires_at=at + timedelta(hours=1),
    )


def record_move(engine: Engine, bundle: str, at: datetime) -> None:
    """A plan with one approved move that was about to be made then."""
    writer = LedgerWriter(engine)
    step = a_step(a_move(bundle=bundle))
    plan = a_plan(a_batch(step))
    writer.record_plan(plan, at)
    writer.record_request(plan, "b1", RUN, at, asked_digest=ASKED_DIGEST, policy=Policy())
    answer_id = writer.record_answer(approved(plan, at))
    lease = writer.take_lease(plan.named_cluster, RUN, 60, at)
    try:
        writer.record_intent(an_intended_call(plan, step, approved(plan, at), answer_id), lease, at)
    finally:
        writer.end_lease(lease, at)
