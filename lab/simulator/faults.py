"""Trouble made on purpose: which requests it meets, and what happens to them. Safe to use from any thread."""

import re
import threading
from dataclasses import dataclass, field
from typing import assert_never


@dataclass(frozen=True, slots=True)
class Delay:
    """The work is done, and the answer comes that many seconds late."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer with a status and a reason, without doing anything."""

    status: int
    reason: str = "made to fail"


@dataclass(frozen=True, slots=True)
class BrokenJson:
    """The work is done, and the second half of the answer's body is cut off."""


@dataclass(frozen=True, slots=True)
class Without:
    """The work is done, and the answer has a member nowhere, or a value in its place."""

    member: str
    instead: int | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """The connection is reset without an answer; the work was done before it, or never."""

    work_done: bool


Effect = Delay | Answer | BrokenJson | Without | Drop


@dataclass(frozen=True, slots=True)
class Fault:
    """One effect and the requests that it meets.

    Attributes:
        effect: What happens.
        path: A regular expression, found anywhere in the path with its query.
        method: Only that one; None for all.
        broker_id: Only at that broker; None for all.
        times: How many requests it meets; None for all until it is removed.
    """

    effect: Effect
    path: str = ""
    method: str | None = None
    broker_id: str | None = None
    times: int | None = 1

    def meets(self, method: str, broker_id: str, url: str) -> bool:
        """True if the fault meets the request."""
        mine = self.method in {None, method} and self.broker_id in {None, broker_id}
        return mine and re.search(self.path, url) is not None


@dataclass(slots=True)
class _Live:
    fault: Fault
    left: int | None = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.fault.times


class Faults:
    """The faults of a made-up cluster, the oldest first: a request meets at most one."""

    def __init__(self) -> None:
        self._live: list[_Live] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> Fault:
        """Sets a fault up; returns it."""
        with self._lock:
            self._live.append(_Live(fault))
        return fault

    def remove(self, fault: Fault) -> None:
        """Takes a fault back; nothing happens when it has worn off."""
        with self._lock:
            self._live = [live for live in self._live if live.fault is not fault]

    def clear(self) -> None:
        """Takes all back."""
        with self._lock:
            self._live = []

    def next_for(self, method: str, broker_id: str, url: str) -> Effect | None:
        """Effect for a request; one time fewer is left of the fault then."""
        with self._lock:
            for live in self._live:
                if live.fault.meets(method, broker_id, url):
                    self._wear_off(live)
                    return live.fault.effect
        return None

    def _wear_off(self, live: _Live) -> None:
        if live.left is not None:
            live.left -= 1
            if live.left <= 0:
                self._live.remove(live)


def happens_before_work(effect: Effect) -> bool:
    """True if the request must not reach the broker's own code."""
    match effect:
        case Answer():
            return True
        case Drop(work_done=work_done):
            return not work_done
        case Delay() | BrokenJson() | Without():
            return False
        case _:
            assert_never(effect)
