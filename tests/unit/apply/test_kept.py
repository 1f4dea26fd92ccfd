"""Facts of the live cluster are kept for as long as the table of ages permits."""

from __future__ import annotations

import pytest

from pulsar_steward.apply.kept import AGES, KeptFacts


class Clock:
    """A clock that stands still until a test moves it, and counts what is read."""

    def __init__(self) -> None:
        self.now = 0.0
        self.reads = 0
        self.kept = KeptFacts(lambda: self.now)

    def read(self, age: str, fact: str = "fact") -> int:
        """Returns which read a fact is from."""
        return self.kept.keep(age, fact, self._read)

    def _read(self) -> int:
        self.reads += 1
        self.now += 1  # a read takes a second
        return self.reads


@pytest.mark.parametrize("age", AGES)
def test_a_fact_is_read_again_once_it_is_too_old(age: str) -> None:
    clock = Clock()
    assert clock.read(age) == 1
    clock.now = AGES[age].seconds
    assert clock.read(age) == 1
    clock.now += 0.1
    assert clock.read(age) == 2


@pytest.mark.parametrize("age", AGES)
def test_a_call_makes_all_stale_but_what_outlives_it(age: str) -> None:
    clock = Clock()
    clock.read(age)
    clock.kept.called()
    assert clock.read(age) == (1 if AGES[age].outlives_calls else 2)


def test_facts_of_one_age_are_dropped_together_when_a_step_begins() -> None:
    """One that is too old for another step takes the younger ones along."""
    clock = Clock()
    clock.read("listed", "old")
    clock.now = AGES["listed"].next_step
    clock.read("listed", "young")
    clock.kept.begin()
    assert clock.read("listed", "young") == 3


def test_a_single_fact_can_be_dropped() -> None:
    """Other facts of the same age stay."""
    clock = Clock()
    clock.read("clients", "a")
    clock.read("clients", "b")
    clock.kept.drop("clients", "a", "not read")
    assert (clock.read("clients", "b"), clock.read("clients", "a")) == (2, 3)
