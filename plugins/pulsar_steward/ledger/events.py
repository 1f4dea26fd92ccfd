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
    from collections.abc import Callable, Mapping, Sequence

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


Told = tuple[EventKind, str, str]
"""Kind, tone and words of an event."""


def _confirmation(row: RowMapping, *_: object) -> Told:
    together = len(decode(row["batch_ids"], tuple[str, ...]))
    which = "the question stands" if together == 1 else f"{together:,} questions of the plan stand"
    return EventKind.CONFIRMED, "quiet", f"a snapshot of {time_in_words(row['taken_at'])} proposes the same: {which}"


def _request(row: RowMapping, title: str, _: object) -> Told:
    voice = "a second person is asked" if (row["voice"] or 1) > 1 else "a person is asked"
    by = f"; started by {row['requested_by']}" if row["requested_by"] else ""
    return EventKind.ASKED, "open", f"{title}{voice}{by}"


def _answer(row: RowMapping, title: str, _: object) -> Told:
    steps = decode(row["step_ids"], tuple[str, ...])
    of_steps = f", {counted(len(steps), 'step')}" if steps else ""
    comment = f' "{row["comment"]}"' if row["comment"] else ""
    words = f"{row['decision']}{of_steps}: {row['reason'] or title.removesuffix(': ')}{comment}"
    return EventKind.ANSWERED, _TONES.get(row["decision"], "bad"), words


def _intent(row: RowMapping, *_: object) -> Told:
    again = f" (attempt {row['attempt']})" if row["attempt"] > 1 else ""
    return EventKind.CALLED, "open", f"{kind_of(decode(row['change'], Change)).describe()}{again}"


def _proof(row: RowMapping, *_: object) -> Told:
    tone, said = ("good", "proved") if row["proved"] else ("bad", "verification failed")
    return EventKind.PROVED, tone, f"{said}: {row['reason']}"


def _dry_run(row: RowMapping, *_: object) -> Told:
    lines = counted(len(row["text"].splitlines()), "line")
    return EventKind.DRY_RUN, "quiet", f"a dry run by {row['run']} printed {lines}"


def _halt(row: RowMapping, *_: object) -> Told:
    what, tone = (EventKind.HALTED, "bad") if row["halted"] else (EventKind.RESUMED, "good")
    return what, tone, f"{row['said_by']}: {row['reason']}"


TELLERS: Mapping[str, Callable[[RowMapping, str, Sequence[str]], Told]] = {
    tables.PLANS.name: lambda _, __, titles: (
        (EventKind.PLANNED, "open", "; ".join(titles))
        if titles
        else (EventKind.PLANNED, "quiet", "nothing is to be done")
    ),
    tables.SUPERSESSIONS.name: lambda row, *_: (
        (EventKind.SUPERSEDED, "quiet", f"by the newer plan {row['by_plan_id']}")
    ),
    tables.CONFIRMATIONS.name: _confirmation,
    tables.QUESTION_ENDS.name: lambda row, title, _: (EventKind.QUESTION_ENDED, "quiet", f"{title}{row['words']}"),
    tables.REQUESTS.name: _request,
    tables.ANSWERS.name: _answer,
    tables.ANSWER_USES.name: lambda row, *_: (
        (EventKind.TAKEN_UP, "quiet", f"the approval is used by run {row['run']}")
    ),
    tables.SILENCE_ENDS.name: lambda row, title, _: (
        (EventKind.SILENCE_ENDED, "open", f"{title}it may be asked again, said {row['said_by']}: {row['reason']}")
    ),
    tables.INTENTS.name: _intent,
    tables.OUTCOMES.name: lambda row, *_: (
        (EventKind.ENDED, _TONES.get(row["outcome"], "bad"), f"{row['outcome']}: {row['reason']}")
    ),
    tables.PROOFS.name: _proof,
    tables.DRY_RUNS.name: _dry_run,
    tables.HALTS.name: _halt,
}
"""Makes an event by table, from a row, its batch's title with a colon (or nothing), and the titles of its plan."""
