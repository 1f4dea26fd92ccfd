"""How long a batch still takes: by its steps so far, never faster than the pace permits."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.ledger.rows import Intent, Outcome, StepOutcome
from pulsar_steward.model.step import Touched
from pulsar_steward.pages.plan_data import remaining
from pulsar_steward.policy.recorded import Pace, RecordedPolicy
from tests.builders import NOW, a_move, a_step
from tests.unit.pages.test_pages import words

if TYPE_CHECKING:
    from datetime import datetime

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.step import Step
    from tests.unit.pages.conftest import Client

FAST = Pace(changes=1000, clients=1_000_000)
BEGAN = NOW - timedelta(seconds=100)


def steps(count: int, clients: int = 0) -> list[Step]:
    """Steps that each touch so many clients."""
    touched = Touched(producers=clients, consumers=0, topics=0, coordinators=0)
    return [a_step(a_move(), step_id=f"b1.s{place:02d}", touched=touched) for place in range(count)]


def an_intent(step_id: str, at: datetime, answer_id: int = 1) -> Intent:
    """A call about to be made."""
    return Intent(
        intent_id=1, answer_id=answer_id, step_id=step_id, attempt=1, at=at, change=a_move(), before={"owner": "b"}
    )


def ended(step_id: str, at: datetime) -> StepOutcome:
    """A step that was done then."""
    return StepOutcome(
        plan_id="p",
        batch_id="b1",
        step_id=step_id,
        intent_id=1,
        run="r",
        at=at,
        outcome=Outcome.DONE,
        reason="",
        proof={},
    )


def forecast(left: list[Step], seconds: list[int], pace: Pace = FAST) -> tuple[float, bool]:
    """Seconds left, and whether at least, 100 s after the first call, with outcomes so many seconds after it."""
    names = [f"b1.s{place:02d}" for place in range(len(seconds))]
    last = {name: ended(name, BEGAN + timedelta(seconds=at)) for name, at in zip(names, seconds, strict=True)}
    found = remaining(left, [an_intent("b1.s00", BEGAN)], last, pace, NOW)
    assert found.steps == len(left)
    return (found.ends_at - NOW).total_seconds(), found.at_least


def test_steps_take_as_long_as_those_before() -> None:
    """After two steps in 80 seconds, the three that are left take 120 seconds, of which 20 have gone by."""
    assert forecast(steps(3), [40, 80]) == (100, False)


def test_a_step_that_takes_longer_is_not_ended_in_the_past() -> None:
    """A step that is overdue is forecast to end now, and not in the past."""
    assert forecast(steps(1), [1, 2]) == (0, False)


@pytest.mark.parametrize(
    ("left", "pace", "seconds"),
    [
        (steps(9), Pace(changes=3, clients=1_000), 120),
        (steps(4, clients=500), Pace(changes=1_000, clients=1_000), 60),
        (steps(2), Pace(changes=3, clients=1_000), 0),
    ],
)
def test_never_faster_than_the_pace(left: list[Step], pace: Pace, seconds: float) -> None:
    """The forecast is never faster than the pace of the policy, and is a lower bound before any step has ended."""
    assert forecast(left, [0], pace) == (seconds, False)
    assert forecast(left, [], pace) == (seconds, True)


def test_an_earlier_approval_does_not_count() -> None:
    """The forecast ignores steps of an earlier approval and the time between the two approvals."""
    night = timedelta(hours=8)
    calls = [an_intent("b1.s00", BEGAN - night, 1), an_intent("b1.s01", BEGAN, 2)]
    last = {"b1.s00": ended("b1.s00", BEGAN - night), "b1.s01": ended("b1.s01", BEGAN + timedelta(seconds=60))}
    assert remaining(steps(1), calls, last, FAST, NOW).ends_at == BEGAN + timedelta(seconds=120)


def test_the_pace_is_that_of_the_recorded_policy() -> None:
    """The pace comes from the recorded policy, with defaults for what that does not name."""
    assert Pace.of(RecordedPolicy(sections={"apply": {"bundle_moves_per_minute": 2}})) == Pace(changes=2)
    assert Pace.of(RecordedPolicy()) == Pace()


def test_the_plan_page_says_it(client: Client, plans: dict[str, Plan]) -> None:
    """The plan page shows the forecast of a batch while it runs, and not when it is over."""
    read = words(client, f"/plans/{plans['east'].plan_id}")
    assert "2 of 4 approved steps came to an end; the last one should have ended by now" in read
    batches = client.get(f"/api/plans/{plans['east'].plan_id}").json()["batches"]
    assert [each["remaining"] is not None for each in batches] == [True, False]
    done = client.get(f"/api/plans/{plans['west'].plan_id}").json()["batches"]
    assert [each["remaining"] for each in done] == [None]
