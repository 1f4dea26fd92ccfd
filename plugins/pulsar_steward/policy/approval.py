"""Section of approvals: who is asked, who may answer, and how long a request and its answer are valid."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from pulsar_steward.model.plan import KINDS
from pulsar_steward.model.section import Section


def _kind(text: str) -> str:
    if text not in KINDS:
        raise ValueError(f"{text!r} is no kind of batch: {', '.join(KINDS)}")
    return text


Kind = Annotated[str, AfterValidator(_kind)]


class ApprovalPolicy(Section):
    """People who may answer, and how long a question and its answer are valid."""

    response_timeout_minutes: int = Field(24 * 60, ge=1, description="no answer by then is a rejection")
    valid_minutes: int = Field(60, ge=1, description="from the answer to the last change made under it")
    ask_again_minutes: int = Field(
        24 * 60, ge=0, description="rest of a proposal after somebody rejected it, or took it back"
    )
    assigned_users: tuple[str, ...] = Field((), description="who may answer; empty: everyone whom Airflow lets")
    assigned_users_by_kind: dict[Kind, tuple[str, ...]] = Field(
        {}, description="the same for one kind of batch, in place of `assigned_users`"
    )
    two_people_for: tuple[Kind, ...] = Field((), description="kinds of batches that a second person has to approve")
    requester_may_approve: bool = Field(True, description="whether who started a run by hand may approve what it asks")

    def users_for(self, kind: str) -> tuple[str, ...]:
        """Users who may answer to a batch of this kind; empty: everyone whom Airflow lets."""
        return self.assigned_users_by_kind.get(kind, self.assigned_users)

    def approvals_required(self, kind: str) -> int:
        """Number of people who have to approve a batch of this kind."""
        return 2 if kind in self.two_people_for else 1
