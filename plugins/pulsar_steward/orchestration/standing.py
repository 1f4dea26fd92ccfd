"""Questions that have not ended, rejected batches, and goals that people silenced."""

from __future__ import annotations

from datetime import datetime

import msgspec

from pulsar_steward.ledger.batch_record import BatchState
from pulsar_steward.model.plan import Batch
from pulsar_steward.model.risk import Risk
from pulsar_steward.model.units import time_in_words


class AskedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A question that has not ended.

    Attributes:
        under: Another name of the cluster under which it is asked; None: the name in the new plan.
        content: Digest of its batch's content, converted to the cluster's name in the new plan.
        batch: The batch; None: another version recorded it in a format that this one does not read.
        state: Its state; one that waits in the ledger, but not in Airflow, has no answer.
        answerable: True if its approval could still be carried out. False if the policy is looser by now than the one
            it was asked under.
        risk: Risk with which it is asked; the policy's rules for this level apply to its approval.
        gone: The run whose task should wait for the answer, or carry it out, but has ended or does not exist any more;
            None: no task is missing.
    """

    question_id: int
    plan_id: str
    batch_id: str
    under: str | None = None
    content: str
    goal: str
    batch: Batch | None
    state: BatchState
    answerable: bool = True
    risk: Risk
    gone: str | None = None

    @property
    def is_answerable(self) -> bool:
        """True if it is open, and its approval could be carried out."""
        return self.state.is_open and self.answerable


class RejectedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that a person rejected, in any plan; each part of a rejected group is one."""

    plan_id: str
    content: str
    batch: Batch
    at: datetime
    by: str = ""
    comment: str = ""

    @property
    def words(self) -> str:
        """Person, time and reason of the rejection."""
        where = f"at {time_in_words(self.at)}{_by(self.by)} (plan {self.plan_id})"
        return f"the same was rejected {where}{_said(self.comment)}"


class SilencedGoal(msgspec.Struct, frozen=True, kw_only=True):
    """A goal that nobody is asked about, with any content: a person snoozed it, or answered with "never".

    Attributes:
        goal: `pulsar_steward.model.content.goal_of` the batch.
        batch: The batch that was asked about; None: it cannot be read any more.
        until: The end of a snooze; None: until the answer is taken back.
        until_worse: True if the snooze also ends when the problem gets worse.
    """

    plan_id: str
    goal: str
    batch: Batch | None
    at: datetime
    by: str = ""
    comment: str = ""
    until: datetime | None = None
    until_worse: bool = False

    @property
    def words(self) -> str:
        """Person, time, end and reason of the silence."""
        where = f"at {time_in_words(self.at)}{_by(self.by)} (plan {self.plan_id})"
        if self.until is None:
            return f"never to be asked, said {where}{_said(self.comment)}"
        worse = ", or until it gets worse" if self.until_worse else ""
        return f"snoozed {where} until {time_in_words(self.until)}{worse}{_said(self.comment)}"


def _by(person: str) -> str:
    return f" by {person}" if person else ""


def _said(comment: str) -> str:
    return f' "{comment}"' if comment else ""
