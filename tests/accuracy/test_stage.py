"""Faults are made, changed and cleared away side by side, and one that fails does not take others with it."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, cast

from benchmarks.accuracy.stage import Stage
from lab.errors import NotReachedError
from lab.faults.fault import Change, RealFault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.cluster import Lab

LAB = cast("Lab", None)
PATIENCE_S = 10.0


def fault(name: str, made: Callable[[Lab], contextlib.AbstractContextManager[Change | None]]) -> RealFault:
    """A fault that is made like that."""
    return RealFault(name=name, about="A fault.", made=made)


def test_all_are_made_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=PATIENCE_S)

    @contextlib.contextmanager
    def made(_lab: Lab) -> Iterator[None]:
        both.wait()
        yield

    stage = Stage([fault("a", made), fault("b", made)], LAB)
    stage.make()
    assert [actor.failure for actor in stage.actors] == [None, None]
    assert stage.clear() == []


def test_a_single_one_is_made_in_the_calling_thread() -> None:
    threads = []

    @contextlib.contextmanager
    def made(_lab: Lab) -> Iterator[None]:
        threads.append(threading.current_thread())
        yield

    Stage([fault("a", made)], LAB).make()
    assert threads == [threading.current_thread()]


def test_one_that_fails_is_told_and_the_others_stay() -> None:
    left = []

    @contextlib.contextmanager
    def in_vain(_lab: Lab) -> Iterator[None]:
        raise NotReachedError("in vain")
        yield

    @contextlib.contextmanager
    def made(_lab: Lab) -> Iterator[None]:
        yield
        left.append("cleared")

    stage = Stage([fault("a", in_vain), fault("b", made)], LAB)
    stage.make()
    assert [actor.failure for actor in stage.actors] == ["NotReachedError: in vain", None]
    assert (stage.clear(), left) == ([], ["cleared"])


def test_what_changes_is_told_how_many_looks_there_were() -> None:
    seen: list[int] = []

    @contextlib.contextmanager
    def changing(_lab: Lab) -> Iterator[Change]:
        yield seen.append

    @contextlib.contextmanager
    def still(_lab: Lab) -> Iterator[None]:
        yield

    stage = Stage([fault("a", changing), fault("b", still)], LAB)
    stage.make()
    for observed in range(3):
        stage.change(observed)
    assert seen == [0, 1, 2]


def test_one_that_cannot_change_has_failed() -> None:
    def in_vain(_observed: int) -> None:
        raise NotReachedError("it did not grow")

    @contextlib.contextmanager
    def changing(_lab: Lab) -> Iterator[Change]:
        yield in_vain

    stage = Stage([fault("a", changing)], LAB)
    stage.make()
    stage.change(0)
    assert stage.actors[0].failure == "NotReachedError: it did not grow"


def test_what_cannot_be_cleared_away_is_told() -> None:
    @contextlib.contextmanager
    def staying(_lab: Lab) -> Iterator[None]:
        yield
        raise NotReachedError("it stays")

    stage = Stage([fault("a", staying)], LAB)
    stage.make()
    assert stage.clear() == ["a could not be cleared away: it stays"]
    assert stage.actors[0].failure is None
