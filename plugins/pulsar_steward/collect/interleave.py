"""Tasks that wait for responses, a few at a time in parallel: a slow one delays no other."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")

Task = Generator[Callable[[], Any], Any, Iterable[T]]
"""Generator that yields calls to run in the background, and returns the task's results.

It receives the return value of each call, or the call's exception.
"""


def interleave(things: Iterable[Task[T]], at_once: int) -> Iterator[T]:
    """Yields the results of all tasks, in the order in which they end.

    Calls run on threads; between its calls, each task runs on the calling thread, one at a time.

    Args:
        things: The tasks; each is started when a place is free.
        at_once: Maximum number of tasks under way.
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
    """Returns the task's next call; raises `StopIteration` when it has ended."""
    error = call.exception()
    return thing.send(call.result()) if error is None else thing.throw(error)
