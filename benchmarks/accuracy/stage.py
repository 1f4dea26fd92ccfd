"""Faults made side by side on one lab: a thread each while they are made, changed and cleared away."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lab.cluster import Lab
    from lab.faults.fault import Change, Making, RealFault

STAGGER_S = 0.4
"""Between two beginnings: clients that all start and send at once keep a small machine busy for long after that."""


@dataclass
class Actor:
    """One fault on a stage.

    Attributes:
        fault: What is made.
        making: Its block, once it was entered.
        change: What happens before each look, if anything.
        failure: Why it could not be made or changed.
        seconds: From beginning it until brokers showed it.
    """

    fault: RealFault
    making: Making | None = field(default=None, repr=False)
    change: Change | None = field(default=None, repr=False)
    failure: str | None = None
    seconds: float = 0.0


class Stage:
    """The faults of a scene on one lab.

    Args:
        faults: They do not disturb each other.
        lab: Where they are made.
    """

    def __init__(self, faults: Sequence[RealFault], lab: Lab) -> None:
        self._lab = lab
        self.actors = [Actor(fault) for fault in faults]

    def make(self) -> None:
        """Makes all of them, one begun after the other; returns once each is there or has failed."""
        self._side_by_side(self._enter, self.actors, STAGGER_S)

    def change(self, observed: int) -> None:
        """Changes each of them before the next look."""
        there = [actor for actor in self.actors if actor.change is not None and actor.failure is None]
        self._side_by_side(lambda actor: self._change(actor, observed), there)

    def clear(self) -> list[str]:
        """Clears all of them away, the failed ones included; returns what could not be, a sentence each."""
        left: list[str] = []

        def leave(actor: Actor) -> None:
            if actor.making is not None:
                try:
                    actor.making.__exit__(None, None, None)
                except LabError as error:
                    left.append(f"{actor.fault.name} could not be cleared away: {error}")

        self._side_by_side(leave, self.actors)
        return left

    def _enter(self, actor: Actor) -> None:
        began = time.monotonic()
        making = actor.fault.made(self._lab)
        actor.change = making.__enter__()
        actor.making = making
        actor.seconds = time.monotonic() - began

    @staticmethod
    def _change(actor: Actor, observed: int) -> None:
        if actor.change is not None:
            actor.change(observed)

    @staticmethod
    def _side_by_side(act: Callable[[Actor], None], actors: Sequence[Actor], apart_s: float = 0.0) -> None:
        """A single one acts in the calling thread: a broker that it starts ends with the thread it is started in."""

        def tried(actor: Actor) -> None:
            try:
                act(actor)
            except Exception as error:  # whatever it is, the others go on, and it is told at the end
                actor.failure = f"{type(error).__name__}: {error}"

        if len(actors) <= 1:
            for actor in actors:
                tried(actor)
            return
        with ThreadPoolExecutor(len(actors), "fault") as threads:
            for actor in actors:
                threads.submit(tried, actor)
                time.sleep(apart_s)
