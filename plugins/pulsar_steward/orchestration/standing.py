"""Questions that have not ended, and what people said no to: rejected batches and silent goals."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from pulsar_steward.model.plan import Batch
from pulsar_steward.model.units import time_in_words


class QuestionState(StrEnum):
    """State of a question that has not ended.

    `WAITING` for an answer, or approved and not yet begun; `IN_USE`: its approval is being carried out; `OVER`: it was
    rejected, snoozed, not answered in time, or refused.
    """

    WAITING = "waiting"
    IN_USE = "in use"
    OVER = "over"


class AskedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A question that has not ended.

    Attributes:
        content: Digest of its batch's content.
        batch: The batch; None: an earlier Steward recorded it in a format that this one does not read.
        answerable: True if an approval of it could still be carried out: not under a policy that is looser by now, and
            not of a plan that does not record its Pulsar cluster.
        requested: True if a run asked somebody.
    """

    question_id: int
    plan_id: str
    batch_id: str
    content: str
    goal: str
    batch: Batch | None
    state: QuestionState
    answerable: bool = True
    requested: bool = True

    @property
    def is_answerable(self) -> bool:
        """True if it waits, and an approval of it could be carried out."""
        return self.state is QuestionState.WAITING and self.answerable


class RejectedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that a person rejected, in whichever plan; of a group each part is one by itself."""

    plan_id: str
    content: str
    batch: Batch
    at: datetime
    by: str = ""
    comment: str = ""

    @property
    def words(self) -> str:
        """Who rejected it, when and why."""
        where = f"at {time_in_words(self.at)}{_by(self.by)} (plan {self.plan_id})"
        return f"the same was rejected {where}{_said(self.comment)}"


class SilencedGoal(msgspec.Struct, frozen=True, kw_only=True):
    """A goal that nobody is to be asked about, whatever the content: a person snoozed it, or never wants it.

    Attributes:
        goal: `pulsar_steward.model.content.goal_of` the batch.
        batch: The batch that was asked about; None: it cannot be read any more.
        until: The end of a snooze; None: until it is taken back.
        until_worse: True if it ends as well when it gets worse.
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
        """Who wants not to be asked, since when, until when and why."""
        where = f"at {time_in_words(self.at)}{_by(self.by)} (plan {self.plan_id})"
        if self.until is None:
            return f"never to be asked, said {where}{_said(self.comment)}"
        worse = ", or until it gets worse" if self.until_worse else ""
        return f"snoozed {where} until {time_in_words(self.until)}{worse}{_said(self.comment)}"


def _by(person: str) -> str:
    return f" by {person}" if person else ""


def _said(comment: str) -> str:
    return f' "{comment}"' if comment else ""
