"""Messages and ended batches in the ledger, on both databases."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.ledger.batch_record import ended_batches
from pulsar_steward.ledger.halts import halts_since
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
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.ledger.verify import verify_ledger
from tests.unit.ledger.forging import a_message, filled
from tests.unit.ledger.test_records import AT, LATER, PLAN, RUN

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from pulsar_steward.ledger.write import LedgerWriter

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
