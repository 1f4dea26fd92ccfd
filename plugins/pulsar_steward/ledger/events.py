"""Rows of the ledger as sentences."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes import kind_of
from pulsar_steward.decoding import decode
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.rows import Decision, Outcome
from pulsar_steward.model.step import Change
from pulsar_steward.model.units import counted, time_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import RowMapping


class EventKind(StrEnum):
    """Kind of an event."""

    PLANNED = "planned"
    SUPERSEDED = "superseded"
    CONFIRMED = "confirmed"
    QUESTION_ENDED = "question ended"
    ASKED = "asked"
    ANSWERED = "answered"
    TAKEN_UP = "taken up"
    CALLED = "about to call"
    ENDED = "ended"
    PROVED = "proved"
    DRY_RUN = "dry run"
    SILENCE_ENDED = "silence ended"
    HALTED = "halted"
    RESUMED = "resumed"


class LedgerEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the ledger as a sentence.

    Attributes:
        sequence: The row's place in the chain.
        tone: Kind of news: ``good``, ``bad``, ``open`` or ``quiet``.
        person: The person who said or did it; None: no person did.
        words: The event in a sentence, with names unescaped.
    """

    sequence: int
    at: datetime
    what: EventKind
    tone: str
    cluster: str
    words: str
    plan_id: str | None = None
    batch_id: str | None = None
    step_id: str | None = None
    kind: str | None = None
    person: str | None = None
    run: str | None = None


_TONES = {
    Decision.APPROVED.value: "good",
    Decision.REJECTED.value: "quiet",
    Decision.SNOOZED.value: "quiet",
    Decision.NEVER.value: "quiet",
    Decision.NO_ANSWER.value: "quiet",
    Decision.MALFORMED.value: "bad",
    Outcome.DONE.value: "good",
    Outcome.REFUSED.value: "open",
    Outcome.DRIFTED.value: "open",
    Outcome.FAILED.value: "bad",
    Outcome.UNKNOWN.value: "bad",
}


EventFields = tuple[datetime, EventKind, str, str, str | None]
"""Time, kind, tone, words and person of an event."""


def _plan(row: RowMapping, _: RowMapping | None, of_plan: Sequence[RowMapping]) -> EventFields:
    said = "; ".join(each["title"] for each in of_plan) or "nothing is to be done"
    return row["created_at"], EventKind.PLANNED, "open" if of_plan else "quiet", said, None


def _supersession(row: RowMapping, _: RowMapping | None, __: Sequence[RowMapping]) -> EventFields:
    return row["at"], EventKind.SUPERSEDED, "quiet", f"by the newer plan {row['by_plan_id']}", None


def _confirmation(row: RowMapping, _: RowMapping | None, __: Sequence[RowMapping]) -> EventFields:
    together = len(decode(row["batch_ids"], tuple[str, ...]))
    which = "the question stands" if together == 1 else f"{together:,} questions of the plan stand"
    words = f"a snapshot of {time_in_words(row['taken_at'])} proposes the same: {which}"
    return row["at"], EventKind.CONFIRMED, "quiet", words, None


def _question_end(row: RowMapping, batch: RowMapping | None, _: Sequence[RowMapping]) -> EventFields:
    title = f"{batch['title']}: " if batch else ""
    return row["at"], EventKind.QUESTION_ENDED, "quiet", f"{title}{row['words']}", None


def _request(row: RowMapping, batch: RowMapping | None, _: Sequence[RowMapping]) -> EventFields:
    voice = "a second person is asked" if (row["voice"] or 1) > 1 else "a person is asked"
    by = f"; started by {row['requested_by']}" if row["requested_by"] else ""
    title = f"{batch['title']}: " if batch else ""
    return row["at"], EventKind.ASKED, "open", f"{title}{voice}{by}", row["requested_by"]


def _answer(row: RowMapping, batch: RowMapping | None, _: Sequence[RowMapping]) -> EventFields:
    steps = decode(row["step_ids"], tuple[str, ...])
    of_steps = f", {counted(len(steps), 'step')}" if steps else ""
    comment = f' "{row["comment"]}"' if row["comment"] else ""
    words = f"{row['decision']}{of_steps}: {row['reason'] or (batch['title'] if batch else '')}{comment}"
    return row["answered_at"], EventKind.ANSWERED, _TONES.get(row["decision"], "bad"), words, row["answered_by"]


def _use(row: RowMapping, _: RowMapping | None, __: Sequence[RowMapping]) -> EventFields:
    return row["at"], EventKind.TAKEN_UP, "quiet", f"the approval is used by run {row['run']}", None


def _silence_end(row: RowMapping, batch: RowMapping | None, _: Sequence[RowMapping]) -> EventFields:
    title = f"{batch['title']}: " if batch else ""
    words = f"{title}it may be asked again, said {row['said_by']}: {row['reason']}"
    return row["at"], EventKind.SILENCE_ENDED, "open", words, row["said_by"]


def _intent(row: RowMapping, _: RowMapping | None, __: Sequence[RowMapping]) -> EventFields:
    again = f" (attempt {row['attempt']})" if row["attempt"] > 1 else ""
    return row["at"], EventKind.CALLED, "open", f"{kind_of(decode(row['change'], Change)).describe()}{again}", None


def _outcome(row: RowMapping, _: RowMapping | None, __: Sequence[RowMapping]) -> EventFields:
    tone = _TONES.get(row["outcome"], "bad")
    return row["at"], EventKind.ENDED, tone, f"{row['outcome']}: {row['reason']}", None


def _proof(row: RowMapping, _: RowMapping | None, __: Sequence[RowMapping]) -> EventFields:
    said = "proved" if row["proved"] else "not proved"
    return row["at"], EventKind.PROVED, "good" if row["proved"] else "bad", f"{said}: {row['reason']}", None


def _dry_run(row: RowMapping, _: RowMapping | None, __: Sequence[RowMapping]) -> EventFields:
    lines = counted(len(row["text"].splitlines()), "line")
    return row["at"], EventKind.DRY_RUN, "quiet", f"a dry run by {row['run']} printed {lines}", None


def _halt(row: RowMapping, _: RowMapping | None, __: Sequence[RowMapping]) -> EventFields:
    what, tone = (EventKind.HALTED, "bad") if row["halted"] else (EventKind.RESUMED, "good")
    return row["at"], what, tone, f"{row['said_by']}: {row['reason']}", row["said_by"]


TELLERS = {
    tables.PLANS.name: _plan,
    tables.SUPERSESSIONS.name: _supersession,
    tables.CONFIRMATIONS.name: _confirmation,
    tables.QUESTION_ENDS.name: _question_end,
    tables.REQUESTS.name: _request,
    tables.ANSWERS.name: _answer,
    tables.ANSWER_USES.name: _use,
    tables.SILENCE_ENDS.name: _silence_end,
    tables.INTENTS.name: _intent,
    tables.OUTCOMES.name: _outcome,
    tables.PROOFS.name: _proof,
    tables.DRY_RUNS.name: _dry_run,
    tables.HALTS.name: _halt,
}
"""Functions by table that make an event from a row, its batch (if any), and all batches of its plan."""
