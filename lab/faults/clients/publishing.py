"""Messages sent as fast as they go, each acknowledged by the broker, or in a steady flow for the length of a block."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import pulsar

from lab.alongside import alongside
from lab.errors import NotReachedError

BUSY = threading.Semaphore(3)
"""How many threads send as fast as they can at one time: more only wait for each other on two cores."""

SEND_WITHIN_S = 120.0


def publish(
    producer: pulsar.Producer,
    count: int,
    size: int = 100,
    delay: Callable[[int], timedelta] | None = None,
    keys: int = 0,
) -> None:
    """Sends so many messages of so many bytes, and returns once the broker has all of them.

    Args:
        producer: Sends them.
        count: Of messages.
        size: Of each, in bytes.
        delay: Of the message of that number; None: none is delayed.
        keys: As many keys as messages have in turn; 0: they have none.

    Raises:
        NotReachedError: Not all were taken.
    """
    receipt = _Receipt(count)
    content = bytes(size)
    with BUSY:
        for number in range(count):
            more: dict[str, Any] = {} if delay is None else {"deliver_after": delay(number)}
            if keys:
                more["partition_key"] = f"key-{number % keys}"
            producer.send_async(content, receipt.taken, **more)
        producer.flush()
    receipt.require_all(producer.topic())


class _Receipt:
    """Counts what the broker said of single messages; the client calls it from a thread of its own."""

    def __init__(self, count: int) -> None:
        self._open = count
        self._refused: list[str] = []
        self._done = threading.Event()

    def taken(self, result: Any, _message_id: Any) -> None:
        """Callback for a message that was accepted or refused."""
        if result != pulsar.Result.Ok:
            self._refused.append(str(result))
        self._open -= 1
        if not self._open:
            self._done.set()

    def require_all(self, topic: str) -> None:
        """Waits for the last answer."""
        if not self._done.wait(SEND_WITHIN_S):
            raise NotReachedError(
                f"{topic}: {self._open:,} messages were not acknowledged within {SEND_WITHIN_S:.0f} s"
            )
        if self._refused:
            raise NotReachedError(
                f"{topic}: {len(self._refused):,} messages were refused, the first with {self._refused[0]}"
            )


RECEIVE_WITHIN_MS = 20_000
TURN_S = 0.1
"""A steady flow sends and takes ten times a second."""


def receive(consumer: pulsar.Consumer, count: int) -> Iterator[pulsar.Message]:
    """Takes so many messages; raises the client's time-out where they do not come."""
    for _ in range(count):
        yield consumer.receive(timeout_millis=RECEIVE_WITHIN_MS)


@contextlib.contextmanager
def steady(
    producers: Sequence[pulsar.Producer], consumers: Sequence[pulsar.Consumer] = (), *, rate: int = 50, size: int = 100
) -> Iterator[None]:
    """Producers send ``rate`` messages a second each and consumers acknowledge what comes, until the block ends."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(TURN_S):
            for producer in producers:
                for _ in range(max(1, int(rate * TURN_S))):
                    producer.send_async(bytes(size), heedless)
            for consumer in consumers:
                _acknowledge_all(consumer)

    with alongside(run, over):
        yield


def heedless(_result: Any, _message_id: Any) -> None:
    """A producer that is cut off by its quota goes on trying: that is the fault."""


def _acknowledge_all(consumer: pulsar.Consumer) -> None:
    with contextlib.suppress(pulsar.Timeout):
        while True:
            consumer.acknowledge(consumer.receive(timeout_millis=1))
