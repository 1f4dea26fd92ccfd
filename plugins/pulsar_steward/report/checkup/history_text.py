"""History of a recorded plan, as lines for a terminal: answers, outcomes, and the state of the brokers."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.ledger.batch_record import BatchRecord
from pulsar_steward.ledger.rows import Intent, PlanRow, RecordedAnswer, interrupted
from pulsar_steward.model.units import counted, time_in_words
from pulsar_steward.report.checkup.text import bullets, heading, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

    from pulsar_steward.model.plan import Plan


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
        yield from _answer_lines(answer)
    for outcome in record.outcomes:
        yield f"{outcome.step_id} {outcome.outcome} {_at(outcome.at)}: {outcome.reason}"
    for intent in under_way:
        yield f"{intent.step_id} under way since {_at(intent.at)}, or cut short then"
    if under_way:
        ended, approved = len(record.outcomes), counted(len(record.answers[-1].step_ids), "approved step")
        yield f"{ended} of {approved} {'has' if ended == 1 else 'have'} come to an end"
    for proof in record.proofs:
        yield f"{'proved' if proof.proved else 'not proved'} {_at(proof.at)}: {proof.reason}"


def _answer_lines(answer: RecordedAnswer) -> Iterator[str]:
    """An answer, the end of the time for which it silences its question, and the way to take it back."""
    who = f" by {answer.answered_by}" if answer.answered_by else ""
    steps = f" of {', '.join(answer.step_ids)}" if answer.step_ids else ""
    until = f", valid until {_at(answer.expires_at)}" if answer.expires_at else ""
    comment = f' "{answer.comment}"' if answer.comment else ""
    yield f"{answer.decision}{steps}{who} {_at(answer.answered_at)}{until}: {answer.reason}{comment}"
    end = f"steward questions ask-again {answer.answer_id} ends that"
    if answer.silent_until is not None:
        worse = ", or until it gets worse" if answer.until_worse else ""
        yield f"silent until {_at(answer.silent_until)}{worse}; {end}"
    if answer.policy_entry:
        yield f"silent until {end}; the policy entry for good:"
        yield from answer.policy_entry.splitlines()


def _at(moment: datetime) -> str:
    return time_in_words(moment, seconds=True)
