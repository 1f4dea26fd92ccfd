"""Lines for a terminal, wrapped between words only; names from outside cannot control the terminal."""

from __future__ import annotations

import textwrap
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from rich.text import Text

from pulsar_steward.changes import kind_of
from pulsar_steward.changes.risk import risk_of
from pulsar_steward.ledger.batch_record import BatchRecord
from pulsar_steward.ledger.rows import Intent, PlanRow, RecordedAnswer, interrupted
from pulsar_steward.model.units import counted, time_in_words
from pulsar_steward.outside_text import shown
from pulsar_steward.report.worth import worth_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.model.step import Step

WIDEST = 100
"""Largest width in columns; longer lines are hard to read, however wide the terminal is."""

NARROWEST = 40
"""Smallest width in columns that lines are wrapped to."""

STYLES = {
    "critical": "bold red",
    "warning": "bold yellow",
    "info": "bold cyan",
    "clear": "green",
    "unknown": "magenta",
    "heading": "bold underline",
    "quiet": "dim",
}
"""Styles; each only adds to the meaning of the words."""


def fitting(width: int) -> int:
    """Width to write in, for a terminal of this width."""
    return max(NARROWEST, min(width, WIDEST))


def wrapped(words: object, width: int, *, first: str | Text = "", indent: int = 0, style: str = "") -> Iterator[Text]:
    """A paragraph; a name longer than a line stays whole, so that it can be copied.

    Args:
        words: The text, unescaped.
        width: Columns.
        first: Text before the first line, in place of its indentation.
        indent: Columns before every line.
        style: One of `STYLES`, for the words, or none.
    """
    lines = textwrap.wrap(shown(words), max(width - indent, 1), break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(lines or [""]):
        before = Text.assemble(first if number == 0 else "")
        before.pad_right(indent - len(before))
        yield Text.assemble(before, (line, STYLES.get(style, "")))


def heading(words: str) -> Iterator[Text]:
    """Heading, with an empty line before it."""
    yield Text()
    yield Text(shown(words), STYLES["heading"])


def numbered(steps: Iterable[str], width: int, indent: int) -> Iterator[Text]:
    """Numbered list."""
    for number, step in enumerate(steps, start=1):
        yield from wrapped(step, width, first=f"{' ' * indent}{number}. ", indent=indent + 3)


def bullets(items: Iterable[str], width: int, indent: int = 2) -> Iterator[Text]:
    """Bulleted list."""
    for item in items:
        yield from wrapped(item, width, first=f"{' ' * (indent - 2)}- ", indent=indent)


def plan_lines(plan: Plan, reasons: Sequence[str], width: int) -> Iterator[Text]:
    """A whole plan.

    Args:
        plan: The plan.
        reasons: Reasons why no further batches are proposed.
        width: Columns of the terminal.
    """
    width = fitting(width)
    yield from wrapped(f"Plan {plan.plan_id}", width, style="heading")
    yield from wrapped(f"SHA-256 {plan.digest}", width, style="quiet")
    if not plan.batches:
        yield from wrapped("Nothing would be proposed, for these reasons:", width)
    for batch in plan.batches:
        yield from batch_lines(plan, batch, width)
    if plan.batches and reasons:
        yield from heading("Why it is no more than this")
    yield from bullets(reasons, width)


def batch_lines(plan: Plan, batch: Batch, width: int) -> Iterator[Text]:
    """One batch of a plan: the steps that a person would be asked to approve together, their worth and their risk."""
    yield Text()
    yield from wrapped(f"Batch {batch.batch_id}: {batch.title}", width, style="heading")
    for finding in batch.findings:
        yield from bullets([f"{finding.severity.upper()} {finding.check_id}: {finding.evidence}"], width)
    yield from bullets(worth_in_words(batch), width)
    risk = risk_of(plan, batch)
    yield from wrapped(f"Risk: {risk.level}", width, style="heading")
    yield from bullets((f"{reason.level}: {reason.words}" for reason in risk.reasons), width)
    yield from _placement(batch)
    for step in batch.steps:
        yield from _step(step, width)


def _placement(batch: Batch) -> Iterator[Text]:
    if not batch.before:
        return
    after = {place.broker: place.count for place in batch.after}
    broad = max(len(shown(place.broker)) for place in batch.before)
    yield Text(f"  {shown(batch.unit)} by broker, now and after all steps:")
    for place in batch.before:
        yield Text(f"    {shown(place.broker).ljust(broad)}  {place.count:>5,} -> {after.get(place.broker, 0):,}")


def _step(step: Step, width: int) -> Iterator[Text]:
    yield Text()
    yield from wrapped(f"{step.step_id}  {kind_of(step.change).describe()}", width, indent=2, style="info")
    touched = step.touched
    disturbs = (
        f"{counted(touched.producers, 'producer')} and {counted(touched.consumers, 'consumer')} reconnect,"
        f" {counted(touched.coordinators, 'coordinator')} pause"
    )
    said = {
        "why": step.why,
        "effect": step.effect,
        "disturbs": disturbs,
        "after": ", ".join(step.after),
        "vetoed": "; ".join(f"{each.guard}: {each.reason}" for each in step.guards if not each.passed),
        "back": step.undo_note,
    }
    for name, words in said.items():
        if words:
            yield from wrapped(words, width, first=f"      {name}", indent=16)
    yield Text(f"      call      {shown(kind_of(step.change).call())}")


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """A batch in the ledger, with its intended calls.

    Attributes:
        taken_at: Time of the plan's snapshot.
        seen_at: Time of the newest snapshot with the same proposal.
    """

    record: BatchRecord
    intents: tuple[Intent, ...]
    taken_at: datetime
    seen_at: datetime


def header_lines(plan: Plan, row: PlanRow, width: int) -> Iterator[Text]:
    """Lines about the plan, and the plan that superseded it."""
    yield from wrapped(f"Plan {plan.plan_id}", width, style="heading")
    yield from wrapped(
        f"cluster {plan.cluster}, snapshot {plan.snapshot_id}, recorded {_at(row.created_at)}; SHA-256 {plan.digest},"
        " as recorded",
        width,
    )
    if row.superseded_by:
        when = f" {_at(row.superseded_at)}" if row.superseded_at else ""
        yield from wrapped(f"Superseded{when} by {row.superseded_by}", width, style="warning")


def story_lines(story: Story, width: int) -> Iterator[Text]:
    """Lines about the history of one batch."""
    yield from heading("What became of it")
    yield from bullets(_said(story), width)


def _said(story: Story) -> Iterator[str]:
    record, under_way = story.record, interrupted(story.intents, story.record.outcomes)
    if record.requests:
        yield f"asked {_at(record.requests[-1].at)}"
    if story.seen_at != story.taken_at:
        yield f"proposed the same again, at last by the snapshot of {_at(story.seen_at)}"
    if record.end is not None:
        yield f"the question ended {_at(record.end.at)}: {record.end.words}"
    if not record.answers:
        asked = record.requests or record.end is not None
        yield f"{'no answer is recorded' if asked else 'nobody was asked yet'}: nothing was changed"
    for answer in record.answers:
        yield _answer(answer)
        yield from _silence(answer)
    for outcome in record.outcomes:
        yield f"{outcome.step_id} {outcome.outcome} {_at(outcome.at)}: {outcome.reason}"
    for intent in under_way:
        yield f"{intent.step_id} under way since {_at(intent.at)}, or cut short then"
    if under_way:
        ended, approved = len(record.outcomes), counted(len(record.answers[-1].step_ids), "approved step")
        yield f"{ended} of {approved} {'has' if ended == 1 else 'have'} come to an end"
    for proof in record.proofs:
        yield f"{'proved' if proof.proved else 'not proved'} {_at(proof.at)}: {proof.reason}"


def _answer(answer: RecordedAnswer) -> str:
    who = f" by {answer.answered_by}" if answer.answered_by else ""
    steps = f" of {', '.join(answer.step_ids)}" if answer.step_ids else ""
    until = f", valid until {_at(answer.expires_at)}" if answer.expires_at else ""
    comment = f' "{answer.comment}"' if answer.comment else ""
    return f"{answer.decision}{steps}{who} {_at(answer.answered_at)}{until}: {answer.reason}{comment}"


def _silence(answer: RecordedAnswer) -> Iterator[str]:
    """End of the time for which an answer silences its question, and the way to take it back."""
    if answer.silent_until is not None:
        worse = ", or until it gets worse" if answer.until_worse else ""
        end = f"steward questions ask-again {answer.answer_id} ends that"
        yield f"silent until {_at(answer.silent_until)}{worse}; {end}"
    if answer.policy_entry:
        yield f"silent until steward questions ask-again {answer.answer_id} ends that; the policy entry for good:"
        yield from answer.policy_entry.splitlines()


def _at(moment: datetime) -> str:
    return time_in_words(moment, seconds=True)
