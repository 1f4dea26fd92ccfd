"""A client in Python, on threads of this process."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

import pulsar

from lab.errors import NotReachedError
from lab.faults.clients.work import Crowd, Flowing, Sending, Taking, Work

BUSY = threading.Semaphore(3)
"""How many threads send or take as fast as they can at one time: more only wait for each other on two cores."""

SEND_WITHIN_S = 120.0
TURN_S = 0.1
"""A steady flow sends ten times a second."""
RECEIVE_MS = 200
QUEUED = 5000
KEYS = 64
KINDS = {
    "Exclusive": pulsar.ConsumerType.Exclusive,
    "Shared": pulsar.ConsumerType.Shared,
    "Failover": pulsar.ConsumerType.Failover,
    "Key_Shared": pulsar.ConsumerType.KeyShared,
}


def quiet_client(service_url: str, token: str | None, **options: Any) -> pulsar.Client:
    """A client that logs nothing: it would tell every retry as an error."""
    authentication = pulsar.AuthenticationToken(token) if token else None
    quiet = pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)
    return pulsar.Client(service_url, authentication=authentication, logger=quiet, **options)


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
        """One message was taken or refused."""
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


class PythonClients:
    """One client, and a thread for each consumer and each flow; a `lab.faults.clients.work.Clients`.

    Args:
        service_url: ``pulsar://host:port,...``.
        token: A superuser's, or None.
    """

    def __init__(self, service_url: str, token: str | None) -> None:
        self._service_url = service_url
        self._token = token
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._client = quiet_client(self._service_url, self._token)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        with contextlib.suppress(Exception):  # the client raises bare errors of what a quota cut off; all of it goes
            self._client.close()

    def do(self, work: Work) -> None:
        """As `lab.faults.clients.work.Clients.do`."""
        match work:
            case Sending():
                self._send(work)
            case Flowing():
                producer = self._producer(work.topic, work.batched)
                self._begin(lambda: self._flow(producer, work))
            case Taking(lives_s=0):
                consumer = subscribed(self._client, work)
                self._begin(lambda: self._take(consumer, work))
            case Taking():
                self._begin(lambda: self._crash_again_and_again(work))
            case Crowd():
                for _ in range(work.producers):
                    self._client.create_producer(work.topic)
                for _ in range(work.consumers):
                    subscribed(self._client, Taking(topic=work.topic, queue=1))

    def _begin(self, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run, name="client of a fault", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _producer(self, topic: str, batched: bool | None, **options: Any) -> pulsar.Producer:
        batching = {} if batched is None else {"batching_enabled": batched}
        return self._client.create_producer(
            topic, block_if_queue_full=True, max_pending_messages=QUEUED, **batching, **options
        )

    def _send(self, work: Sending) -> None:
        options = {} if work.batch_messages is None else {"batching_max_messages": work.batch_messages}
        producer = self._producer(work.topic, work.batched, **options)

        def later(number: int) -> timedelta:
            return timedelta(seconds=work.delay_s + number)

        publish(producer, work.count, work.size, later if work.delay_s else None, KEYS)

    def _flow(self, producer: pulsar.Producer, work: Flowing) -> None:
        content, sent, began = bytes(work.size), 0, time.monotonic()
        while not self._over.wait(TURN_S):
            due = int((time.monotonic() - began) * work.rate)
            for number in range(sent, due):
                with contextlib.suppress(Exception):  # cut off by a quota it goes on trying: that is the fault
                    producer.send_async(content, _heedless, partition_key=f"key-{number % KEYS}")
            sent = due

    def _take(self, consumer: pulsar.Consumer, work: Taking) -> None:
        handler = Handler(consumer, work, self._over)
        with contextlib.suppress(Exception):  # its namespace is deleted before the client knows
            handler.run()

    def _crash_again_and_again(self, work: Taking) -> None:
        while not self._over.is_set():
            with contextlib.suppress(Exception):
                client = quiet_client(self._service_url, self._token)
                try:
                    Handler(subscribed(client, work), work, self._over, time.monotonic() + work.lives_s).run()
                finally:
                    client.close()


class Handler:
    """What an application does with messages; see `Taking`.

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
        """Until it is over."""
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


def _heedless(_result: Any, _message_id: Any) -> None:
    """A producer that is cut off by its quota goes on trying: that is the fault."""
