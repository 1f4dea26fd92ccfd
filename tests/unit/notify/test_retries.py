"""Times at which a message is tried again, and given up."""

from __future__ import annotations

import ast
from datetime import timedelta
from pathlib import Path

import pytest

from pulsar_steward.ledger.messages import DeliveryState, Queued, Try
from pulsar_steward.notify.retries import CLAIM_VALID, GIVEN_UP_AFTER, Turn, pause_after, turn
from pulsar_steward.orchestration.home import TELLING
from tests.builders import NOW
from tests.unit.notify.notices import a_notice

MINUTE = timedelta(minutes=1)
NOTIFY = Path(__file__).resolve().parents[3] / "dags" / "notify.py"


def tried(*states: DeliveryState) -> Queued:
    """A message with tries, the last of which is of `NOW`."""
    tries = tuple(Try(attempt=number, state=state, at=NOW, reason="") for number, state in enumerate(states, start=1))
    return Queued(message_id="m", recipient="ops", at=NOW, notices=(a_notice(),), tries=tries)


@pytest.mark.parametrize(
    ("message", "after", "expected"),
    [
        (tried(), 0 * MINUTE, Turn.SEND),
        (tried(DeliveryState.CLAIMED), CLAIM_VALID - MINUTE, Turn.WAIT),
        (tried(DeliveryState.CLAIMED), CLAIM_VALID, Turn.SEND),
        (tried(DeliveryState.FAILED), 0 * MINUTE, Turn.WAIT),
        (tried(DeliveryState.FAILED), MINUTE, Turn.SEND),
        (tried(DeliveryState.FAILED, DeliveryState.FAILED), MINUTE, Turn.WAIT),
        (tried(DeliveryState.FAILED, DeliveryState.FAILED), 2 * MINUTE, Turn.SEND),
        (tried(DeliveryState.FAILED), GIVEN_UP_AFTER, Turn.GIVE_UP),
        (tried(), GIVEN_UP_AFTER, Turn.GIVE_UP),
        (tried(DeliveryState.SENT), MINUTE, Turn.OVER),
        (tried(DeliveryState.SENT, DeliveryState.CLAIMED), 2 * CLAIM_VALID, Turn.OVER),
        (tried(DeliveryState.GIVEN_UP), 2 * GIVEN_UP_AFTER, Turn.OVER),
        (tried(DeliveryState.OUTDATED), GIVEN_UP_AFTER, Turn.OVER),
    ],
)
def test_the_turn_of_a_message(message: Queued, after: timedelta, expected: Turn) -> None:
    """A message's next turn (send, wait, give up or over) follows from its tries and the time."""
    assert turn(message, NOW + after) is expected


def test_pauses_grow_to_an_hour() -> None:
    """The pause between tries doubles from one minute up to an hour, and stays at an hour."""
    pauses = [pause_after(attempt) for attempt in (1, 2, 3, 4, 7, 8, 1000)]
    assert pauses == [MINUTE, 2 * MINUTE, 4 * MINUTE, 8 * MINUTE, 60 * MINUTE, 60 * MINUTE, 60 * MINUTE]


def test_no_two_workers_send_one_message_at_once() -> None:
    """A claim is valid for longer than `TELLING`, which the DAG's file sets as the limit of the task that makes it."""
    assert CLAIM_VALID > TELLING
    found = ast.walk(ast.parse(NOTIFY.read_text(encoding="utf-8")))
    [task] = [each for each in found if isinstance(each, ast.FunctionDef) and each.name == "notify"]
    [decorator] = task.decorator_list
    assert isinstance(decorator, ast.Call)
    options = {each.arg: ast.unparse(each.value) for each in decorator.keywords}
    assert (ast.unparse(decorator.func), options.get("execution_timeout")) == ("task", "TELLING")
