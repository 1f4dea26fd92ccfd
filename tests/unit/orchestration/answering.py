"""An answer as Airflow reports it, and what it comes to, for the tests of answers."""

from __future__ import annotations

from typing import Any

from pulsar_steward.ledger.rows import Answer, Decision, RecordedAnswer
from pulsar_steward.orchestration.approval_response import ApprovalQuestion, interpret
from pulsar_steward.orchestration.question_form import APPROVE, QUESTION
from pulsar_steward.policy.approval import ApprovalPolicy
from tests.builders import ASKED_DIGEST, NOW, a_batch, a_plan, a_step

IDS = ("b1.s01", "b1.s02", "b1.s03")
PLAN = a_plan(a_batch(*(a_step(step_id=step_id) for step_id in IDS)))
POLICY = ApprovalPolicy(valid_minutes=30)
RUN = "dag/run/0"
ASKED = ApprovalQuestion(plan=PLAN, batch_id="b1", run=RUN, asked_digest=ASKED_DIGEST)
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
"""An approval that a second person is asked to confirm."""

GONE = object()
"""Stands for a field that is missing."""


def event(**fields: Any) -> dict[str, Any]:
    """An approval of every step as Airflow reports it, with other fields or without some (`GONE`).

    Whatever the form holds besides, it carries the digest of the question, unless it says another one.
    """
    usual = {
        "chosen_options": [APPROVE],
        "params_input": {"steps": list(IDS), "comment": ""},
        "responded_at": NOW,
        "responded_by_user": {"id": "7", "name": "operator"},
        "timedout": False,
    }
    given = {name: value for name, value in {**usual, **fields}.items() if value is not GONE}
    if isinstance(form := given.get("params_input"), dict):
        given["params_input"] = {QUESTION: ASKED_DIGEST, **form}
    return given


def ticked(*steps: Any) -> dict[str, Any]:
    """The same with these steps ticked."""
    return event(params_input={"steps": list(steps), "comment": ""})


def answer_to(given_event: Any) -> Answer:
    """Answer recorded for it."""
    return interpret(given_event, ASKED, POLICY, NOW)
