"""A bound of delays is not set below what messages wait for already."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_steward.facts.backlogs import BacklogAges
from pulsar_steward.guards.evaluate import guards_of
from pulsar_steward.guards.settings import LongestDelay
from pulsar_steward.model.setting import DelayedDelivery, Setting, SettingName
from pulsar_steward.model.step import ChangeSetting, Step
from tests.builders import a_look, a_step

TOPIC = "persistent://shop/orders/t"
ANY = DelayedDelivery(active=True, tick_milliseconds=1000)
HOUR, TWO = (DelayedDelivery(active=True, tick_milliseconds=1000, longest_milliseconds=n * 3_600_000) for n in (1, 2))
NOT_TOLD = BacklogAges(waiting=3, unknown=3, why_unknown="nobody tells")


def step(after: Setting | None, before: Setting | None = None, **fields: Any) -> Step:
    """A step that sets delayed delivery."""
    change = ChangeSetting(namespace="shop/orders", name=SettingName.DELAYED_DELIVERY, before=before, after=after)
    return a_step(change, **fields)


def oldest(seconds: int) -> BacklogAges:
    """A backlog so old."""
    return BacklogAges(oldest_seconds=seconds, topic=TOPIC, waiting=1)


@pytest.mark.parametrize(
    ("made", "told", "passed", "words"),
    [
        (step(HOUR), {"backlog_ages": oldest(3600)}, True, "no message is known to wait for longer than 1 h"),
        (step(HOUR), {"backlog_ages": oldest(7200)}, False, "waits for 2 h already: longer delays than 1 h may"),
        (step(HOUR, TWO), {"backlog_ages": oldest(7200)}, False, "may be in use"),
        (step(HOUR, ANY), {"backlog_ages": oldest(7200)}, False, "may be in use"),
        (step(TWO, HOUR), {"backlog_ages": oldest(9000)}, True, "no delay is refused"),
        (step(ANY, HOUR), {"backlog_ages": oldest(9000)}, True, "no delay is refused"),
        (step(None, HOUR), {"backlog_ages": oldest(9000)}, True, "no delay is refused"),
        (step(HOUR), {"backlog_ages": NOT_TOLD}, False, "of 3 topics with a backlog its age is not known: nobody"),
        (step(HOUR), {"backlog_ages": NOT_TOLD, "planning": True}, True, "no message is known"),
        (step(HOUR), {"backlog_ages": None}, False, "is not known"),
    ],
    ids=["room", "too old", "tighter", "first", "looser", "none", "removed", "live", "at planning", "unknown"],
)
def test_what_waits_for_longer_stops_it(made: Step, told: dict[str, Any], *, passed: bool, words: str) -> None:
    result = LongestDelay().check(made, *a_look(**told))

    assert (result.passed, result.guard) == (passed, "longest_delay")
    assert words in result.reason


def test_a_rollback_is_held_against_it_as_well() -> None:
    for undoes in (None, "older/b1.s01"):
        assert "longest_delay" in {guard.name for guard in guards_of(step(HOUR, undoes=undoes))}
