"""Each event is told once, also where a worker is killed in between, and a recipient that fails stops nothing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.errors import NotDelivered
from pulsar_steward.ledger.halts import Halt, say
from pulsar_steward.ledger.messages import DeliveryState, GivenUp, given_up_since, message_counts, open_messages
from pulsar_steward.ledger.outbox import Outbox
from pulsar_steward.ledger.publishing import NewQuestion, QuestionChanges
from pulsar_steward.ledger.questions import UNASKED_AFTER
from pulsar_steward.ledger.rows import Answer, Decision
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.ledger.verify import verify_ledger
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.notice import Occasion
from pulsar_steward.notify.gather import CLAIM_VALID, GIVEN_UP_AFTER
from pulsar_steward.notify.variable import VariableHalt
from pulsar_steward.orchestration.notifying import Round, Teller
from pulsar_steward.snapshots.latest import SnapshotShelf
from tests.builders import ASKED_DIGEST, CLUSTER, NOW, a_batch, a_plan, a_policy, a_step
from tests.unit.notify.notices import AIRFLOW, RUN, a_notify_policy
from tests.unit.report_checkup.snapshots import a_finding, a_verdict, meta, written

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Engine

    from pulsar_steward.notify.compose import Message
    from pulsar_steward.notify.gather import Route

MINUTE = timedelta(minutes=1)
PLAN = a_plan(a_batch(a_step()))


class Killed(BaseException):
    """The worker's end: nothing that catches errors catches it."""


class Office:
    """A ledger with recipients, and a worker that may be killed.

    Attributes:
        got: Messages that each recipient got, as often as it got them.
        down: Recipients that do not take anything.
        killed_before: True: the worker ends before it sends.
        killed_after: True: it ends after it sent, before it says so.
    """

    def __init__(self, engine: Engine, shelf: SnapshotShelf, **recipients: dict[str, Any]) -> None:
        self.engine = engine
        self.shelf = shelf
        self.policies = {CLUSTER: a_notify_policy(**recipients)}
        self.now = NOW
        self.got: list[tuple[str, Message]] = []
        self.down: set[str] = set()
        self.killed_before = self.killed_after = False
        self.by_variable: dict[str, VariableHalt] = {}

    def round(self, later: timedelta = timedelta()) -> Round:
        """One run of the task, some time later."""
        self.now += later
        outbox = Outbox(self.engine)
        teller = Teller(
            self.engine,
            outbox,
            self.policies,
            clock=lambda: self.now,
            send=self._send,
            airflow=AIRFLOW,
            by_variable=lambda _: self.by_variable,
            asking_is_paused=lambda: True,
        )
        return teller.round(self.shelf)

    def told(self, recipient: str = "ops") -> list[str]:
        """Subjects of what a recipient got."""
        return [message.subject for name, message in self.got if name == recipient]

    def _send(self, route: Route, message: Message) -> None:
        if self.killed_before:
            raise Killed
        if route.recipient in self.down:
            raise NotDelivered(f"{route.recipient} is down")
        self.got.append((route.recipient, message))
        if self.killed_after:
            raise Killed


@pytest.fixture
def shelf(tmp_path: Path) -> SnapshotShelf:
    """A folder of snapshots, empty at first."""
    return SnapshotShelf(str(tmp_path / "snapshots"))


@pytest.fixture
def office(engine: Engine, shelf: SnapshotShelf) -> Office:
    """One recipient who wants everything."""
    return Office(engine, shelf, ops={})


def halt(engine: Engine, at: datetime = NOW, *, halted: bool = True) -> None:
    """Somebody says stop, or go on."""
    say(engine, Halt(cluster=CLUSTER, at=at, halted=halted, said_by="bob", reason="an upgrade"))


def ask(engine: Engine, number: int = 0, at: datetime = NOW) -> None:
    """A question, in a run of its own."""
    write = LedgerWriter(engine)
    policy = a_policy(approval={"response_timeout_minutes": 60})
    write.record_plan(PLAN, at, policy=policy)
    write.record_request(PLAN, "b1", f"{RUN}{number}", at, policy=policy, asked_digest=ASKED_DIGEST)


def test_an_event_is_told_once(office: Office) -> None:
    """An event is sent once although the task runs again, and a later event is sent as well."""
    halt(office.engine)
    assert office.round() == Round(queued=1, sent=1)
    assert office.round(MINUTE) == Round()
    halt(office.engine, office.now, halted=False)
    office.round(MINUTE)
    assert office.told() == ["[east] all changes are halted, by bob", "[east] changes may be made again, by bob"]
    assert verify_ledger(office.engine).tampered == ()


def test_a_worker_that_is_killed_before_it_sends_is_taken_over(office: Office) -> None:
    halt(office.engine)
    office.killed_before = True
    with pytest.raises(Killed):
        office.round()
    office.killed_before = False
    assert office.round(CLAIM_VALID - MINUTE) == Round()
    assert office.round(MINUTE) == Round(sent=1)
    assert office.round(2 * CLAIM_VALID) == Round()
    assert len(office.told()) == 1


def test_a_worker_that_is_killed_after_it_sent_sends_the_same_id_again(office: Office) -> None:
    """A worker that is killed after it sent leads to one repetition of the same message, and to no more."""
    halt(office.engine)
    office.killed_after = True
    with pytest.raises(Killed):
        office.round()
    office.killed_after = False
    office.round(CLAIM_VALID)
    office.round(CLAIM_VALID)
    [first, second] = [message for _, message in office.got]
    assert first == second


def test_a_worker_that_is_killed_before_it_claims_leaves_it_to_the_next(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    halt(office.engine)
    with monkeypatch.context() as patched:
        patched.setattr(Outbox, "claim", _killed)
        with pytest.raises(Killed):
            office.round()
    assert office.round() == Round(sent=1)


def _killed(*_: object) -> None:
    raise Killed


def test_of_two_workers_one_sends(office: Office) -> None:
    """A worker can neither claim nor queue a message that another worker has claimed in the meantime."""
    halt(office.engine)
    office.down = {"ops"}
    office.round()
    with one_moment(office.engine) as connection:
        [message] = open_messages(connection)
    first, second = Outbox(office.engine), Outbox(office.engine)
    assert first.claim(message, office.now) == 2
    assert second.claim(message, office.now) is None
    assert second.queue([message]) == 0


def test_a_recipient_that_fails_stops_nobody(engine: Engine, shelf: SnapshotShelf) -> None:
    """Other recipients get their messages while one fails, and that one gets its own once it is back."""
    office = Office(engine, shelf, ops={}, dev={})
    office.down = {"ops"}
    halt(engine)
    ask(engine)
    assert office.round() == Round(queued=4, sent=2, failed=1)
    assert len(office.told("dev")) == 2
    assert office.round(MINUTE / 2) == Round(failed=1)  # the other message's first try
    assert office.round(MINUTE / 2) == Round(failed=1)
    office.down = set()
    assert office.round(2 * MINUTE) == Round(sent=2)
    assert len(office.told()) == 2


def test_after_a_day_it_is_given_up(office: Office) -> None:
    """A message is given up after a day, and the ledger counts it with the reason."""
    office.down = {"ops"}
    halt(office.engine)
    office.round()
    assert office.round(GIVEN_UP_AFTER) == Round(given_up=1)
    office.down = set()
    assert office.round(MINUTE) == Round()
    with one_moment(office.engine) as connection:
        counts = message_counts(connection)[CLUSTER]
        lately = given_up_since(connection, office.now - 2 * MINUTE)
    assert (counts.ended, counts.pending) == ({DeliveryState.GIVEN_UP: 1}, 0)
    assert lately == (GivenUp(recipient="ops", number=1, reason="ops is down"),)


def test_two_hundred_questions_are_one_message(office: Office) -> None:
    """Two hundred open questions are sent to a recipient as one message."""
    for number in range(200):
        ask(office.engine, number)
    assert office.round() == Round(queued=1, sent=1)
    [(_, message)] = office.got
    assert message.subject == "[east] 200 questions wait for an answer"
    assert len(message.notices) == 200


def test_an_answered_question_is_not_told_late(office: Office) -> None:
    """A queued message about a question is dropped as outdated when the question was answered meanwhile."""
    ask(office.engine)
    office.down = {"ops"}
    office.round()
    LedgerWriter(office.engine).record_answer(
        Answer(
            plan_id=PLAN.plan_id,
            batch_id="b1",
            run=f"{RUN}0",
            decision=Decision.REJECTED,
            answered_by="alice",
            answered_at=NOW + MINUTE,
            reason="no",
        )
    )
    office.down = set()
    assert office.round(5 * MINUTE) == Round(outdated=1)
    assert office.got == []


def test_that_nobody_was_asked_is_told_until_somebody_is(office: Office) -> None:
    questions = tuple(NewQuestion(batch_id=each.batch_id, content_digest="0" * 64, goal="g") for each in PLAN.batches)
    LedgerWriter(office.engine).record_plan(PLAN, NOW, questions=QuestionChanges(asked=questions))
    assert office.round(UNASKED_AFTER - MINUTE) == Round()
    office.down = {"ops"}
    assert office.round(MINUTE) == Round(queued=1, failed=1)
    office.down = set()
    office.round(2 * MINUTE)
    [(_, message)] = office.got
    assert message.subject == "[east] nobody was asked: made up"
    assert "because pulsar_remediate is paused: unpause it" in message.text
    assert office.round(MINUTE) == Round()
    office.got.clear()
    ask(office.engine, at=office.now)
    office.round(MINUTE)
    assert office.told() == ["[east] a person is asked: made up"]


def test_who_is_no_recipient_any_more_gets_nothing(office: Office) -> None:
    """A queued message is dropped as outdated when the policy no longer has its recipient."""
    halt(office.engine)
    office.down = {"ops"}
    office.round()
    office.policies = {CLUSTER: a_notify_policy(dev={"events": ["done"]})}
    office.down = set()
    assert office.round(5 * MINUTE) == Round(outdated=1)
    assert office.got == []


def test_a_recipient_gets_what_it_wants(engine: Engine, shelf: SnapshotShelf) -> None:
    """Each recipient gets only notices of the occasions and the severity that the policy sets for it."""
    office = Office(engine, shelf, asked={"events": ["waiting"]}, duty={"min_severity": "critical"}, all={})
    halt(engine)
    ask(engine)
    office.round()
    assert office.told("asked") == ["[east] a person is asked: made up"]
    assert office.told("duty") == []
    assert len(office.told("all")) == 2


def test_without_recipients_nothing_is_queued(engine: Engine, shelf: SnapshotShelf) -> None:
    """No message is queued or sent for a cluster whose policy has no recipients."""
    office = Office(engine, shelf)
    halt(engine)
    assert office.round() == Round()
    with one_moment(engine) as connection:
        assert message_counts(connection) == {}


def test_what_is_long_past_is_not_told(office: Office) -> None:
    """A halt that ended long ago is not announced, and one that is still in force is."""
    halt(office.engine, NOW - timedelta(days=3))
    halt(office.engine, NOW - timedelta(days=2), halted=False)
    assert office.round() == Round()
    halt(office.engine, NOW - timedelta(days=2))
    assert office.round() == Round(queued=1, sent=1)


def test_critical_findings_of_snapshots_are_told(office: Office, tmp_path: Path) -> None:
    looks: list[list[dict[str, Any]]] = [[], [a_finding()], []]
    for number, findings in enumerate(looks):
        at = NOW + number * MINUTE
        folder = tmp_path / "snapshots" / f"cluster={CLUSTER}" / f"taken_at={at:%Y%m%dT%H%M%SZ}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        verdicts = [a_verdict("tc-skew", "found" if findings else "clear")]
        about = meta(snapshot_id=f"{CLUSTER}-{number}", taken_at=at)
        written(folder, findings=findings, verdicts=verdicts, snapshot=about)
        office.round(MINUTE)
    events = [message.event for _, message in office.got]
    assert events == [Occasion.FINDING_NEW, Occasion.FINDING_GONE]


def test_a_halt_by_the_variable_is_told_once_and_its_end_too(office: Office) -> None:
    """A halt by the variable is announced once at any age, and its end once unless it is days past."""
    office.by_variable = {CLUSTER: VariableHalt(halted=True, at=NOW - timedelta(days=30), value="*")}
    assert [office.round(MINUTE) for _ in range(2)] == [Round(queued=1, sent=1), Round()]
    office.by_variable = {CLUSTER: VariableHalt(halted=False, at=office.now, value="")}
    assert [office.round(MINUTE) for _ in range(2)] == [Round(queued=1, sent=1), Round()]
    assert office.told() == [
        "[east] the Airflow variable steward_halt halts all changes",
        "[east] the Airflow variable steward_halt halts no changes any more",
    ]
    assert office.got[0][1].notices[0].link == f"{AIRFLOW}/variables"
    late = Office(office.engine, office.shelf, others={})
    late.by_variable = {CLUSTER: VariableHalt(halted=False, at=NOW - timedelta(days=2), value="")}
    assert late.round() == Round()
