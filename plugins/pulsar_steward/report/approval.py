"""Approval request in Airflow: its subject, its card, and the labels of its ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.changes import kind_of
from pulsar_steward.changes.headline import headline
from pulsar_steward.changes.risk import risk_of
from pulsar_steward.outside_text import shown
from pulsar_steward.report.decision import decision_of
from pulsar_steward.report.markdown import bullets, text
from pulsar_steward.report.worth import worth_in_brief

if TYPE_CHECKING:
    from datetime import datetime

    from pulsar_steward.ledger.rows import RecordedAnswer
    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.report.what_changed import Former


def subject(plan: Plan, batch: Batch, *, second: bool = False) -> str:
    """One-line title for Airflow's list of open requests, with the batch's worth and risk."""
    about = "; ".join(filter(None, (worth_in_brief(batch), f"{risk_of(plan, batch).level} risk")))
    return shown(f"{plan.cluster}: {headline(batch)}{' (second approval)' if second else ''} ({about})")


def body(
    plan: Plan,
    batch: Batch,
    policy: Policy,
    *,
    first: RecordedAnswer | None = None,
    former: Former | None = None,
    now: datetime | None = None,
    page: str = "",
) -> str:
    """Body of an approval request, in Markdown: the decision card below its headline, and where everything else is.

    Airflow shows it between the subject, which has the headline, and the ticks, and cannot fold a part of it.

    Args:
        plan: The plan.
        batch: Its batch.
        policy: The policy with the terms of an approval.
        first: The approval that a second person should confirm; None: this is the first question.
        former: The question that this one replaces; None: it replaces none.
        now: Current time, for the begin of the batch; None: it is left out.
        page: Address of the batch on the page of its plan; empty: not known.
    """
    card = decision_of(plan, batch, policy, first=first, former=former, now=now)
    where = f"[All details]({page})" if page else "All details are on the plan's page"
    recorded = text(f"(plan {plan.plan_id}, batch {batch.batch_id}, SHA-256 {plan.digest}).")
    return f"{bullets(card.lines_of_request)}\n\n{where} {recorded}"


def labels(batch: Batch) -> dict[str, str]:
    """Labels of the steps' checkboxes, by step id."""
    return {step.step_id: shown(f"{step.step_id}: {kind_of(step.change).describe()}") for step in batch.steps}
