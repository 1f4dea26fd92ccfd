"""Times at which a message is sent, sent again, and given up: pure functions of its attempts and the time."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING

from pulsar_steward.ledger.messages import OVER, DeliveryState

if TYPE_CHECKING:
    from datetime import datetime

    from pulsar_steward.ledger.messages import Queued

CLAIM_VALID = timedelta(minutes=10)
"""Time after which a claim without a result is taken for that of a killed worker.

It is longer than the time limit of the sending task, so that two workers never send the same message at once.
"""

FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(hours=1)

GIVEN_UP_AFTER = timedelta(days=1)
"""Time from the queueing of a message after which it is not tried again."""


class Turn(Enum):
    """Next action for a message."""

    SEND = "send"
    WAIT = "wait"
    GIVE_UP = "give up"
    OVER = "over"


def turn(message: Queued, now: datetime) -> Turn:
    """Next action for a message at this time; pauses double from a minute to an hour."""
    if any(each.state in OVER for each in message.tries):
        return Turn.OVER
    last = message.tries[-1] if message.tries else None
    if last is not None and last.state is DeliveryState.CLAIMED and now - last.at < CLAIM_VALID:
        return Turn.WAIT  # another worker may be sending it
    if now - message.at >= GIVEN_UP_AFTER:
        return Turn.GIVE_UP
    if last is not None and last.state is DeliveryState.FAILED and now - last.at < pause_after(last.attempt):
        return Turn.WAIT
    return Turn.SEND


def pause_after(attempt: int) -> timedelta:
    """Pause after a failed attempt."""
    return min(FIRST_PAUSE * (1 << min(attempt - 1, 10)), LONGEST_PAUSE)
