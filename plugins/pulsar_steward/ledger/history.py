"""The ledger as a story: its events in the order of the chain, newest first. Cannot write.

A page is read by walking the chain back from a position. The database itself leaves out rows of other clusters, plans,
batches and people, as far as it can.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import and_, or_, select

from pulsar_steward.changes import kind_of
from pulsar_steward.decoding import decode
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.batch_record import batch_records, rows_of
from pulsar_steward.ledger.chain import HEAD_NAME, Head, row_key
from pulsar_steward.ledger.rows import Decision, Outcome
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.ledger.tables import PLANS, SUPERSESSIONS
from pulsar_steward.model.plan import Plan
from pulsar_steward.model.step import Change
from pulsar_steward.model.units import counted, time_in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, Engine, RowMapping, Table


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
        else (EventKind.PLANNED, "quiet", "nothing is proposed")
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


LINKS_AT_ONCE = 400
MAX_LINKS = 20_000
"""Maximum number of the chain's links that are read for one page; older links are on the next page."""

PLANS_SEARCHED = 500
"""Number of plans, the newest ones, that are searched for a namespace."""


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Selection of events on a page of the story; None: all.

    Attributes:
        namespace: Batches with a change in this namespace, and their plans.
        person: A part of the person's name or id.
        step_id: One step; events of its whole batch are included.
    """

    cluster: str | None = None
    namespace: str | None = None
    person: str | None = None
    kind: str | None = None
    plan_id: str | None = None
    batch_id: str | None = None
    step_id: str | None = None


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the story.

    Attributes:
        events: Events, newest first.
        before: Position in the chain where the next page begins, going back; None: this is the last page.
        head: The chain's end.
    """

    events: tuple[LedgerEvent, ...]
    before: int | None
    head: Head


def history(engine: Engine, chosen: Filter, *, before: int | None = None, most: int = 100) -> Page:
    """A page of the story.

    Args:
        engine: An open ledger.
        chosen: The selection.
        before: Position in the chain to go back from; None: the end.
        most: Maximum number of events.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    with one_moment(engine) as connection:
        row = connection.execute(
            select(tables.HEAD.c.sequence, tables.HEAD.c.hash).where(tables.HEAD.c.name == HEAD_NAME)
        )
        end = row.first()
        head = Head(*end) if end else Head(0, "")
        found, reached = _walked(_Reader(connection), _Narrowed(connection, chosen), before or head.sequence + 1, most)
        return Page(events=tuple(found), before=reached, head=head)


def _walked(reader: _Reader, narrowed: _Narrowed, before: int, most: int) -> tuple[list[LedgerEvent], int | None]:
    """Events before a position, and the position of the next page; None: there is no next page."""
    found: list[LedgerEvent] = []
    for _ in range(MAX_LINKS // LINKS_AT_ONCE):
        links = narrowed.links(before)
        for event in reader.events(links):
            if not narrowed.fits(event):
                continue
            if len(found) == most:
                return found, found[-1].sequence
            found.append(event)
        if len(links) < LINKS_AT_ONCE:
            return found, None
        before = links[-1]["sequence"]
    return found, before


_TOLD = tuple(tables.metadata.tables[name] for name in TELLERS)
_OF_PEOPLE = (tables.REQUESTS, tables.ANSWERS, tables.SILENCE_ENDS, tables.HALTS)


class _Narrowed:
    """A filter, and the conditions of it that the database can apply to the chain's links."""

    def __init__(self, connection: Connection, chosen: Filter) -> None:
        self._connection = connection
        self._chosen = chosen
        self._batches = _batches_in(connection, chosen) if chosen.namespace else None
        self._conditions = list(self._where())

    def links(self, before: int) -> Sequence[RowMapping]:
        """The last links before a position that may match the filter."""
        chain = tables.CHAIN
        query = select(chain.c.sequence, chain.c.table_name, chain.c.row_key).where(chain.c.sequence < before)
        newest_first = query.where(*self._conditions).order_by(chain.c.sequence.desc())
        return self._connection.execute(newest_first.limit(LINKS_AT_ONCE)).mappings().all()

    def fits(self, event: LedgerEvent) -> bool:
        """True if an event matches the filter."""
        chosen = self._chosen
        return (
            (chosen.cluster is None or event.cluster in {chosen.cluster, "*"})
            and (chosen.kind is None or event.kind in {chosen.kind, None})
            and (chosen.batch_id is None or event.batch_id in {chosen.batch_id, None})
            and (chosen.step_id is None or event.step_id in {chosen.step_id, None})
            and (chosen.person is None or chosen.person.casefold() in (event.person or "").casefold())
            and (self._batches is None or event.batch_id is None or (event.plan_id, event.batch_id) in self._batches)
        )

    def _where(self) -> Iterator[ColumnElement[bool]]:
        chain, plans, batches, chosen = tables.CHAIN, tables.PLANS, tables.BATCHES, self._chosen
        told = _OF_PEOPLE if chosen.person else _TOLD
        of_plans = chosen.plan_id or chosen.kind or chosen.namespace
        yield chain.c.table_name.in_([table.name for table in told if not (of_plans and table is tables.HALTS)])
        if chosen.plan_id:
            yield chain.c.plan_id == chosen.plan_id
        if chosen.cluster:
            theirs = chain.c.plan_id.in_(select(plans.c.plan_id).where(plans.c.cluster == chosen.cluster))
            yield or_(theirs, chain.c.table_name == tables.HALTS.name)
        if chosen.kind:
            yield chain.c.plan_id.in_(select(batches.c.plan_id).where(batches.c.kind == chosen.kind))
        if self._batches is not None:
            yield chain.c.plan_id.in_(sorted({plan_id for plan_id, _ in self._batches}))


def _batches_in(connection: Connection, chosen: Filter) -> frozenset[tuple[str, str]]:
    """Batches with a step in the chosen namespace, in the newest plans."""
    plans = tables.PLANS
    query = select(plans.c.document).where(plans.c.document.contains(f'"{chosen.namespace}"', autoescape=True))
    if chosen.cluster:
        query = query.where(plans.c.cluster == chosen.cluster)
    documents = connection.execute(query.order_by(plans.c.sequence.desc()).limit(PLANS_SEARCHED)).scalars()
    return frozenset(
        (plan.plan_id, batch.batch_id)
        for plan in map(_decoded, documents)
        if plan is not None
        for batch in plan.batches
        if any(step.change.namespace == chosen.namespace for step in batch.steps)
    )


def _decoded(document: str) -> Plan | None:
    try:
        return Plan.decoded(document)
    except msgspec.MsgspecError:  # `steward ledger verify` reports the change
        return None


class _Reader:
    """Makes events from links."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def events(self, links: Sequence[RowMapping]) -> Iterator[LedgerEvent]:
        """Events of these links, in their order; a link whose row was removed is left out."""
        keys: defaultdict[str, list[str]] = defaultdict(list)
        for link in links:
            keys[link["table_name"]].append(link["row_key"])
        rows = {(name, key): row for name, some in keys.items() for key, row in self._rows(_BY_NAME[name], some)}
        named = {row["plan_id"] for row in rows.values() if "plan_id" in row}
        clusters, batches = self._clusters(named), self._batches(named)
        for link in links:
            row = rows.get((link["table_name"], link["row_key"]))
            if row is not None:
                titles = [each["title"] for each in batches.values() if each["plan_id"] == row.get("plan_id")]
                about = {name: row[name] for name in ("plan_id", "batch_id", "step_id", "run") if name in row}
                if len(confirmed := decode(row.get("batch_ids", "[]"), list[str])) == 1:
                    (about["batch_id"],) = confirmed
                batch = batches.get((row.get("plan_id"), about.get("batch_id")))
                title = f"{batch['title']}: " if batch else ""
                what, tone, words = TELLERS[link["table_name"]](row, title, titles)
                yield LedgerEvent(
                    sequence=link["sequence"],
                    cluster=str(row.get("cluster") or clusters.get(row.get("plan_id"), "")),
                    kind=batch["kind"] if batch else None,
                    at=next(row[name] for name in ("at", "created_at", "answered_at") if name in row),
                    what=what,
                    tone=tone,
                    words=words,
                    person=next((row[name] for name in _PERSONS if name in row), None),
                    **about,
                )

    def _rows(self, table: Table, keys: Collection[str]) -> Iterator[tuple[str, RowMapping]]:
        values = [decode(key, list[Any]) for key in keys]
        columns = [column for column in table.c if column.name != "document"]
        names = _KEYS[table.name]
        if len(names) == 1:
            which: ColumnElement[bool] = table.c[names[0]].in_([value for (value,) in values])
        else:
            which = or_(*(and_(*(table.c[n] == v for n, v in zip(names, each, strict=True))) for each in values))
        for row in self._connection.execute(select(*columns).where(which)).mappings():
            yield row_key(table, row), row

    def _clusters(self, plans: Collection[str]) -> Mapping[Any, str]:
        query = select(tables.PLANS.c.plan_id, tables.PLANS.c.cluster).where(tables.PLANS.c.plan_id.in_(plans))
        return {row.plan_id: row.cluster for row in self._connection.execute(query)}

    def _batches(self, plans: Collection[str]) -> Mapping[Any, RowMapping]:
        query = select(tables.BATCHES).where(tables.BATCHES.c.plan_id.in_(plans)).order_by(tables.BATCHES.c.position)
        return {(row["plan_id"], row["batch_id"]): row for row in self._connection.execute(query).mappings()}


_PERSONS = ("requested_by", "answered_by", "said_by")
"""Columns that name the person of a row; a table has one at most."""

_BY_NAME = {table.name: table for table in _TOLD}
_KEYS = {table.name: [column.name for column in table.primary_key.columns] for table in _TOLD}


def whole_story(engine: Engine, chosen: Filter, most: int) -> Iterable[LedgerEvent]:
    """Events page after page, newest first, at most `most`, for a file.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    before: int | None = None
    while most > 0:
        page = history(engine, chosen, before=before, most=min(most, LINKS_AT_ONCE))
        yield from page.events
        most, before = most - len(page.events), page.before
        if before is None:
            return


class PlanLine(msgspec.Struct, frozen=True, kw_only=True):
    """A plan's line in a list.

    Attributes:
        titles: Titles of its batches.
        steps: Number of steps in all of its batches.
        waiting: Number of its questions that wait for an answer.
        outcomes: Number of ended steps, by outcome.
    """

    plan_id: str
    recorded_at: datetime
    superseded_by: str | None
    titles: tuple[str, ...]
    steps: int
    waiting: int
    outcomes: dict[str, int]


def plan_lines(connection: Connection, cluster: str, now: datetime, most: int) -> tuple[PlanLine, ...]:
    """A cluster's newest plans, newest first."""
    by = SUPERSESSIONS.c.by_plan_id
    newest = select(PLANS.c.plan_id, PLANS.c.created_at, by).outerjoin(
        SUPERSESSIONS, SUPERSESSIONS.c.plan_id == PLANS.c.plan_id
    )
    of_cluster = newest.where(PLANS.c.cluster == cluster).order_by(PLANS.c.sequence.desc()).limit(most)
    plans = rows_of(connection, of_cluster)
    batches = batch_records(connection, [row["plan_id"] for row in plans]).values()
    found = []
    for row in plans:
        own = [each for each in batches if each.plan_id == row["plan_id"]]
        outcomes = Counter(outcome.outcome for each in own for outcome in each.outcomes)
        found.append(
            PlanLine(
                plan_id=row["plan_id"],
                recorded_at=row["created_at"],
                superseded_by=row["by_plan_id"],
                titles=tuple(each.title for each in own),
                steps=sum(each.steps for each in own),
                waiting=sum(len(each.waiting(now)) for each in own),
                outcomes={each.value: count for each in Outcome if (count := outcomes[each])},
            )
        )
    return tuple(found)
