"""The ledger first, then whoever listens; a listener's trouble is its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.apply.journal import Journal
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Answer, Decision, Outcome, Proof
from pulsar_steward.ledger.write import LedgerWriter
from tests.builders import CLUSTER, NOW, a_plan, an_outcome
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Engine

    from pulsar_steward.apply.journal import Listener
    from pulsar_steward.model.notice import Event

PLAN = a_plan()
RUN = "dag/run/0"
OUTCOME = an_outcome(PLAN, outcome=Outcome.REFUSED, run=RUN, proof={"owner": None})
PROOF = Proof(plan_id=PLAN.plan_id, batch_id="b1", run=RUN, at=NOW, proved=True, reason="made up", shown={})
ANSWER = Answer(
    plan_id=PLAN.plan_id,
    batch_id="b1",
    run=RUN,
    decision=Decision.REJECTED,
    answered_by="operator",
    answered_at=NOW,
    reason="a person rejected it",
)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """A ledger that holds the plan."""
    engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
    LedgerWriter(engine).record_plan(PLAN, NOW)
    yield engine
    engine.dispose()


def write_all(engine: Engine, listener: Listener | None) -> None:
    """An answer, an outcome and a proof."""
    journal = Journal(LedgerWriter(engine), CLUSTER, listener)
    journal.answer(ANSWER)
    journal.outcome(OUTCOME)
    journal.proof(PROOF)


def test_a_listener_is_told_after_the_ledger(engine: Engine) -> None:
    ledger = LedgerReader(engine)
    told: list[tuple[Event, int]] = []

    def listen(event: Event) -> None:
        rows = {
            "decision": ledger.answers(PLAN.plan_id, "b1"),
            "outcome": ledger.outcomes(PLAN.plan_id, "b1"),
            "proof": ledger.proofs(PLAN.plan_id),
        }
        told.append((event, len(rows[event.event])))

    write_all(engine, listen)
    events = [event for event, _ in told]
    assert [rows for _, rows in told] == [1, 1, 1]
    assert [(event.event, event.result) for event in events] == [
        ("decision", "rejected"),
        ("outcome", "refused"),
        ("proof", "proved"),
    ]
    assert {(event.cluster, event.plan_id, event.run) for event in events} == {(CLUSTER, PLAN.plan_id, RUN)}


def test_a_listener_that_raises_stops_nothing(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    """An exception in a listener is logged, and all rows are in the ledger nevertheless."""

    def listen(_: Event) -> None:
        raise RuntimeError("the topic is gone")

    write_all(engine, listen)
    ledger = LedgerReader(engine)
    assert len(ledger.answers(PLAN.plan_id, "b1")) == 1
    assert ledger.outcomes(PLAN.plan_id, "b1") == (OUTCOME,)
    assert ledger.proofs(PLAN.plan_id) == (PROOF,)
    assert caplog.text.count("RuntimeError: the topic is gone") == 3


def test_nobody_needs_to_listen(engine: Engine) -> None:
    """Without a listener the ledger is written all the same."""
    write_all(engine, None)
    assert LedgerReader(engine).outcomes(PLAN.plan_id, "b1") == (OUTCOME,)
