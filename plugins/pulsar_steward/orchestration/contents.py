"""Comparison of a plan's batches, part by part, with open questions, rejected batches and silent goals."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes import kind_of
from pulsar_steward.model.loss import NOTHING_LOST, Loss
from pulsar_steward.model.plan import (
    BROKER_GROUP,
    BUNDLE_SPLIT,
    Batch,
    content_digest,
    covered_by_rejection,
    goal_of,
    goals_in,
    loses_more,
    parts_of,
    reaches_others,
    share_goal,
)
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.planners.bundles.balance import PLANNER as MOVES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pulsar_steward.model.finding import Severity
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.step import Step
    from pulsar_steward.orchestration.asked import AskedBatch, RejectedBatch, SilencedGoal


class AskedPart(msgspec.Struct, frozen=True):
    """A part of a batch, with the digest of its content."""

    content: str
    batch: Batch

    def asks_as(self, earlier: AskedPart) -> bool:
        """True if it asks the same as an earlier part, and loses no more messages."""
        return is_same_question(earlier.content, earlier.batch, self.batch, self.content)


class Contents:
    """Contents of a plan's batches and of earlier questions, part by part.

    Attributes:
        of_plan: Parts of all batches of the plan.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._of_batches = {batch.batch_id: self._parts(batch) for batch in plan.batches}
        self._of_questions: dict[int, tuple[AskedPart, ...]] = {}
        self._by_goal: defaultdict[str, list[AskedPart]] = defaultdict(list)
        self.of_plan = [part for parts in self._of_batches.values() for part in parts]
        for part in self.of_plan:
            for goal in goals_in(goal_of(part.batch)):
                self._by_goal[goal].append(part)

    def _parts(self, batch: Batch) -> tuple[AskedPart, ...]:
        return tuple(AskedPart(content_digest(self._plan, part), part) for part in parts_of(batch))

    def of_batch(self, batch_id: str) -> tuple[AskedPart, ...]:
        """Parts of a batch of the plan."""
        return self._of_batches[batch_id]

    def of_question(self, question: AskedBatch) -> tuple[AskedPart, ...]:
        """Parts of a question; none if it is about another Pulsar cluster, or cannot be read."""
        if question.question_id not in self._of_questions:
            batch = question.batch
            same_cluster = batch is not None and content_digest(self._plan, batch) == question.content
            self._of_questions[question.question_id] = self._parts(batch) if batch and same_cluster else ()
        return self._of_questions[question.question_id]

    def covered_by(self, question: AskedBatch) -> frozenset[str]:
        """Contents of the plan's parts that share a goal with the question; none unless the question has all unchanged.

        The question may have more parts: a partial snapshot need not show all parts of a group.
        """
        asked = {part.content: part for part in self.of_question(question)}
        about = [part for goal in goals_in(question.goal) for part in self._by_goal.get(goal, ())]
        if all(part.content in asked and part.asks_as(asked[part.content]) for part in about):
            return frozenset(part.content for part in about)
        return frozenset()

    def rejection_of(self, parts: Collection[AskedPart], lately: Collection[RejectedBatch]) -> RejectedBatch | None:
        """The newest of the parts' rejections; None: not all parts were rejected."""
        found = [next((each for each in lately if self._is_rejected(part, each)), None) for part in parts]
        known = [each for each in found if each is not None]
        return max(known, key=lambda each: each.at) if known and len(known) == len(found) else None

    def _is_rejected(self, part: AskedPart, rejected: RejectedBatch) -> bool:
        covered = covered_by_rejection(part.batch)
        content = part.content if covered is part.batch else content_digest(self._plan, covered)
        # A group is rejected whichever namespaces and brokers match it by then.
        same = rejected.content == content and not loses_more(covered, covered_by_rejection(rejected.batch))
        return same and _more_in_flight(part.batch, rejected.batch) is None


def silence_of(batch: Batch, silenced: Iterable[SilencedGoal]) -> tuple[SilencedGoal | None, str | None]:
    """The silence in force for a batch's goal, if any; or else the thing that got worse since the snooze.

    One answer to a group silences each namespace in it, so namespaces are compared one by one. If moves are silenced,
    so are splits that move their halves.
    """
    own, worst = goal_of(batch), None
    for each in silenced:
        goal = next((goal for goal in (own, *batch.further_goals) if share_goal(goal, each.goal)), None)
        if goal is None:
            continue
        asked = _part_about(goal, each.batch)
        worse = got_worse(_as_far_as(goal, batch, asked), asked) if each.until_worse else None
        if worse is None:
            return each, None
        worst = worst or worse
    return None, worst


def _as_far_as(goal: str, batch: Batch, asked: Batch | None) -> Batch:
    """The part of a batch that an earlier question covered: other findings that it remedies do not end the snooze.

    A question about moves covered the findings of its own checks. One about splits alone covered no moves, and no
    findings that only moves answer.
    """
    if asked is None:
        return batch
    checks = {finding.check_id for finding in asked.findings}
    if goal == goal_of(batch):
        if asked.further_goals or not batch.further_goals:
            return batch
        checks = {finding.check_id for finding in batch.findings} - MOVES.answers
        batch = covered_by_rejection(batch)
    return msgspec.structs.replace(batch, findings=tuple(each for each in batch.findings if each.check_id in checks))


def unasked_batches(
    plan: Plan, lately: Collection[RejectedBatch], silenced: Collection[SilencedGoal]
) -> tuple[Batch, ...]:
    """Splits, groups of brokers, and namespaces' settings that nobody is asked about, as a person said no to them.

    A no to moves also stops splits that move their halves.
    """
    contents = Contents(plan)
    return tuple(
        batch
        for batch in plan.batches
        if batch.kind in {BUNDLE_SPLIT, BROKER_GROUP}
        or any(isinstance(change, ChangeSetting) and change.topic is None for change in batch.changes)
        if silence_of(batch, silenced)[0] or contents.rejection_of(contents.of_batch(batch.batch_id), lately)
    )


def _part_about(goal: str, batch: Batch | None) -> Batch | None:
    """The parts of a batch with a certain goal, as one batch."""
    if batch is None:
        return None
    parts = [part for part in parts_of(batch) if share_goal(goal_of(part), goal)]
    steps = tuple(step for part in parts for step in part.steps)
    return msgspec.structs.replace(batch, steps=steps, parts=msgspec.UNSET)


def is_same_question(earlier: str, earlier_batch: Batch, batch: Batch, content: str) -> bool:
    """True if a batch asks the same as an earlier one, loses no more messages, and is about the same of a cluster."""
    return earlier == content and not loses_more(batch, earlier_batch) and not reaches_others(batch, earlier_batch)


def got_worse(batch: Batch, asked: Batch | None) -> str | None:
    """The first thing that is worse in a batch than in the earlier one with its goal; None: nothing is worse.

    Worse means: a more severe finding, a new finding, or a change that loses or redelivers more messages. Higher
    figures alone, such as a growing backlog, are not worse: if they matter, they cross a check's next threshold.

    Args:
        batch: The new proposal.
        asked: The earlier batch; None: it cannot be read any more, which counts as worse.
    """
    if asked is None:
        return "the earlier question cannot be read any more"
    return _worse_finding(batch, asked) or _greater_loss(batch, asked)


def _worse_finding(batch: Batch, asked: Batch) -> str | None:
    then: dict[tuple[str, str], Severity] = {}
    for finding in asked.findings:
        key = (finding.check_id, finding.subject)
        then[key] = max(then.get(key, finding.severity), finding.severity, key=lambda severity: severity.rank)
    for finding in batch.findings:
        before = then.get((finding.check_id, finding.subject))
        if before is None:
            return f"{finding.check_id} of {finding.subject} is new"
        if finding.severity.rank > before.rank:
            return f"{finding.check_id} of {finding.subject} is {finding.severity} by now, and was {before}"
    return None


def _greater_loss(batch: Batch, asked: Batch) -> str | None:
    then = {_subject(step): _loss(step) for step in asked.steps}
    for step in batch.steps:
        if _loss(step).exceeds(then.get(_subject(step), NOTHING_LOST)):
            return f"more would be lost by {kind_of(step.change).describe()}"
    return _more_in_flight(batch, asked)


def _more_in_flight(batch: Batch, asked: Batch) -> str | None:
    """A move in both batches that now redelivers more messages, or loses more of non-persistent topics."""
    then = {_subject(step): step.moving_messages for step in asked.steps}
    for step in batch.steps:
        before = then.get(_subject(step))
        if before is not None and step.moving_messages.outgrew(before):
            return f"more messages are in flight for {kind_of(step.change).describe()}"
    return None


def _subject(step: Step) -> tuple[str, ...]:
    return (type(step.change).__name__, *kind_of(step.change).subject)


def _loss(step: Step) -> Loss:
    return step.loss if isinstance(step.loss, Loss) else NOTHING_LOST
