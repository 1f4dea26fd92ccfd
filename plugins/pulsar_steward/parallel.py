"""Carrying one function out on many things side by side: by threads here, by Spark's tasks in `steward_spark`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
R = TypeVar("R")


class MapOver(Protocol):
    """Carries a function out on each of some things, and gives back what it returned, in their order.

    Where that is done in other processes, function, things and results are pickled. The function may hold a secret; a
    thing must not.
    """

    def __call__(self, function: Callable[[T], R], things: Sequence[T], what: str = "shards") -> list[R]:
        """Carries it out; `what` says in a word what the things are, for whoever watches."""


def on_this_thread(function: Callable[[T], R], things: Sequence[T], what: str = "shards") -> list[R]:  # noqa: ARG001 - nobody watches
    """One after the other."""
    return [function(thing) for thing in things]


@dataclass(frozen=True)
class OnThreads:
    """So many at a time, on threads of this process."""

    threads: int

    def __call__(self, function: Callable[[T], R], things: Sequence[T], what: str = "shards") -> list[R]:  # noqa: ARG002 - as above
        """Carries it out; the first error ends it."""
        pool = ThreadPoolExecutor(self.threads)
        try:
            return list(pool.map(function, things))
        finally:
            # Whoever is interrupted does not wait for what is under way: a broker may take minutes to answer.
            pool.shutdown(wait=False, cancel_futures=True)
