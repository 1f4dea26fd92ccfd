"""Handlers of messages, as an application in Python has them."""

import contextlib
import threading
import time
from collections.abc import Iterator

import pulsar

from lab.faults.clients.work import Taking

RECEIVE_MS = 200
KINDS = {
    "Exclusive": pulsar.ConsumerType.Exclusive,
    "Shared": pulsar.ConsumerType.Shared,
    "Failover": pulsar.ConsumerType.Failover,
    "Key_Shared": pulsar.ConsumerType.KeyShared,
}


class Handler:
    """Handler of messages; see `Taking` for what it does with them.

    Args:
        consumer: Of the subscription.
        work: How messages are treated.
        over: Set when it is to end.
        until: By the monotonic clock, when it ends in any case; None: never.
    """

    def __init__(
        self, consumer: pulsar.Consumer, work: Taking, over: threading.Event, until: float | None = None
    ) -> None:
        self._consumer = consumer
        self._work = work
        self._over = over
        self._until = until
        self._taken: list[pulsar.Message] = []
        self._acknowledged_at = time.monotonic()

    def run(self) -> None:
        """Handles messages until it is ended."""
        for number, message in enumerate(self._messages()):
            self._treat(number, message)
            if self._work.pause_s:
                self._over.wait(self._work.pause_s)

    def _messages(self) -> Iterator[pulsar.Message]:
        count = 0
        while not self._ended():
            if self._work.most is not None and count >= self._work.most:
                self._over.wait(RECEIVE_MS / 1000)
                continue
            self._acknowledge_what_is_due()
            with contextlib.suppress(pulsar.Timeout):
                message = self._consumer.receive(timeout_millis=RECEIVE_MS)
                count += 1
                yield message

    def _ended(self) -> bool:
        return self._over.is_set() or (self._until is not None and time.monotonic() > self._until)

    def _treat(self, number: int, message: pulsar.Message) -> None:
        match self._work.acknowledge:
            case "each":
                self._consumer.acknowledge(message)
            case "every-other" if number % 2:
                self._consumer.acknowledge(message)
            case "later":
                self._taken.append(message)
            case "negatively":
                self._consumer.negative_acknowledge(message)
            case "once-again" if message.redelivery_count():
                self._consumer.acknowledge(message)
            case "once-again":
                self._consumer.negative_acknowledge(message)
            case _:
                pass

    def _acknowledge_what_is_due(self) -> None:
        if self._taken and time.monotonic() - self._acknowledged_at >= self._work.every_s:
            for message in self._taken:
                self._consumer.acknowledge(message)
            self._taken.clear()
            self._acknowledged_at = time.monotonic()


def subscribed(client: pulsar.Client, work: Taking) -> pulsar.Consumer:
    """A consumer as its work wants it."""
    queue = {} if work.queue is None else {"receiver_queue_size": work.queue}
    return client.subscribe(
        work.topic,
        work.subscription,
        consumer_type=KINDS[work.kind],
        initial_position=pulsar.InitialPosition.Earliest,
        negative_ack_redelivery_delay_ms=int(1000 * work.redelivery_s),
        **queue,
    )
