"""Things that wait for answers."""

from __future__ import annotations

from threading import Event, Lock
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.collect.arrow import interleave

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pulsar_steward.collect.arrow import Task

WITHIN_S = 30.0


def waiting(*calls: Callable[[], str]) -> Task[str]:
    """Makes these calls one after the other, and tells what they returned."""
    told = []
    for call in calls:
        answer: str = yield call
        told.append(answer)
    return told


def test_one_that_waits_long_holds_up_no_other() -> None:
    """A task that waits for a long time does not delay the other tasks."""
    others_ended = Event()

    def slow() -> str:
        assert others_ended.wait(WITHIN_S), "it held the others up"
        return "slow"

    ended = []
    for each in interleave([waiting(slow), *(waiting(lambda: "quick", lambda: "again") for _ in range(20))], 2):
        ended.append(each)
        if len(ended) == 40:
            others_ended.set()

    assert ended == ["quick", "again"] * 20 + ["slow"]


def test_few_are_begun_at_a_time() -> None:
    """The number of tasks that have begun and not yet ended never exceeds the limit."""
    begun, most, lock = 0, 0, Lock()

    def one() -> Task[str]:
        nonlocal begun, most
        begun += 1
        most = max(most, begun)
        yield lock.locked
        yield lock.locked
        begun -= 1
        return ["ended"]

    assert len(list(interleave((one() for _ in range(30)), 3))) == 30
    assert most == 3


def test_what_a_call_raises_is_raised_where_it_was_asked_for() -> None:
    """A call's error is raised in the task that requested it, and in the caller if the task does not handle it."""

    def fails() -> str:
        raise OSError("nobody there")

    def careful() -> Task[str]:
        try:
            yield fails
        except OSError as error:
            return [str(error)]
        return []

    assert sorted(interleave([careful(), waiting(lambda: "fine")], 1)) == ["fine", "nobody there"]
    with pytest.raises(OSError, match="nobody there"):
        list(interleave([waiting(fails)], 1))


def test_nothing_to_wait_for_is_nothing() -> None:
    """Interleaving no tasks returns no results."""
    nothing: Iterator[Task[str]] = iter(())
    assert list(interleave(nothing, 4)) == []
