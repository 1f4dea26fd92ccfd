"""Clusters by name in a ledger, their states, and the one state of a batch."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.ledger.batch_record import BatchRecord, BatchState
from pulsar_steward.ledger.chain import appending
from pulsar_steward.ledger.cluster_names import add_name, cluster_names, known_cluster, shared_names
from pulsar_steward.ledger.counts import cluster_states
from pulsar_steward.ledger.halts import EVERY_CLUSTER, Halt, say
from pulsar_steward.ledger.rows import Decision, EndReason, Origin, Outcome, QuestionEnd, RecordedAnswer, Request
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.model.cluster import ClusterIdentity, NamedCluster
from tests.builders import NOW, a_batch, a_batch_run, a_plan, a_step, an_outcome
from tests.cases import cases, row_by_row
from tests.unit.ledger.test_records import AT, LATER, PLAN

if TYPE_CHECKING:
    from sqlalchemy import Engine


def seen(name: str, metadata: str | None = "0", *brokers: str, pulsar: str = "local") -> NamedCluster:
    return NamedCluster(name, ClusterIdentity(name=pulsar, metadata_id=metadata), frozenset(brokers))


def add(engine: Engine, *clusters: NamedCluster) -> None:
    for cluster in clusters:
        with appending(engine) as chain:
            add_name(chain, cluster, AT)


def names(engine: Engine, cluster: NamedCluster) -> set[str]:
    """Names that lead to a cluster now."""
    with engine.connect() as connection:
        return set(known_cluster(connection, cluster).names)


@cases(
    "other, same",
    ("one", seen("west"), True),
    ("no metadata", seen("west", None), True),
    ("two", seen("west", "1"), False),
    ("a common broker", seen("west", "1", "b:8080", "c:8080"), True),
    ("no common broker", seen("west", "1", "c:8080"), False),
    ("its name", seen("west", pulsar="prod"), False),
    ("only brokers", seen("west", "0", "b:8080", pulsar="prod"), False),
    ("unknown", NamedCluster("west"), False),
)
def test_clusters_are_one_by_their_own_name_and_by_metadata_or_brokers(
    engine: Engine, other: NamedCluster, *, same: bool
) -> None:
    """Two names are of one cluster if Pulsar's name is the same, and the metadata store or a broker as well."""
    east = seen("east", "0", "a:8080", "b:8080")
    add(engine, east, other)
    expected = {"east", "west"} if same else {"east"}
    assert names(engine, east) == names(engine, NamedCluster("east")) == expected
    with engine.connect() as connection:
        assert shared_names(connection) == ([("east", "west")] if same else [])


def test_names_are_one_by_way_of_a_third(engine: Engine) -> None:
    """Two names that have nothing in common are of one cluster if both have something in common with a third."""
    add(engine, seen("east", "0", "a:8080"), seen("north", "1", "a:8080", "b:8080"), seen("west", "1"))
    assert names(engine, NamedCluster("west")) == {"east", "north", "west"}


def test_a_name_that_leads_elsewhere_by_now_is_no_name_of_the_former_cluster(engine: Engine) -> None:
    add(engine, seen("east"), seen("west"), seen("west", "1"))
    with engine.connect() as connection:
        east = known_cluster(connection, NamedCluster("east"))
        assert (set(east.names), set(east.name_ids), east.name_id) == ({"east"}, {1, 2}, 1)
        assert known_cluster(connection, seen("west", "0")).names == {"east", "west"}  # a batch that is still under way


@row_by_row(
    "then, rows",
    (seen("east", "0", "b:8080", "c:8080"), 1),
    (seen("east"), 1),
    (NamedCluster("east"), 1),
    (seen("east", "0", "c:8080"), 2),
    (seen("east", "1", "a:8080"), 2),
    (seen("east", None, "a:8080"), 2),
    (seen("west", "0", "a:8080"), 2),
)
def test_a_row_is_added_where_the_last_one_says_something_else(engine: Engine, then: NamedCluster, rows: int) -> None:
    """A name gets another row if it leads to another cluster, or if no broker of its last row is listed any more."""
    add(engine, seen("east", "0", "a:8080", "b:8080"), then)
    with engine.connect() as connection:
        assert len(cluster_names(connection)) == rows


def test_an_empty_ledger_knows_no_cluster(engine: Engine) -> None:
    with one_moment(engine) as connection:
        assert cluster_states(connection, AT, ["observed"]).halts == {"observed": None}
    halt = Halt(cluster=EVERY_CLUSTER, at=AT, halted=True, said_by="bob", reason="an upgrade")
    say(engine, halt)
    say(engine, Halt(cluster="lokal", at=AT, halted=True, said_by="bob", reason="misspelt"))
    with one_moment(engine) as connection:
        states = cluster_states(connection, AT, ["observed"])
    assert (states.clusters, states.halts) == (frozenset(), {"observed": halt})
    assert (states.waiting, states.running, states.changes) == ([], {}, {})


def test_the_last_change_counts_the_steps_of_its_batch(full: Engine) -> None:
    with one_moment(full) as connection:
        states = cluster_states(connection, LATER)
    assert states.clusters == {PLAN.cluster}
    change = states.changes[PLAN.cluster]
    assert (change.plan_id, change.outcomes) == (PLAN.plan_id, {"done": 1})


MINUTE = timedelta(minutes=1)
TWO_STEPS = a_plan(a_batch(a_step(step_id="b1.s01"), a_step(step_id="b1.s02")))
FIRST, SECOND = "dag/first/0", "dag/second/0"


def a_request(request_id: int = 1, run: str = FIRST, voice: int = 1, **fields: Any) -> Request:
    """A request for an answer within the hour."""
    return Request(
        request_id=request_id,
        plan_id=TWO_STEPS.plan_id,
        batch_id="b1",
        run=run,
        at=NOW,
        ends_at=NOW + 60 * MINUTE,
        voice=voice,
        requested_by=None,
        origin=Origin.SCHEDULE,
        policy_digest="0" * 64,
        asked_digest="0" * 64,
        **fields,
    )


def an_answer(
    answer_id: int = 1, decision: Decision = Decision.APPROVED, run: str = FIRST, voice: int = 1
) -> RecordedAnswer:
    """An answer; an approval of both steps, which counts for half an hour."""
    approved = decision is Decision.APPROVED
    return RecordedAnswer(
        answer_id=answer_id,
        plan_id=TWO_STEPS.plan_id,
        batch_id="b1",
        run=run,
        voice=voice,
        decision=decision,
        answered_by="operator",
        answered_at=NOW,
        reason="made up",
        step_ids=("b1.s01", "b1.s02") if approved else (),
        expires_at=NOW + 30 * MINUTE if approved else None,
    )


def a_record(**rows: Any) -> BatchRecord:
    return a_batch_run(TWO_STEPS, **rows).record


ASKED = {"requests": (a_request(),)}
CLOSED = {"requests": (a_request(closed=True),)}
APPROVED = {**CLOSED, "answers": (an_answer(),)}
USED = {**APPROVED, "used": frozenset({1})}
ENDED = QuestionEnd(
    question_id=1, plan_id=TWO_STEPS.plan_id, batch_id="b1", at=NOW, reason=EndReason.CHANGED, by_plan_id="p",
    by_batch_id=None, words="it was seen otherwise",
)  # fmt: skip


ENDS = [an_outcome(TWO_STEPS, f"b1.s0{number}", run=FIRST) for number in (1, 2)]
REFUSED = msgspec.structs.replace(ENDS[1], outcome=Outcome.REFUSED)


def approved_and(decision: Decision, run: str = FIRST, voice: int = 1) -> dict[str, Any]:
    return {"answers": (an_answer(), an_answer(2, decision, run, voice=voice))}


REJECTED_ELSEWHERE = approved_and(Decision.REJECTED, SECOND)
ASKED_AGAIN = {"requests": (a_request(closed=True), a_request(2, voice=2)), "answers": (an_answer(),)}
AGAIN = {**approved_and(Decision.APPROVED, SECOND), "outcomes": [REFUSED, ENDS[0]]}


@cases(
    "rows, minutes, state",
    ("nobody was asked", {}, 0, BatchState.NOT_ASKED),
    ("asked", ASKED, 59, BatchState.WAITING),
    ("nobody answered in time", ASKED, 60, BatchState.UNANSWERED),
    ("its task asks about another batch by now", CLOSED, 0, BatchState.UNANSWERED),
    ("superseded while it waited", {**ASKED, "over": "newer"}, 0, BatchState.SUPERSEDED),
    ("approved", APPROVED, 29, BatchState.APPROVED),
    ("approved, and expired before it began", APPROVED, 30, BatchState.STOPPED),
    ("approved, and superseded", {**APPROVED, "over": "newer"}, 0, BatchState.SUPERSEDED),
    ("approved, and its question ended", {**APPROVED, "end": ENDED}, 0, BatchState.ENDED),
    ("a second person is asked", ASKED_AGAIN, 0, BatchState.WAITING),
    ("the second person says no", approved_and(Decision.REJECTED, voice=2), 0, BatchState.REJECTED),
    ("the second person does not answer", approved_and(Decision.NO_ANSWER, voice=2), 0, BatchState.UNANSWERED),
    ("rejected in another run", REJECTED_ELSEWHERE, 0, BatchState.REJECTED),
    ("not answered in another run", approved_and(Decision.NO_ANSWER, SECOND), 0, BatchState.APPROVED),
    ("a run acts on it", USED, 0, BatchState.CHANGING),
    ("one of two steps ended", {**USED, "outcomes": ENDS[:1]}, 29, BatchState.CHANGING),
    ("expired under way", {**USED, "outcomes": ENDS[:1]}, 30, BatchState.STOPPED),
    ("done", {**USED, "outcomes": ENDS}, 60, BatchState.DONE),
    ("a step was refused", {**USED, "outcomes": [ENDS[0], REFUSED]}, 60, BatchState.STOPPED),
    ("rejected after a call", {**REJECTED_ELSEWHERE, "called": frozenset({1})}, 0, BatchState.STOPPED),
    ("refused in one run, and approved again in another one", AGAIN, 0, BatchState.APPROVED),
    ("snoozed", {"answers": (an_answer(1, Decision.SNOOZED),)}, 0, BatchState.SNOOZED),
    ("never to be asked", {"answers": (an_answer(1, Decision.NEVER),)}, 0, BatchState.NEVER),
    ("malformed", {"answers": (an_answer(1, Decision.MALFORMED),)}, 0, BatchState.UNANSWERED),
)
def test_the_state_of_a_batch(rows: dict[str, Any], minutes: int, state: BatchState) -> None:
    """The state follows from the rows and the time alone, as the gate would decide: no policy is asked."""
    of_rows = {name: tuple(given) if isinstance(given, list) else given for name, given in rows.items()}
    assert a_record(**of_rows).state(NOW + minutes * MINUTE) is state


def test_a_batch_that_is_asked_elsewhere_is_over() -> None:
    """A batch without a question in a plan of questions is asked in an earlier plan, and waits for nothing here."""
    record = msgspec.structs.replace(a_record(**ASKED), asked_by_batch=True)
    assert (record.state(NOW), record.waiting(NOW)) == (BatchState.ASKED_ELSEWHERE, ())


def test_a_batch_is_open_or_being_changed_or_over() -> None:
    opened = {state for state in BatchState if state.is_open}
    assert opened == {BatchState.NOT_ASKED, BatchState.WAITING, BatchState.APPROVED}
    assert {state for state in BatchState if not state.is_over} - opened == {BatchState.CHANGING}
