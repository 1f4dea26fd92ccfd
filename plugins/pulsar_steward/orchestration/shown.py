"""A question as Airflow shows it, and the digest that links an answer to its question.

Airflow keeps one question for each task instance, also when the task is cleared or retried. Asking again does not
change its text or form. So the question that Airflow shows is compared with the one to ask, every time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.model.canonical import digest
from pulsar_steward.orchestration.question_form import QUESTION

if TYPE_CHECKING:
    from uuid import UUID

    from pulsar_steward.orchestration.approval_response import ApprovalQuestion


class ShownQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """All parts of a question that a person sees.

    Attributes:
        subject: Its headline.
        body: Its text, in Markdown.
        options: The answers to choose from.
        fields: The form's fields by name, as Airflow stores them: value, description and schema.
        users: Id and name of each user who may answer; empty: everyone whom Airflow lets.
    """

    subject: str
    body: str
    options: list[str]
    fields: dict[str, Any]
    users: list[dict[str, str]]

    @property
    def carried(self) -> object:
        """Digest in the form, which every answer carries; None: the form has none."""
        field = self.fields.get(QUESTION)
        return field.get("value") if isinstance(field, dict) else None


def asked_digest(shown: ShownQuestion, asked: ApprovalQuestion, policy_digest: str) -> str:
    """SHA-256 over the shown question and its identity (plan, batch, run, approver, policy), 64 hexadecimal digits.

    Args:
        shown: The question as a person sees it; the field that carries the digest is left out.
        asked: The request: its plan, batch, run and approver.
        policy_digest: Digest of the policy at the time of the request.
    """
    seen = msgspec.structs.asdict(shown)
    seen["fields"] = {name: field for name, field in shown.fields.items() if name != QUESTION}
    about = {
        "plan": asked.plan.digest,
        "batch": asked.batch_id,
        "run": asked.run,
        "voice": asked.voice,
        "first": None if asked.first is None else asked.first.answer_id,
        "policy": policy_digest,
    }
    return digest({"shown": seen, "about": about})


def put(instance: UUID, question: ShownQuestion) -> ShownQuestion:
    """Has Airflow show a question, without an answer; returns the question that Airflow shows.

    If this task asked before, Airflow shows the earlier question: no task can replace it. Airflow's page paints a
    default option as the button to press, and every button where defaults are null: an empty list paints none. The
    answer at the time limit is the trigger's.

    Args:
        instance: Id of the task instance that asks.
        question: The question.
    """
    from airflow.sdk.execution_time import comms, task_runner

    payload = {
        "ti_id": instance,
        "options": question.options,
        "subject": question.subject,
        "body": question.body,
        "defaults": [],
        "params": question.fields,
        "assigned_users": question.users,
    }
    stored: Any = task_runner.SUPERVISOR_COMMS.send(msg=comms.CreateHITLDetailPayload.model_validate(payload))
    return ShownQuestion(
        subject=stored.subject,
        body=stored.body or "",
        options=stored.options,
        fields=stored.params or {},
        users=[{"id": user.id, "name": user.name} for user in stored.assigned_users or ()],
    )
