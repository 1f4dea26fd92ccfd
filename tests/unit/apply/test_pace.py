"""What stands around a call: the pace of moves, the call's answer, its journal, and the recorded level of its run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_steward.apply.health import Level, recorded_level
from pulsar_steward.apply.journal import Journal, Listener
from pulsar_steward.apply.pace import WINDOW, pause_before
from pulsar_steward.changes import kind_of
from pulsar_steward.changes.split import BeforeSplit
from pulsar_steward.errors import InvalidName
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Answer, Decision, Outcome, Proof, StepOutcome
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.policy.schema import ApplyPolicy
from pulsar_steward.pulsar import calls
from tests.builders import BUNDLE, CLUSTER, NOW, a_move, a_plan, a_split, an_outcome, broker
from tests.cases import cases, row_by_row
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Engine

    from pulsar_steward.model.notice import Event
    from pulsar_steward.pulsar.calls import Call

THREE_MOVES_TEN_CLIENTS = ApplyPolicy(bundle_moves_per_minute=3, reconnecting_clients_per_minute=10)


@cases(
    "made, clients, pause",
    ("the first", [], 1, 0),
    ("within both limits", [(50, 1), (40, 1)], 1, 0),
    ("a fourth move waits for the first to be a minute ago", [(50, 0), (40, 0), (10, 0)], 0, 10),
    ("a minute ago is no longer counted", [(60, 9), (59, 1)], 9, 0),
    ("up to the limit of clients", [(50, 9)], 1, 0),
    ("over the limit of clients", [(50, 9)], 2, 10),
    ("waits until enough clients are a minute ago", [(50, 4), (30, 5)], 6, 30),
    ("and no longer than that", [(50, 4), (30, 5)], 5, 10),
    ("one above the limit waits for an empty minute", [(50, 1), (20, 1)], 99, 40),
    ("and goes then", [], 99, 0),
    ("what is long ago does not count", [(90, 50), (70, 50)], 10, 0),
)
def test_the_pause_keeps_both_limits(made: list[tuple[int, int]], clients: int, pause: float) -> None:
    changes = [(NOW - timedelta(seconds=ago), touched) for ago, touched in made]
    assert pause_before(changes, clients, THREE_MOVES_TEN_CLIENTS, NOW) == pause


@given(made=st.lists(st.tuples(st.floats(0, 120), st.integers(0, 12)), max_size=8), clients=st.integers(0, 12))
def test_after_the_pause_the_limits_hold(made: list[tuple[float, int]], clients: int) -> None:
    policy = THREE_MOVES_TEN_CLIENTS
    changes = [(NOW - timedelta(seconds=ago), touched) for ago, touched in sorted(made, reverse=True)]
    then = NOW + timedelta(seconds=pause_before(changes, clients, policy, NOW))
    assert then >= NOW
    recent = [touched for at, touched in changes if at > then - WINDOW]
    assert len(recent) < policy.bundle_moves_per_minute
    assert not recent or sum(recent) + clients <= policy.reconnecting_clients_per_minute


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            calls.unload("pulsar/system", BUNDLE, "host:8080"),
            f"PUT /admin/v2/namespaces/pulsar/system/{BUNDLE}/unload?destinationBroker=host:8080",
        ),
        (
            calls.split("pulsar/system", BUNDLE, "by_chance"),
            f"PUT /admin/v2/namespaces/pulsar/system/{BUNDLE}/split?unload=false&splitAlgorithmName=by_chance",
        ),
        (
            calls.look_up("persistent://a/b/odd name/with?marks"),
            "GET /lookup/v2/topic/persistent/a/b/odd%20name%2Fwith%3Fmarks",
        ),
        (
            calls.unload("te?nant/na#me", BUNDLE, "a&b=c:80"),
            f"PUT /admin/v2/namespaces/te%3Fnant/na%23me/{BUNDLE}/unload?destinationBroker=a%26b%3Dc:80",
        ),
    ],
    ids=["unload", "split", "lookup", "names that would end a path"],
)
def test_a_call_in_words(call: Call, text: str) -> None:
    """A call is printed as its method, quoted path and query, without host or token."""
    assert str(call) == text


@pytest.mark.parametrize("namespace", ["../clusters", "a/..", "/b", "a"])
def test_a_name_that_would_lead_elsewhere_is_no_call(namespace: str) -> None:
    with pytest.raises(InvalidName, match="cannot be a part"):
        calls.unload(namespace, BUNDLE, broker(0))


def test_each_change_makes_its_own_call() -> None:
    assert kind_of(a_move()).call() == calls.unload("pulsar/system", BUNDLE, broker(1))
    assert kind_of(a_split()).call().query["unload"] == "false"
    assert kind_of(a_split()).completion(BeforeSplit(owner=broker(0), bundles=[BUNDLE])) is None


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


@row_by_row(
    "proof, level",
    ({}, None),
    ({"owner": "b:1"}, None),
    ({"owner": "b:1", "health": {"level": "worse", "before": {}, "after": {}}}, Level.WORSE),
    ({"health": {"level": "strained"}}, Level.STRAINED),
    ({"health": {"level": "unheard of"}}, None),
    ({"health": "fine"}, None),
)
def test_the_level_that_was_recorded(proof: dict[str, Any], level: Level | None) -> None:
    row = StepOutcome(
        plan_id="p",
        batch_id="b1",
        step_id="b1.s01",
        intent_id=1,
        run="r",
        at=datetime(2026, 1, 1, tzinfo=UTC),
        outcome=Outcome.DONE,
        reason="done",
        proof=proof,
    )
    assert recorded_level(row) is level
