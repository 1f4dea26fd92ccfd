"""Things that wait for answers, a few at a time side by side: one that waits long holds up no other."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")

Task = Generator[Callable[[], Any], Any, Iterable[T]]
"""Yields what is to be called while others go on, is sent what that returned or thrown what it raised, and returns what
it made of it all."""


def side_by_side(things: Iterable[Task[T]], at_once: int) -> Iterator[T]:
    """What all of them made, in the order in which they ended.

    Calls are made by threads; between its calls, each thing is carried on by this thread, one at a time.

    Args:
        things: Begun when it is their turn.
        at_once: How many are begun and not ended, at most.
    """
    to_come = iter(things)
    calls: dict[Future[Any], Task[T]] = {}
    with ThreadPoolExecutor(at_once) as pool:
        while True:
            for thing in islice(to_come, at_once - len(calls)):
                calls[pool.submit(next(thing))] = thing
            if not calls:
                return
            for call in wait(calls, return_when=FIRST_COMPLETED).done:
                thing = calls.pop(call)
                try:
                    calls[pool.submit(_carried_on(thing, call))] = thing
                except StopIteration as ended:
                    yield from ended.value


def _carried_on(thing: Task[T], call: Future[Any]) -> Callable[[], Any]:
    """The thing's next call; `StopIteration` when it has ended."""
    error = call.exception()
    return thing.send(call.result()) if error is None else thing.throw(error)
