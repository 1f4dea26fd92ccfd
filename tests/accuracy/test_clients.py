"""Clients in other languages are processes that answer each piece of work; what a handler does with messages."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import pulsar
import pytest

from lab.errors import NotReachedError
from lab.faults.clients.handling import Handler
from lab.faults.clients.helper import HelperProcess
from lab.faults.clients.languages import unavailable
from lab.faults.clients.work import Sending, Taking

if TYPE_CHECKING:
    from pathlib import Path

ANSWERS = """
import json, sys, time
for line in sys.stdin:
    work = json.loads(line)
    if work["topic"] == "fatal":
        sys.exit(1)
    if work["topic"] == "slow":
        time.sleep(0.3)
    print(work["count"], file=sys.stderr, flush=True)
    error = f"{work['do']} of {work['count']} refused" if work["topic"] == "full" else None
    print(json.dumps({"number": work["number"], "error": error}), flush=True)
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A file to which the process writes the count of each piece of work right before it answers."""
    return tmp_path / "log" / "helper.log"


@pytest.fixture
def helper(log: Path) -> HelperProcess:
    """A process that answers, at once or after a while, refuses or ends, by the topic."""
    return HelperProcess([sys.executable, "-c", ANSWERS], log)


def test_work_is_done_once_it_is_answered(helper: HelperProcess, log: Path) -> None:
    """Telling the helper process a piece of work returns after the process has done it, even if that takes a while."""
    with helper:
        helper.do(Sending(topic="slow", count=1))
        assert log.read_text(encoding="utf-8").split() == ["1"]
        helper.do(Sending(topic="slow", count=2))
        assert log.read_text(encoding="utf-8").split() == ["1", "2"]


def test_a_refusal_says_why(helper: HelperProcess) -> None:
    """A refused piece of work raises an error with the reason, and the next piece of work is done."""
    with helper:
        with pytest.raises(NotReachedError, match="Sending of 3 refused"):
            helper.do(Sending(topic="full", count=3))
        helper.do(Sending(topic="t", count=1))


def test_a_process_that_ends_answers_nothing_more(helper: HelperProcess) -> None:
    """Work that waits for a process that ends fails with an error, and so does all later work."""
    with helper:
        for _ in range(2):
            with pytest.raises(NotReachedError, match="ended"):
                helper.do(Sending(topic="fatal", count=1))


def test_a_language_is_missing_where_its_compiler_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert unavailable("python") is None
    assert unavailable("go") == "`go` is not on the PATH"


class Consumer:
    """Delivers numbered messages, and again what was refused, until there are none."""

    def __init__(self, over: threading.Event, count: int) -> None:
        self.acknowledged: list[int] = []
        self.refused: list[int] = []
        self._over = over
        self._waiting = [Message(number) for number in range(count)]

    def receive(self, timeout_millis: int) -> Message:  # noqa: ARG002 - as the real one
        """The next one; the handler's end where there is none."""
        if not self._waiting:
            self._over.set()
            raise pulsar.Timeout
        return self._waiting.pop(0)

    def acknowledge(self, message: Message) -> None:
        """Counted."""
        self.acknowledged.append(message.number)

    def negative_acknowledge(self, message: Message) -> None:
        """Delivered again, up to twice."""
        self.refused.append(message.number)
        if message.redelivery_count() < 2:
            self._waiting.append(Message(message.number, message.redelivery_count() + 1))


class Message:
    """A number."""

    def __init__(self, number: int, deliveries: int = 0) -> None:
        self.number = number
        self._deliveries = deliveries

    def redelivery_count(self) -> int:
        """Number of earlier deliveries of the message."""
        return self._deliveries


TREATED = {
    "each": ([0, 1, 2, 3], []),
    "every-other": ([1, 3], []),
    "never": ([], []),
    "later": ([0, 1, 2, 3], []),
    "negatively": ([], [0, 1, 2, 3] * 3),
    "once-again": ([0, 1, 2, 3], [0, 1, 2, 3]),
}


@pytest.mark.parametrize(("how", "outcome"), TREATED.items(), ids=TREATED)
def test_a_handler_treats_messages_as_it_is_told(how: Any, outcome: tuple[list[int], list[int]]) -> None:
    over = threading.Event()
    consumer = Consumer(over, 4)
    Handler(consumer, Taking(topic="t", acknowledge=how), over).run()
    assert (consumer.acknowledged, consumer.refused) == outcome


def test_a_handler_that_hangs_takes_no_more() -> None:
    over = threading.Event()
    consumer = Consumer(over, 4)
    threading.Timer(0.3, over.set).start()
    Handler(consumer, Taking(topic="t", most=2), over).run()
    assert over.is_set()
    assert consumer.acknowledged == [0, 1]
