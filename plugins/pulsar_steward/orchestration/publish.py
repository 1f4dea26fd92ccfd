"""Decision on a new plan: each batch is asked about once, and a question ends when it no longer describes the cluster.

Each batch is a question of its own. A new observation confirms it, replaces it or ends it:

- It proposes the same: the question is confirmed. If nobody was asked yet, it is published again.
- It proposes something else for the same goal, or the same with a higher risk: a new question replaces it.
- It no longer proposes it, and its snapshot is complete: the question ends.

`_ends` has every reason, also those of the policy, of a snooze, and of a question that no task asks any more.

A question under another name of the cluster is confirmed as well. While it can be answered, only a higher risk ends it
here, and no other question is asked for its goal: the policy of that name decides on its replacement.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes.risk import risk_of
from pulsar_steward.ledger.batch_record import BatchState
from pulsar_steward.ledger.publishing import Ending, NewQuestion, QuestionChanges
from pulsar_steward.ledger.rows import EndReason
from pulsar_steward.model.plan import content_digest, goal_of, goals_in, share_goal
from pulsar_steward.model.units import counted
from pulsar_steward.orchestration.contents import Contents, is_same_question, silence_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.model.risk import Risk
    from pulsar_steward.orchestration.asked import AskedBatch, RejectedBatch, SilencedGoal

MAX_REASONS = 10
"""Batches with the same result that the reason of a decision names one by one."""


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """Decision about a new plan.

    Attributes:
        publish: Ids of the plans to ask about: this one, and earlier ones with questions that nobody was asked.
        record: True if the plan is recorded in the ledger; questions can be confirmed without it.
        questions: Questions that the plan begins, confirms and ends.
        reason: The reason, as text.
    """

    publish: tuple[str, ...] = ()
    record: bool
    questions: QuestionChanges = QuestionChanges()
    reason: str

    @property
    def ask(self) -> bool:
        """True if people are to be asked."""
        return bool(self.publish)


class SnapshotView(StrEnum):
    """Completeness of the snapshot behind a plan: only a complete one proves that something is absent."""

    COMPLETE = "complete"
    PARTIAL = "partial"


def decide(
    plan: Plan,
    view: SnapshotView,
    standing: Sequence[AskedBatch],
    rejected: Sequence[RejectedBatch],
    silenced: Sequence[SilencedGoal] = (),
) -> Publication:
    """Decides what to do with a new plan.

    Args:
        plan: The new plan.
        view: Completeness of its snapshot.
        standing: The cluster's questions that have not ended, oldest first.
        rejected: Batches whose rejection is still respected, the newest first.
        silenced: Goals that are still silent: a person snoozed them, or answered with "never".
    """
    if view is SnapshotView.PARTIAL and not plan.batches:
        reason = "; ".join(("a partial snapshot changes nothing", *plan.notes))
        return Publication(record=False, reason=reason)
    sorted_out = _Sorted(plan, view, standing, rejected, silenced)
    ended = tuple(_ends(sorted_out, view))
    return Publication(
        publish=tuple(dict.fromkeys(sorted_out.to_publish())),
        record=bool(sorted_out.asked or ended or not plan.batches),
        questions=QuestionChanges(
            asked=tuple(
                NewQuestion(batch_id=batch.batch_id, content_digest=content, goal=goal_of(batch))
                for batch, content in sorted_out.asked
            ),
            confirmed=tuple(dict.fromkeys(each.question_id for each in sorted_out.confirmed)),
            ended=ended,
        ),
        reason="; ".join(_reasons(sorted_out, ended)),
    )


class _Sorted:
    """A plan's batches, sorted by the decision on them.

    Attributes:
        asked: New questions, with their content.
        confirmed: Questions that are proposed unchanged.
        here: Questions of this plan itself, for example after a retry of the task.
        unasked_here: Questions of this plan that are yet to be asked, or to be asked again.
        riskier: Risk of the new batch and of the question, by the ids of questions with a higher risk than before.
        rejected: Batches with the same content as one that was rejected lately.
        held: Batches that wait: their goal is being carried out, or is asked under another name of the cluster.
        covered: Batches that are part of an open question, while a partial snapshot does not show all its parts.
        silent: Batches with a silent goal.
        worse: Reasons to ask although somebody snoozed the goal: the thing that got worse, by the batch's id.
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
        self.held: list[tuple[Batch, AskedBatch]] = []
        self.covered: list[Batch] = []
        self.unasked_here: list[AskedBatch] = []
        self.riskier: dict[int, tuple[Risk, Risk]] = {}
        self.silent: list[tuple[Batch, SilencedGoal]] = []
        self.worse: dict[str, str] = {}
        partial = view is SnapshotView.PARTIAL
        whole = {
            each.question_id: self.contents.covered_by(each) for each in standing if each.is_answerable and partial
        }
        here = {each.batch_id: each for each in self.here}
        for batch in plan.batches:
            content, own = content_digest(plan, batch), here.get(batch.batch_id)
            parts = self.contents.of_batch(batch.batch_id)
            no = self.contents.rejection_of(parts, lately)
            silence, worse = silence_of(batch, silenced)
            stands = [
                each
                for each in standing
                if each.is_answerable
                and _asks(each, batch, content)
                and self._confirms(each, batch)
                # After a no, an unasked question is not asked for the first time.
                and (each.state is not BatchState.NOT_ASKED or (no is None and silence is None))
            ]
            if own is not None:
                if (own.state.is_over or own.state is BatchState.NOT_ASKED) and no is None and silence is None:
                    self.unasked_here.append(own)
            elif stands:
                self.confirmed.append(stands[0])
            elif holding := [each for each in standing if self._holds(each, batch)]:
                self.held.append((batch, holding[0]))
            elif any(
                each.issuperset(part.content for part in parts)
                for number, each in whole.items()
                if number not in self.riskier
            ):
                self.covered.append(batch)
            elif no is not None:
                self.rejected.append((batch, content, no))
            elif silence is not None:
                self.silent.append((batch, silence))
            else:
                self.asked.append((batch, content))
                if worse:
                    self.worse[batch.batch_id] = worse

    def to_publish(self) -> Iterator[str]:
        """Ids of the plans to ask people about."""
        if self.asked:
            yield self.plan.plan_id
        yield from (each.plan_id for each in self.unasked_here)
        yield from (each.plan_id for each in self.confirmed if each.state is BatchState.NOT_ASKED)

    def no_to(self, question: AskedBatch) -> str | None:
        """Words of the rejection or silence of the question's batch in the new plan; None: there is none."""
        noes = [(batch, no.words) for batch, _, no in self.rejected] + [(each, no.words) for each, no in self.silent]
        return next((words for batch, words in noes if self.has_part_of(question, batch)), None)

    def _confirms(self, question: AskedBatch, batch: Batch) -> bool:
        """True if a batch that asks the same has no higher risk: a higher one may need other people, or more people.

        If the risk is higher only because the snapshot is partial, the question is neither confirmed nor ended.
        """
        if risk_of(self.plan, batch).level.rank <= question.risk.rank:
            return True
        now = risk_of(msgspec.structs.replace(self.plan, unread=msgspec.UNSET), batch).level
        if now.rank > question.risk.rank:
            self.riskier[question.question_id] = now, question.risk
        return False

    def _holds(self, question: AskedBatch, batch: Batch) -> bool:
        """True if a question keeps a batch from being asked: their goals are the same, or both would move bundles."""
        if question.state is BatchState.CHANGING:
            theirs = {*goals_in(question.goal), *(question.batch.further_goals if question.batch else ())}
            return not theirs.isdisjoint({*goals_in(goal_of(batch)), *batch.further_goals})
        stands_elsewhere = question.under is not None and question.is_answerable
        same = share_goal(goal_of(batch), question.goal)
        return same and stands_elsewhere and question.question_id not in self.riskier

    def kept(self, question: AskedBatch) -> bool:
        """True if a question stays open unchanged."""
        if question.state is BatchState.CHANGING or question in self.confirmed or question in self.here:
            return True
        if question.under is not None and question.question_id not in self.riskier:
            replaced = any(share_goal(goal_of(batch), question.goal) for batch, _ in self.asked)
            if question.state.is_open or not replaced:
                return True
        silent = any(share_goal(goal_of(batch), question.goal) for batch, _ in self.silent)
        rejected = self.has_all_of(question, [batch for batch, *_ in self.rejected]) or any(
            # The same splits rest as well where their parts would go elsewhere.
            no.batch.further_goals and no.plan_id == question.plan_id and share_goal(goal_of(batch), question.goal)
            for batch, _, no in self.rejected
        )
        return (rejected or silent) and question.state.is_over

    def has_all_of(self, question: AskedBatch, batches: Iterable[Batch]) -> bool:
        """True if these batches of the plan contain all parts of a question, unchanged."""
        parts = {part.content: part for batch in batches for part in self.contents.of_batch(batch.batch_id)}
        asked = self.contents.of_question(question)
        return bool(asked) and all(part.content in parts and parts[part.content].asks_as(part) for part in asked)

    def has_part_of(self, question: AskedBatch, batch: Batch) -> bool:
        """True if a batch of the plan contains a part of a question."""
        asked = {part.content for part in self.contents.of_question(question)}
        return any(part.content in asked for part in self.contents.of_batch(batch.batch_id))


def _asks(question: AskedBatch, batch: Batch, content: str) -> bool:
    return question.batch is not None and is_same_question(question.content, question.batch, batch, content)


def _ends(sorted_out: _Sorted, view: SnapshotView) -> Iterator[Ending]:
    """Ends of questions that are no longer open, each with the new question that replaces it, if any."""
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
        if question.state.is_open and not question.answerable:
            words = "an approval would be refused, as it was asked under a stricter policy"
            reason, words = EndReason.POLICY_LOOSENED, f"{words}; {place or 'the next observation'} asks anew"
        elif successor is not None and question.state.is_over and successor.batch_id in sorted_out.worse:
            words = f"it got worse since it was snoozed: {sorted_out.worse[successor.batch_id]}; {place} asks anew"
            reason = EndReason.WORSE
        elif question.question_id in sorted_out.riskier:
            now, then = sorted_out.riskier[question.question_id]
            asks = f"{place or 'a later observation'} asks anew"
            reason, words = EndReason.CHANGED, f"its risk is {now} by now, and it was asked as {then}; {asks}"
        elif same:
            gone = question.gone
            missed = f"run {gone} does not wait for an answer any more, and recorded none; " if gone else ""
            reason, words = EndReason.ASKED_ANEW, f"{missed}{place} asks the same anew; answer that one"
        elif successor is not None:
            words = f"the cluster was seen otherwise since, and {place} takes its place; answer that one"
            reason = EndReason.CHANGED
        elif question.state is BatchState.NOT_ASKED and (no := sorted_out.no_to(question)):
            reason, words = EndReason.NO_LONGER_PROPOSED, f"nobody was asked, and nobody will be: {no}"
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
        unasked = question.state is BatchState.NOT_ASKED
        stands = "was asked of nobody, so that it is published again" if unasked else "still stands"
        yield f"batch {question.batch_id} of plan {question.plan_id} asks the same and {stands}"
    yield from _first_of(f"{batch.title}: {no.words}" for batch, _, no in sorted_out.rejected)
    yield from _first_of(f"{batch.title}: {silence.words}" for batch, silence in sorted_out.silent)
    for batch, _ in sorted_out.asked:
        if why := sorted_out.worse.get(batch.batch_id):
            yield f"{batch.title}: asked before its snooze is over, as it got worse: {why}"
    yield from _first_of(f"{batch.title}: {_why_held(question)}" for batch, question in sorted_out.held)
    yield from _first_of(
        f"{batch.title}: a question that has more than this partial snapshot shows still stands"
        for batch in sorted_out.covered
    )
    if ended:
        yield f"{counted(len(ended), 'earlier question')} ended"


def _why_held(question: AskedBatch) -> str:
    if question.state is BatchState.CHANGING:
        return "an approval for the same goal is being carried out"
    asks = f"batch {question.batch_id} of plan {question.plan_id}"
    return f"{asks} asks about the same goal under the name {question.under}, and still stands"


def _first_of(reasons: Iterable[str]) -> Iterator[str]:
    """The first reasons and the number of the others, as a group has a reason for each namespace."""
    every = tuple(reasons)
    yield from every[:MAX_REASONS]
    if more := every[MAX_REASONS:]:
        yield f"and {counted(len(more), 'more such batch', 'more such batches')}"
