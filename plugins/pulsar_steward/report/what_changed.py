"""Difference between a question and the one that it replaces, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes import kind_of
from pulsar_steward.ledger.rows import EndReason, QuestionEnd
from pulsar_steward.model.isolation import Reach
from pulsar_steward.model.plan import loses_more
from pulsar_steward.model.step import Step
from pulsar_steward.model.units import counted, time_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.model.plan import Batch, Plan


class Former(msgspec.Struct, frozen=True, kw_only=True):
    """An ended question that another one replaces; several questions, if a group replaces them.

    Attributes:
        end: Its end, with the reason; for several questions, the end of the newest.
        steps: Its steps; for several questions, all their steps.
        others: Number of further questions.
    """

    end: QuestionEnd
    steps: tuple[Step, ...]
    others: int = 0


def former_of(ledger: LedgerReader, plan: Plan, batch: Batch) -> Former | None:
    """Earlier questions that a batch replaces; None: it replaces none, or they cannot be read any more."""
    known = [
        (end, earlier.batch(end.batch_id))
        for end in ledger.questions.replaced_by(plan.plan_id, batch.batch_id)
        if (earlier := ledger.readable_plan(end.plan_id)) is not None
    ]
    if not known:
        return None
    end, _ = known[-1]
    return Former(end=end, steps=tuple(step for _, asked in known for step in asked.steps), others=len(known) - 1)


def what_changed(batch: Batch, former: Former) -> tuple[str, ...]:
    """Sentences on the differences from the former question: steps added, left out, or with other values."""
    now, then = _by_subject(batch.steps), _by_subject(former.steps)
    found = tuple(_differences(now, then))
    asked = f"plan {former.end.plan_id}, batch {former.end.batch_id}"
    if former.others:
        asked += f", and {counted(former.others, 'other question')}"
    match former.end.reason:
        case EndReason.POLICY_LOOSENED:
            why = f"Asked before ({asked}), under a stricter policy: that answer is void."
        case EndReason.ASKED_ANEW:
            why = f"Asked before ({asked}), and not carried out; that question ended {time_in_words(former.end.at)}."
        case EndReason.WORSE:
            why = f"Snoozed before ({asked}): {former.end.words}."
        case _:
            why = f"It takes the place of {asked}, which ended {time_in_words(former.end.at)}."
    same = msgspec.structs.replace(batch, steps=tuple(then[subject] for subject in now if subject in then))
    if not found and len(same.steps) == len(batch.steps) and loses_more(batch, same):
        found = ("More would be lost, or delivered again, than was asked before.",)
    return (why, *(found or ("The steps are the same, with the same values.",)))


_Subject = tuple[str, ...]


def _by_subject(steps: tuple[Step, ...]) -> Mapping[_Subject, Step]:
    """Steps by kind and subject of their change."""
    return {(type(step.change).__name__, *kind_of(step.change).subject): step for step in steps}


def _differences(now: Mapping[_Subject, Step], then: Mapping[_Subject, Step]) -> Iterator[str]:
    same = 0
    for subject, step in now.items():
        words, former = kind_of(step.change).describe(), then.get(subject)
        if former is None:
            yield f"Added: {step.step_id}, {words}."
        elif former.change != step.change:
            yield f"Changed: {step.step_id}, {words}; it was: {kind_of(former.change).describe()}."
        elif (step.undo is None) != (former.undo is None):
            yield f"Changed: {step.step_id} {'cannot' if step.undo is None else 'can'} be undone by now."
        elif others := _others(step, former):
            yield f"Changed: {step.step_id}, {others}."
        elif vetoes := sorted(_vetoes(step) ^ _vetoes(former)):
            yield f"Changed: {step.step_id} is judged otherwise by {', '.join(vetoes)}."
        else:
            same += 1
    for subject, step in then.items():
        if subject not in now:
            yield f"Left out: {kind_of(step.change).describe()}."
    if same and (same < len(now) or same < len(then)):
        yield f"{counted(same, 'step')} as before."


def _others(step: Step, former: Step) -> str:
    """Namespaces and brokers that an isolation policy matches by now, or no more."""
    now, then = (each.reach if isinstance(each.reach, Reach) else Reach() for each in (step, former))
    return then.differences(now)


def _vetoes(step: Step) -> frozenset[str]:
    """Guards of a step, marked if they objected, so that one more or one fewer is a difference too."""
    return frozenset(f"{guard.guard}{'' if guard.passed else ' (objects)'}" for guard in step.guards)
