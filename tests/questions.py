"""An approval request as a person reads it: its card in Airflow, and the details on the page of its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.ledger.rows import Decision, RecordedAnswer
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.approval import body, subject
from pulsar_steward.report.details import details
from tests.builders import NOW

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Batch, Plan

DETAILS = "## Details"

FIRST = RecordedAnswer(
    answer_id=1,
    plan_id="p",
    batch_id="b1",
    run="r/r/0",
    decision=Decision.APPROVED,
    answered_by="alice",
    answered_at=NOW,
    reason="made up",
    step_ids=("b1.s01",),
)
"""The first person's approval, where a second one has to confirm it."""


def question(plan: Plan, batch: Batch, policy: Policy | None = None, *, page: str = "", **fields: Any) -> str:
    """Subject, card and details, without the plan's digest and Markdown's backslashes."""
    policy = policy or Policy()
    card = f"{subject(plan, batch)}\n\n{body(plan, batch, policy, page=page, **fields)}".replace("\\", "")
    fields.pop("first", None)
    sections = details(plan, batch, policy, **fields)
    told = [line for title, lines in sections for line in (f"### {title}", *(f"- {each}" for each in lines))]
    words = "\n".join((card, DETAILS, *told))
    return words.replace(plan.digest, "DIGEST").replace(plan.digest[:12], "DIGEST")
