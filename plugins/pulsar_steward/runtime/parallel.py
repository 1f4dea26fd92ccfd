"""Mapping of one function over many items in parallel: on threads here, in Spark's tasks in `steward_spark`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
R = TypeVar("R")


class MapOver(Protocol):
    """Maps a function over some items in parallel, and returns the results in the items' order.

    Where this runs in other processes, function, items and results are pickled. The function may contain a secret; an
    item must not.
    """

    def __call__(self, function: Callable[[T], R], things: Sequence[T], what: str = "shards") -> list[R]:
        """Maps the function; `what` is a word for the items, shown in progress messages."""


def on_this_thread(function: Callable[[T], R], things: Sequence[T], what: str = "shards") -> list[R]:  # noqa: ARG001 - nobody watches
    """Maps the function over one item after the other, on the calling thread."""
    return [function(thing) for thing in things]


@dataclass(frozen=True)
class OnThreads:
    """Maps over this many items at a time, on threads of this process."""

    threads: int

    def __call__(self, function: Callable[[T], R], things: Sequence[T], what: str = "shards") -> list[R]:  # noqa: ARG002 - as above
        """Maps the function; the first error ends it."""
        pool = ThreadPoolExecutor(self.threads)
        try:
            return list(pool.map(function, things))
        finally:
            # An interrupt does not wait for calls in progress: a broker may take minutes to respond.
            pool.shutdown(wait=False, cancel_futures=True)
