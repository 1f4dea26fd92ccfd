"""Decision on a new plan: each batch is asked about once, and a question ends when it no longer describes the cluster.

A batch is a question that stands by itself. An observation that proposes the same confirms it, one that proposes
something else for the same goal has another question take its place, and a complete one that no longer proposes it
ends it. Plans of an earlier Steward, whose batches are no questions, are superseded whole.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.ledger.publishing import Ending, NewQuestion, QuestionChanges
from pulsar_steward.ledger.questions import EndReason
from pulsar_steward.model.content import content_digest, goal_of, loses_more
from pulsar_steward.model.plan import Batch
from pulsar_steward.model.units import counted, time_in_words
from pulsar_steward.orchestration.worse import got_worse

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.policy.approval import ApprovalPolicy


class State(StrEnum):
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
    state: State
    answerable: bool = True
    requested: bool = True


class RejectedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that a person rejected, in whichever plan."""

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


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """Decision about a new plan.

    Attributes:
        ask: True if approval is to be requested of something in it.
        record: True if it is recorded in the ledger at all; questions may be confirmed without.
        questions: Questions that it begins, confirms and ends.
        supersede: Ids of plans without questions that it supersedes.
        reason: The reason, as text.
    """

    ask: bool
    record: bool
    questions: QuestionChanges = QuestionChanges()
    supersede: tuple[str, ...] = ()
    reason: str


class View(StrEnum):
    """Completeness of the snapshot behind a plan: only a complete one proves that something is absent."""

    COMPLETE = "complete"
    PARTIAL = "partial"


def decide(
    plan: Plan,
    view: View,
    standing: Sequence[AskedBatch],
    rejected: Sequence[RejectedBatch],
    older: Sequence[str],
    policy: ApprovalPolicy,
    now: datetime,
    silenced: Sequence[SilencedGoal] = (),
) -> Publication:
    """Decides what to do with a new plan.

    Args:
        plan: The new plan.
        view: Completeness of its snapshot.
        standing: The cluster's questions that have not ended, oldest first.
        rejected: Batches that were rejected, the newest first.
        older: Plans without questions that no newer plan superseded and that are not being carried out.
        policy: How long a rejection is respected.
        now: Current time, UTC.
        silenced: Goals that a person snoozed, or never wants to be asked about.
    """
    if view is View.PARTIAL and not plan.batches:
        reason = "; ".join(("a partial snapshot changes nothing", *plan.notes))
        return Publication(ask=False, record=False, reason=reason)
    lately = [each for each in rejected if now < each.at + timedelta(minutes=policy.ask_again_minutes)]
    silent = [each for each in silenced if each.until is None or now < each.until]
    sorted_out = _Sorted(plan, standing, lately, silent)
    ended = tuple(_ends(sorted_out, view))
    record = bool(sorted_out.asked or ended or not plan.batches)
    return Publication(
        ask=bool(sorted_out.asked or sorted_out.unasked_here),
        record=record,
        questions=QuestionChanges(
            asked=tuple(
                NewQuestion(batch_id=batch.batch_id, content_digest=content, goal=goal_of(batch))
                for batch, content in sorted_out.asked
            ),
            confirmed=tuple(dict.fromkeys(each.question_id for each in sorted_out.confirmed)),
            ended=ended,
        ),
        supersede=tuple(each for each in older if each != plan.plan_id) if record else (),
        reason="; ".join(_reasons(sorted_out, ended)),
    )


class _Sorted:
    """A plan's batches by what becomes of them.

    Attributes:
        asked: New questions, with their content.
        confirmed: Questions that are proposed unchanged.
        here: Questions of this very plan, as where a task is tried again.
        unasked_here: Those of them that are yet to be asked, or to be asked again.
        rejected: Batches of which the same was rejected lately.
        held: Batches for whose goal something is being carried out.
        silent: Batches whose goal is silent.
        worse: What got worse, by the ids of the batches that are asked although somebody snoozed their goal.
    """

    def __init__(
        self,
        plan: Plan,
        standing: Sequence[AskedBatch],
        lately: Collection[RejectedBatch],
        silenced: Collection[SilencedGoal],
    ) -> None:
        self.plan = plan
        self.standing = standing
        self.asked: list[tuple[Batch, str]] = []
        self.confirmed: list[AskedBatch] = []
        self.here = [each for each in standing if each.plan_id == plan.plan_id]
        self.rejected: list[tuple[Batch, str, RejectedBatch]] = []
        self.held: list[Batch] = []
        self.unasked_here: list[AskedBatch] = []
        self.silent: list[tuple[Batch, SilencedGoal]] = []
        self.worse: dict[str, str] = {}
        in_use = {each.goal for each in standing if each.state is State.IN_USE}
        here = {each.batch_id: each for each in self.here}
        for batch in plan.batches:
            content, own = content_digest(plan, batch), here.get(batch.batch_id)
            stands = [each for each in standing if _is_answerable(each) and _asks(each, batch, content)]
            no = next((each for each in lately if _same(each.content, each.batch, batch, content)), None)
            of_goal = [each for each in silenced if each.goal == goal_of(batch)]
            worse = [got_worse(batch, each.batch) if each.until_worse else None for each in of_goal]
            silence = next((each for each, why in zip(of_goal, worse, strict=True) if why is None), None)
            if own is not None:
                if (own.state is State.OVER and no is None and silence is None) or (
                    own.state is State.WAITING and not own.requested
                ):
                    self.unasked_here.append(own)
            elif stands:
                self.confirmed.append(stands[0])
            elif goal_of(batch) in in_use:
                self.held.append(batch)
            elif no is not None:
                self.rejected.append((batch, content, no))
            elif silence is not None:
                self.silent.append((batch, silence))
            else:
                self.asked.append((batch, content))
                if worst := next((why for why in worse if why is not None), None):
                    self.worse[batch.batch_id] = worst

    def kept(self, question: AskedBatch) -> bool:
        """True if a question goes on as it is."""
        if question.state is State.IN_USE or question in self.confirmed or question in self.here:
            return True
        rejected = any(_asks(question, batch, content) for batch, content, _ in self.rejected)
        silent = any(goal_of(batch) == question.goal for batch, _ in self.silent)
        return (rejected or silent) and question.state is State.OVER


def _is_answerable(question: AskedBatch) -> bool:
    return question.state is State.WAITING and question.answerable


def _asks(question: AskedBatch, batch: Batch, content: str) -> bool:
    return question.batch is not None and _same(question.content, question.batch, batch, content)


def _same(earlier: str, earlier_batch: Batch, batch: Batch, content: str) -> bool:
    return earlier == content and not loses_more(batch, earlier_batch)


def _ends(sorted_out: _Sorted, view: View) -> Iterator[Ending]:
    """Ends of the questions that stand no more, each with the new question that takes its place."""
    plan_id, free = sorted_out.plan.plan_id, [batch for batch, _ in sorted_out.asked]
    over = [each for each in sorted_out.standing if not sorted_out.kept(each)]
    contents = {batch.batch_id: content for batch, content in sorted_out.asked}
    for question in over:
        same = next((batch for batch in free if _asks(question, batch, contents[batch.batch_id])), None)
        of_goal = [batch for batch, _ in sorted_out.asked if goal_of(batch) == question.goal]
        successor = same or next((batch for batch in of_goal if batch in free), of_goal[-1] if of_goal else None)
        if successor in free:
            free.remove(successor)
        place = f"batch {successor.batch_id} of plan {plan_id}" if successor else ""
        if question.state is State.WAITING and not question.answerable:
            words = "an approval would be refused, as it was asked under a stricter policy, or by an earlier Steward"
            reason, words = EndReason.POLICY_LOOSENED, f"{words}; {place or 'the next observation'} asks anew"
        elif successor is not None and question.state is State.OVER and successor.batch_id in sorted_out.worse:
            words = f"it got worse since it was snoozed: {sorted_out.worse[successor.batch_id]}; {place} asks anew"
            reason = EndReason.WORSE
        elif same is not None:
            reason, words = EndReason.ASKED_ANEW, f"{place} asks the same anew; answer that one"
        elif successor is not None:
            words = f"the cluster was seen otherwise since, and {place} takes its place; answer that one"
            reason = EndReason.CHANGED
        elif view is View.COMPLETE:
            reason, words = EndReason.NO_LONGER_PROPOSED, f"a later observation no longer proposes it (plan {plan_id})"
        else:
            continue
        by = successor.batch_id if successor else None
        yield Ending(question_id=question.question_id, reason=reason, by_batch_id=by, words=words)


def _reasons(sorted_out: _Sorted, ended: Collection[Ending]) -> Iterator[str]:
    if not sorted_out.plan.batches:
        yield from sorted_out.plan.notes or ("nothing to remedy",)
    if sorted_out.asked or sorted_out.unasked_here:
        asked = len(sorted_out.asked) + len(sorted_out.unasked_here)
        yield f"{counted(asked, 'batch', 'batches')} to be answered"
    for question in sorted_out.confirmed:
        yield f"batch {question.batch_id} of plan {question.plan_id} asks the same and still stands"
    for batch, _, no in sorted_out.rejected:
        yield f"{batch.title}: {no.words}"
    for batch, silence in sorted_out.silent:
        yield f"{batch.title}: {silence.words}"
    for batch, _ in sorted_out.asked:
        if why := sorted_out.worse.get(batch.batch_id):
            yield f"{batch.title}: asked before its snooze is over, as it got worse: {why}"
    for batch in sorted_out.held:
        yield f"{batch.title}: an approval for the same goal is being carried out"
    if ended:
        yield f"{counted(len(ended), 'earlier question')} ended"
