"""Decision on a new plan: each batch is asked about once, and a question ends when it no longer describes the cluster.

A batch is a question that stands by itself. An observation that proposes the same confirms it, one that proposes
something else for the same goal has another question take its place, and a complete one that no longer proposes it
ends it. Plans of an earlier Steward, whose batches are no questions, are superseded whole.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.ledger.publishing import Ending, NewQuestion, QuestionChanges
from pulsar_steward.ledger.questions import EndReason
from pulsar_steward.model.content import content_digest, goal_of, share_goal
from pulsar_steward.model.units import counted
from pulsar_steward.orchestration.contents import Contents, is_same_question, silence_of
from pulsar_steward.orchestration.standing import QuestionState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.orchestration.standing import AskedBatch, RejectedBatch, SilencedGoal

MAX_REASONS = 10
"""Batches of one fate that the reason of a decision names one by one."""


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


class SnapshotView(StrEnum):
    """Completeness of the snapshot behind a plan: only a complete one proves that something is absent."""

    COMPLETE = "complete"
    PARTIAL = "partial"


def decide(
    plan: Plan,
    view: SnapshotView,
    standing: Sequence[AskedBatch],
    rejected: Sequence[RejectedBatch],
    older: Sequence[str],
    silenced: Sequence[SilencedGoal] = (),
) -> Publication:
    """Decides what to do with a new plan.

    Args:
        plan: The new plan.
        view: Completeness of its snapshot.
        standing: The cluster's questions that have not ended, oldest first.
        rejected: Batches whose rejection is respected still, the newest first.
        older: Plans without questions that no newer plan superseded and that are not being carried out.
        silenced: Goals that are silent still: a person snoozed them, or never wants to be asked about them.
    """
    if view is SnapshotView.PARTIAL and not plan.batches:
        reason = "; ".join(("a partial snapshot changes nothing", *plan.notes))
        return Publication(ask=False, record=False, reason=reason)
    sorted_out = _Sorted(plan, view, standing, rejected, silenced)
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
        covered: Batches that a standing question has among its parts, where not all of them were seen.
        silent: Batches whose goal is silent.
        worse: What got worse, by the ids of the batches that are asked although somebody snoozed their goal.
    """

    def __init__(
        self,
        plan: Plan,
        view: SnapshotView,
        standing: Sequence[AskedBatch],
        lately: Collection[RejectedBatch],
        silenced: Collection[SilencedGoal],
    ) -> None:
        self.plan = plan
        self.contents = Contents(plan)
        self.standing = standing
        self.asked: list[tuple[Batch, str]] = []
        self.confirmed: list[AskedBatch] = []
        self.here = [each for each in standing if each.plan_id == plan.plan_id]
        self.rejected: list[tuple[Batch, str, RejectedBatch]] = []
        self.held: list[Batch] = []
        self.covered: list[Batch] = []
        self.unasked_here: list[AskedBatch] = []
        self.silent: list[tuple[Batch, SilencedGoal]] = []
        self.worse: dict[str, str] = {}
        in_use = [each.goal for each in standing if each.state is QuestionState.IN_USE]
        whole = [
            self.contents.covered_by(each) for each in standing if each.is_answerable and view is SnapshotView.PARTIAL
        ]
        here = {each.batch_id: each for each in self.here}
        for batch in plan.batches:
            content, own = content_digest(plan, batch), here.get(batch.batch_id)
            stands = [each for each in standing if each.is_answerable and _asks(each, batch, content)]
            parts, goal = self.contents.of_batch(batch.batch_id), goal_of(batch)
            no = self.contents.rejection_of(parts, lately)
            silence, worse = silence_of(batch, silenced)
            if own is not None:
                if (own.state is QuestionState.OVER and no is None and silence is None) or (
                    own.state is QuestionState.WAITING and not own.requested
                ):
                    self.unasked_here.append(own)
            elif stands:
                self.confirmed.append(stands[0])
            elif any(share_goal(goal, each) for each in in_use):
                self.held.append(batch)
            elif any(each.issuperset(part.content for part in parts) for each in whole):
                self.covered.append(batch)
            elif no is not None:
                self.rejected.append((batch, content, no))
            elif silence is not None:
                self.silent.append((batch, silence))
            else:
                self.asked.append((batch, content))
                if worse:
                    self.worse[batch.batch_id] = worse

    def kept(self, question: AskedBatch) -> bool:
        """True if a question goes on as it is."""
        if question.state is QuestionState.IN_USE or question in self.confirmed or question in self.here:
            return True
        silent = any(share_goal(goal_of(batch), question.goal) for batch, _ in self.silent)
        rejected = self.has_all_of(question, [batch for batch, *_ in self.rejected])
        return (rejected or silent) and question.state is QuestionState.OVER

    def has_all_of(self, question: AskedBatch, batches: Iterable[Batch]) -> bool:
        """True if batches of the plan have all parts of a question among them, unchanged."""
        parts = {part.content: part for batch in batches for part in self.contents.of_batch(batch.batch_id)}
        asked = self.contents.of_question(question)
        return bool(asked) and all(part.content in parts and parts[part.content].asks_as(part) for part in asked)

    def has_part_of(self, question: AskedBatch, batch: Batch) -> bool:
        """True if a batch of the plan has a part of a question."""
        asked = {part.content for part in self.contents.of_question(question)}
        return any(part.content in asked for part in self.contents.of_batch(batch.batch_id))


def _asks(question: AskedBatch, batch: Batch, content: str) -> bool:
    return question.batch is not None and is_same_question(question.content, question.batch, batch, content)


def _ends(sorted_out: _Sorted, view: SnapshotView) -> Iterator[Ending]:
    """Ends of the questions that stand no more, each with the new question that takes its place."""
    plan_id, free = sorted_out.plan.plan_id, [batch for batch, _ in sorted_out.asked]
    over = [each for each in sorted_out.standing if not sorted_out.kept(each)]
    for question in over:
        of_goal = [batch for batch, _ in sorted_out.asked if share_goal(goal_of(batch), question.goal)]
        same = sorted_out.has_all_of(question, of_goal)
        asks_same = [batch for batch in of_goal if same and sorted_out.has_part_of(question, batch)]
        choice = asks_same or of_goal
        successor = next((batch for batch in choice if batch in free), choice[-1] if choice else None)
        if successor in free:
            free.remove(successor)
        place = f"batch {successor.batch_id} of plan {plan_id}" if successor else ""
        if question.state is QuestionState.WAITING and not question.answerable:
            words = "an approval would be refused, as it was asked under a stricter policy, or by an earlier Steward"
            reason, words = EndReason.POLICY_LOOSENED, f"{words}; {place or 'the next observation'} asks anew"
        elif successor is not None and question.state is QuestionState.OVER and successor.batch_id in sorted_out.worse:
            words = f"it got worse since it was snoozed: {sorted_out.worse[successor.batch_id]}; {place} asks anew"
            reason = EndReason.WORSE
        elif same:
            reason, words = EndReason.ASKED_ANEW, f"{place} asks the same anew; answer that one"
        elif successor is not None:
            words = f"the cluster was seen otherwise since, and {place} takes its place; answer that one"
            reason = EndReason.CHANGED
        elif view is SnapshotView.COMPLETE:
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
    yield from _first_of(f"{batch.title}: {no.words}" for batch, _, no in sorted_out.rejected)
    yield from _first_of(f"{batch.title}: {silence.words}" for batch, silence in sorted_out.silent)
    for batch, _ in sorted_out.asked:
        if why := sorted_out.worse.get(batch.batch_id):
            yield f"{batch.title}: asked before its snooze is over, as it got worse: {why}"
    yield from _first_of(
        f"{batch.title}: an approval for the same goal is being carried out" for batch in sorted_out.held
    )
    yield from _first_of(
        f"{batch.title}: a question that has more than this partial snapshot shows still stands"
        for batch in sorted_out.covered
    )
    if ended:
        yield f"{counted(len(ended), 'earlier question')} ended"


def _first_of(reasons: Iterable[str]) -> Iterator[str]:
    """The first reasons, and the number of further ones: those of a group are as many as its namespaces."""
    every = tuple(reasons)
    yield from every[:MAX_REASONS]
    if more := every[MAX_REASONS:]:
        yield f"and {counted(len(more), 'more such batch', 'more such batches')}"
