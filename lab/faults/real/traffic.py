"""Messages in and out: as many as a fault needs at once, or a steady flow for the length of a block."""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pulsar

from lab.faults.clients.publishing import publish

__all__ = ["publish", "receive", "steady"]

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
                    producer.send_async(bytes(size), _heedless)
            for consumer in consumers:
                _acknowledge_all(consumer)

    thread = threading.Thread(target=run, name="steady traffic", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _heedless(_result: Any, _message_id: Any) -> None:
    """A producer that is cut off by its quota goes on trying: that is the fault."""


def _acknowledge_all(consumer: pulsar.Consumer) -> None:
    with contextlib.suppress(pulsar.Timeout):
        while True:
            consumer.acknowledge(consumer.receive(timeout_millis=1))
