"""Guards of a raise of the number of coordinators: the policy's most, and all that there are at rest."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.apply.live_topics import restless_coordinators
from pulsar_steward.guards.coordinators import CoordinatorLimit, CoordinatorsRest
from pulsar_steward.guards.evaluate import guards_of
from pulsar_steward.model.bundles import TC_NAMESPACE, position_of, tc_topic
from pulsar_steward.model.step import RaiseCoordinators
from tests.builders import NOW, a_look, a_move, a_policy, a_step, broker

if TYPE_CHECKING:
    from collections.abc import Collection

    from pulsar_steward.apply.live_reader import LiveReader

RAISE = RaiseCoordinators(before=2, after=5)
TO_FIVE = a_policy(guards={"most_coordinators": 5, "coordinators_rest_minutes": 60})
REST_KEY = "policy key guards.coordinators_rest_minutes"
LOW, HIGH = f"{TC_NAMESPACE}/0x00000000_0x80000000", f"{TC_NAMESPACE}/0x80000000_0xffffffff"


@pytest.mark.parametrize(
    ("change", "policy", "reason"),
    [
        (RAISE, a_policy(), "the policy permits no raise of their number (guards.most_coordinators)"),
        (RAISE, a_policy(guards={"most_coordinators": 4}), "5 of at most 4 (policy key guards.most_coordinators)"),
        (RaiseCoordinators(before=5, after=5), TO_FIVE, "5 are not more than 5"),
        (RaiseCoordinators(before=5, after=2), TO_FIVE, "2 are not more than 5"),
    ],
)
def test_what_is_too_much_or_no_raise_is_vetoed(change: RaiseCoordinators, policy: object, reason: str) -> None:
    facts, _ = a_look()
    result = CoordinatorLimit().check(a_step(change), facts, policy)  # type: ignore[arg-type]  # as `a_policy` gives it
    assert (result.passed, result.reason) == (False, reason)


def test_as_many_as_the_policy_permits_pass() -> None:
    result = CoordinatorLimit().check(a_step(RAISE), *a_look(TO_FIVE))
    assert (result.passed, result.reason) == (True, "5 of at most 5 (policy key guards.most_coordinators)")


@pytest.mark.parametrize(
    ("restless", "minutes", "passed", "reason"),
    [
        ((), None, True, "every coordinator is served, and their number was not raised lately"),
        ((), 60, True, f"raised at 2026-03-01 11:00:00, rested until 2026-03-01 12:00:00 UTC ({REST_KEY})"),
        ((), 59, False, f"raised at 2026-03-01 11:01:00, rests until 2026-03-01 12:01:00 UTC ({REST_KEY})"),
        (("a", "b", "c"), None, False, "a, b, c"),
        (("a", "b", "c", "d"), None, False, "a, b, c and 1 coordinator more"),
        (("a",), 60, False, "a"),
    ],
)
def test_coordinators_rest(restless: tuple[str, ...], minutes: int | None, passed: bool, reason: str) -> None:
    raised_at = None if minutes is None else NOW - timedelta(minutes=minutes)
    result = CoordinatorsRest().check(
        a_step(RAISE), *a_look(TO_FIVE, restless_coordinators=restless, raised_at=raised_at)
    )
    assert (result.passed, result.reason) == (passed, reason)


def test_they_look_at_raises_alone() -> None:
    of_raise = {guard.name for guard in guards_of(a_step(RAISE))}
    both = {"coordinator_limit", "coordinators_rest"}
    assert both | {"whole_cluster", "version_tried", "protected"} <= of_raise
    assert not {"owner", "cooldown", "setting_as_planned"} & of_raise
    assert not both & {guard.name for guard in guards_of(a_step(a_move()))}
    with pytest.raises(TypeError):
        CoordinatorLimit().check(a_step(a_move()), *a_look())


class States:
    """A reader of coordinators whose states are as a test says; one that is not told of is used by nobody."""

    def __init__(self, number: int, states: dict[int, str]) -> None:
        self._number = number
        self._states = states
        self.asked: list[tuple[str, list[int]]] = []

    def coordinators(self) -> int:
        """Returns the number of coordinators."""
        return self._number

    def coordinator_states(self, broker: str, numbers: Collection[int]) -> dict[int, str]:
        """Returns the states that the test set, and remembers who was asked for which."""
        self.asked.append((broker, list(numbers)))
        return {number: self._states[number] for number in numbers if number in self._states}


def found(reader: States, owners: dict[str, set[str]]) -> tuple[str, ...]:
    """Guard result about the coordinators."""
    as_reader: LiveReader = reader  # type: ignore[assignment]  # of which only these two methods are used
    return restless_coordinators(as_reader, owners)


def test_owners_are_asked_for_the_states_of_their_own() -> None:
    reader = States(16, {0: "Ready", 3: "Initializing", 9: "Ready"})
    assert found(reader, {broker(0): {LOW}, broker(1): {HIGH}}) == ("transaction coordinator 3 is Initializing",)
    low = [number for number in range(16) if position_of(tc_topic(number)) < 0x80000000]
    high = [number for number in range(16) if number not in low]
    assert sorted(reader.asked) == [(broker(0), low), (broker(1), high)]


def test_a_coordinator_that_nobody_serves_is_told() -> None:
    reader = States(16, {0: "Closed", 1: "Closed"})
    low = [number for number in range(16) if position_of(tc_topic(number)) < 0x80000000]
    told = found(reader, {broker(1): {HIGH}})
    assert [words for words in told if "no broker serves" in words] == [
        f"no broker serves transaction coordinator {number}" for number in low
    ]
    numbers = [int(part) for words in told for part in words.split() if part.isdigit()]
    assert numbers == sorted({*low, 0, 1})
