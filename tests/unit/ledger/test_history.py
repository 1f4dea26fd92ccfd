"""The ledger as a story, that its readers cannot write, and messages in it, on both databases."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest
from sqlalchemy import URL, Engine, select, text
from sqlalchemy.exc import DBAPIError

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.ledger import history as module
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.batch_record import ended_batches
from pulsar_steward.ledger.halts import halts_since
from pulsar_steward.ledger.history import EventKind, Filter, history, whole_story
from pulsar_steward.ledger.messages import (
    DeliveryState,
    GivenUp,
    Try,
    given_up_since,
    known_keys,
    message_counts,
    open_messages,
)
from pulsar_steward.ledger.outbox import Outbox
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.ledger.store import one_moment, open_to_read
from pulsar_steward.ledger.verify import verify_ledger
from tests.unit.ledger.forging import a_message, filled
from tests.unit.ledger.test_records import AT, LATER, NEWER, PLAN, RUN

if TYPE_CHECKING:
    from pathlib import Path

    from pulsar_steward.ledger.write import LedgerWriter

EVERYTHING = [
    EventKind.RESUMED,
    EventKind.SILENCE_ENDED,
    EventKind.ANSWERED,
    EventKind.QUESTION_ENDED,
    EventKind.CONFIRMED,
    EventKind.SUPERSEDED,
    EventKind.PLANNED,
    EventKind.DRY_RUN,
    EventKind.PROVED,
    EventKind.ENDED,
    EventKind.CALLED,
    EventKind.TAKEN_UP,
    EventKind.ANSWERED,
    EventKind.ASKED,
    EventKind.PLANNED,
]
NO_EVENTS = {"policies", "batches", "cluster_names", "questions", "messages", "deliveries"}
"""Chained tables without events: parts of a plan or a request, names of clusters, and what people were told."""


def told(engine: Engine, **chosen: str) -> list[EventKind]:
    """Events, newest first."""
    return [event.what for event in history(engine, Filter(**chosen)).events]


def test_everything_is_told_in_the_chains_order(full: Engine) -> None:
    """The history of a full ledger lists every chained row as an event, in the order of the chain, newest first.

    Rows that are parts of others, and what people were told, are no events.
    """
    assert told(full) == EVERYTHING
    page = history(full, Filter())
    names = [table.name for table in tables.CHAINED if table.name not in NO_EVENTS]
    links = select(tables.CHAIN.c.sequence).where(tables.CHAIN.c.table_name.in_(names))
    with full.connect() as connection:
        newest_first = connection.execute(links.order_by(tables.CHAIN.c.sequence.desc())).scalars().all()
    assert [event.sequence for event in page.events] == newest_first
    assert page.before is None
    assert page.head.sequence >= page.events[0].sequence


def test_filters(full: Engine) -> None:
    """The history can be filtered by cluster, plan, kind, person, namespace and step."""
    answer = next(event for event in history(full, Filter(person="ALICE")).events if event.what is EventKind.ANSWERED)
    assert answer.person == "alice"
    assert told(full, cluster=PLAN.cluster) == EVERYTHING
    assert told(full, cluster="elsewhere") == []
    assert told(full, plan_id=NEWER.plan_id) == [EventKind.PLANNED]
    assert told(full, person="bob") == [EventKind.RESUMED]
    assert told(full, person="carol") == [EventKind.SILENCE_ENDED]
    kind = PLAN.batches[0].kind
    assert EventKind.ENDED in told(full, kind=kind)
    assert told(full, kind="retention") == []
    namespace = PLAN.batches[0].steps[0].change.namespace
    assert EventKind.CALLED in told(full, namespace=namespace)
    assert told(full, namespace=f"{namespace}%") == []
    step = told(full, plan_id=PLAN.plan_id, batch_id="b1", step_id="b1.s01")
    assert (EventKind.CALLED in step, EventKind.ASKED in step) == (True, True)
    other = told(full, plan_id=PLAN.plan_id, batch_id="b1", step_id="b1.s02")
    assert (EventKind.CALLED in other, EventKind.ASKED in other) == (False, True)


@pytest.mark.parametrize("most", [1, 2, 3, 10, 15])
def test_pages_follow_each_other(full: Engine, most: int) -> None:
    """Consecutive pages of the history hold every event once and in order, for any size of page."""
    found: list[EventKind] = []
    before: int | None = None
    for _ in range(20):
        page = history(full, Filter(), before=before, most=most)
        found += [event.what for event in page.events]
        if (before := page.before) is None:
            break
    assert found == EVERYTHING


def test_a_page_looks_at_a_bounded_part(full: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page looks at a limited part of the chain, and leads to the next page although it found no events."""
    monkeypatch.setattr(module, "LINKS_AT_ONCE", 2)
    monkeypatch.setattr(module, "MAX_LINKS", 2)
    page = history(full, Filter(person="nobody"))
    assert page.events == ()
    assert page.before is not None
    assert [event.what for event in whole_story(full, Filter(), 100)] == EVERYTHING
    assert len(list(whole_story(full, Filter(), 3))) == 3


def test_readers_cannot_write(full: Engine, url: URL) -> None:
    """A ledger that was opened to read can be read, and its database refuses every write."""
    engine = open_to_read(url)
    try:
        assert LedgerReader(engine).plan(PLAN.plan_id) == PLAN
        assert told(engine) == EVERYTHING
        for words in ("DELETE FROM halts", "UPDATE chain_head SET sequence = 0", "CREATE TABLE other (x INTEGER)"):
            with pytest.raises(DBAPIError, match=r"(?i)read-?only"), engine.begin() as connection:
                connection.execute(text(words))
    finally:
        engine.dispose()


def test_a_missing_ledger_is_not_made(tmp_path: Path) -> None:
    """A missing ledger, or one without tables, cannot be opened to read, and an empty file stays empty."""
    from sqlalchemy import make_url  # noqa: PLC0415 - here alone

    with pytest.raises(ConfigurationError, match="first run"):
        open_to_read(make_url(f"sqlite:///{tmp_path / 'none.db'}"))
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "empty.db").touch()
    with pytest.raises(ConfigurationError):
        open_to_read(make_url(f"sqlite:///{tmp_path / 'empty.db'}"))
    assert (tmp_path / "empty.db").stat().st_size == 0


MESSAGE = a_message("east")


def test_a_message_is_queued_once(engine: Engine) -> None:
    outbox = Outbox(engine)
    other = msgspec.structs.replace(MESSAGE, recipient="dev", message_id="2" * 32)
    assert [outbox.queue([MESSAGE]), outbox.queue([MESSAGE, other]), outbox.queue([])] == [1, 1, 0]
    with one_moment(engine) as connection:
        assert open_messages(connection) == (MESSAGE, other)
        assert known_keys(connection, ["0" * 64, "1" * 64]) == {("0" * 64, "ops"), ("0" * 64, "dev")}


def test_each_try_is_kept(engine: Engine) -> None:
    """Each try of a message is kept, and a message that was given up is no longer open."""
    outbox = Outbox(engine)
    outbox.queue([MESSAGE])
    assert outbox.claim(MESSAGE, AT) == 1
    assert outbox.claim(MESSAGE, AT) is None
    failed = Try(attempt=1, state=DeliveryState.FAILED, at=AT, reason="no answer")
    outbox.record(MESSAGE.message_id, failed)
    outbox.record(MESSAGE.message_id, failed)
    with one_moment(engine) as connection:
        [waiting] = open_messages(connection)
        counts = message_counts(connection)["east"]
    assert [each.state for each in waiting.tries] == [DeliveryState.CLAIMED, DeliveryState.FAILED]
    assert (counts.ended, counts.pending, counts.oldest_pending) == ({}, 1, AT)

    outbox.record(MESSAGE.message_id, Try(attempt=1, state=DeliveryState.GIVEN_UP, at=LATER, reason="no answer"))
    with one_moment(engine) as connection:
        assert open_messages(connection) == ()
        assert message_counts(connection)["east"].ended == {DeliveryState.GIVEN_UP: 1}
        assert given_up_since(connection, LATER) == (GivenUp(recipient="ops", number=1, reason="no answer"),)
        assert given_up_since(connection, LATER + timedelta(seconds=1)) == ()
    assert outbox.claim(waiting, LATER) is None
    verdict = verify_ledger(engine)
    assert (verdict.tampered, verdict.head) == ((), outbox.head)


def test_a_batch_that_ended_lately(engine: Engine, write: LedgerWriter) -> None:
    """A batch that ended since the given time is returned with its run, steps and proof, and an earlier one is not."""
    write.record_plan(PLAN, AT)
    filled(engine)
    with one_moment(engine) as connection:
        [end] = ended_batches(connection, AT)
        assert ended_batches(connection, AT + timedelta(seconds=1)) == ()
        [halt] = halts_since(connection, AT)
        assert halts_since(connection, AT + timedelta(seconds=1)) == ()
    assert (end.record.key, end.run, len(end.approved)) == ((PLAN.plan_id, "b1"), RUN, 2)
    assert [(step.step_id, step.outcome) for step in end.outcomes] == [("b1.s01", Outcome.DONE)]
    assert end.proof is not None
    assert (end.proof.proved, end.proof.at, halt.halted) == (True, AT, False)
