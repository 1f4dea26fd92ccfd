"""A client in Python, on threads of this process."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

import pulsar

from lab.errors import NotReachedError
from lab.faults.clients.handling import Handler, subscribed
from lab.faults.clients.publishing import heedless, publish
from lab.faults.clients.work import Crowd, Flowing, Sending, Taking, Transacting, Work

TURN_S = 0.1
"""A steady flow sends ten times a second."""

QUEUED = 5000
KEYS = 64


def quiet_client(service_url: str, token: str | None, **options: Any) -> pulsar.Client:
    """A client that logs nothing: it would tell every retry as an error."""
    authentication = pulsar.AuthenticationToken(token) if token else None
    quiet = pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)
    return pulsar.Client(service_url, authentication=authentication, logger=quiet, **options)


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
        """Does a piece of work; see `lab.faults.clients.work.Clients.do`."""
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
            case Transacting():
                raise NotReachedError("the client for Python knows no transactions; make the fault with that for Java")

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
                    producer.send_async(content, heedless, partition_key=f"key-{number % KEYS}")
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
