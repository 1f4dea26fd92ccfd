"""Kept facts of the live cluster: how old each may get, and which of them a call makes stale."""

from __future__ import annotations

import time
from math import inf
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


T = TypeVar("T")


class Age(NamedTuple):
    """How long a fact may be kept.

    Attributes:
        seconds: Its greatest age.
        next_step: Its greatest age when another step begins.
        outlives_calls: True if a call of Steward's does not make it stale.
    """

    seconds: float
    next_step: float
    outlives_calls: bool


AGES = {
    # The cluster's identity, its list of brokers, and that a broker responds. A look at one bundle may take 5 s.
    "listed": Age(60, 5, outlives_calls=False),
    # The responses of all brokers, kept for as long as brokers keep their own statistics, the source for clients and
    # backlogs. A broker that dies leaves the list within 30 s (its metadata session), and another list drops them.
    "whole": Age(60, inf, outlives_calls=True),
    # A broker's statistics of its topics, which it renews once a minute, and the clients of each bundle in them.
    "statistics": Age(60, inf, outlives_calls=False),
    "clients": Age(60, inf, outlives_calls=False),
}
"""Ages of the facts that several looks use. All others are read once a look (`once`), and dropped with it."""


class KeptFacts:
    """Facts that were read, by the name of their age.

    Args:
        seconds: A monotonic clock.
    """

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._kept: dict[str, dict[Hashable, tuple[float, Any]]] = {name: {} for name in AGES}

    def keep(self, age: str, fact: Hashable, read: Callable[[], T]) -> T:
        """A fact, read again if it is too old; its age counts from before it was read."""
        at, value = self._kept[age].get(fact, (-inf, None))
        if (now := self._seconds()) - at > AGES[age].seconds:
            value = read()
            self._kept[age][fact] = now, value
        return value  # type: ignore[no-any-return]  # of the type that was read

    def begin(self) -> None:
        """Drops what is too old for another step; facts of one age are dropped together."""
        for name, age in AGES.items():
            if any(self._seconds() - at > age.next_step for at, _ in self._kept[name].values()):
                self.drop(name)

    def called(self) -> None:
        """Drops what a call may have made stale."""
        for name, age in AGES.items():
            if not age.outlives_calls:
                self.drop(name)

    def drop(self, age: str, *facts: Hashable) -> None:
        """Drops some facts of an age; without names, all."""
        for fact in facts or tuple(self._kept[age]):
            self._kept[age].pop(fact, None)


class KeepsAnswers(Protocol):
    """An object that keeps its methods' results.

    Attributes:
        known: Results by method name and arguments.
    """

    known: dict[Any, Any]


Facts = TypeVar("Facts", bound=KeepsAnswers)
Params = ParamSpec("Params")
Answer = TypeVar("Answer")


def once(read: Callable[Concatenate[Facts, Params], Answer]) -> Callable[Concatenate[Facts, Params], Answer]:
    """The method, whose result is read once and then kept."""

    def answered(facts: Facts, /, *args: Params.args, **kwargs: Params.kwargs) -> Answer:
        question = (read.__name__, args, *kwargs.items())
        if question not in facts.known:
            facts.known[question] = read(facts, *args, **kwargs)
        return cast("Answer", facts.known[question])

    return answered
