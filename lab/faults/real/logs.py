"""Brokers that log more than they should, or did so for a moment, or whose log is written slowly."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.alongside import alongside
from lab.cluster import Lab
from lab.faults.fault import Expected, RealFault
from lab.faults.real.ground import ground
from lab.faults.real.healthy import published_to
from lab.faults.real.operator import Operator
from lab.faults.real.publishing import PERIOD_S, SETTINGS, SHOWN_PERIODS
from lab.model import LogLevel
from lab.waiting import wait_until

TOPICS, RATE = 12, 20
"""Topics on all brokers, and messages a second of each, not batched: each message is several lines at DEBUG."""

OLD_ENOUGH_S = 75.0
"""Age of a broker that is judged: younger ones log much anyway."""

MANY_A_SECOND = 100.0
"""Lines at DEBUG, on average since the start: far more than asking for metrics writes, two hundred each time."""

MOMENT_S = 3.0
SHOWN_WITHIN_S, EVERY_S = 180.0, 5.0

BUSY_RATE = 100
"""Messages a second of each of the topics, where their broker has to write some 3.5 kB at DEBUG for each of them."""

SLOW_BYTES_A_SECOND = 600_000
"""A slow log takes so much: half or so of what a broker logs at DEBUG with 400 messages a second, and all at INFO."""

READ_EVERY_S, CLOSED_WITHIN_S = 0.02, 30.0

LINES, STARTED, PUBLISHED = "log4j2_appender_total", "process_start_time_seconds", "pulsar_broker_rate_in"


class _Logging:
    """One broker's log lines at DEBUG, by its own metrics."""

    def __init__(self, lab: Lab, broker_id: str) -> None:
        self._operator = Operator(lab.broker(broker_id).admin_url, lab.token, cluster=lab.cluster)

    def seen(self) -> tuple[float, float]:
        """Lines at DEBUG since its start, and for how many seconds it has run."""
        rows = self._operator.metrics()
        lines = sum(value for name, value in rows if name.startswith(LINES) and 'level="debug"' in name)
        return lines, time.time() - max(value for name, value in rows if name.startswith(STARTED))

    def published(self) -> float:
        """Messages a second that are published to it."""
        return sum(value for name, value in self._operator.metrics() if name.startswith(PUBLISHED))


@contextlib.contextmanager
def _logging_at(lab: Lab, broker_id: str, level: LogLevel, pipe: Path | None = None) -> Iterator[_Logging]:
    """Has a broker log at this level, and into that pipe, for the length of a block."""
    lab.log_at(broker_id, level, pipe)
    try:
        yield _Logging(lab, broker_id)
    finally:
        lab.log_at(broker_id, "INFO")


def _debugging(lab: Lab) -> contextlib.AbstractContextManager[_Logging]:
    """Has the second broker log at DEBUG for the length of a block."""
    return _logging_at(lab, lab.brokers[1].broker_id, "DEBUG")


@contextlib.contextmanager
def _slow_pipe(path: Path) -> Iterator[Path]:
    """A named pipe that is read slowly, as a disk or a console that is behind: who writes more waits.

    After the block everything is read until nobody writes to it any more, so that no writer is left waiting.
    """
    os.mkfifo(path)
    reader, over = os.open(path, os.O_RDONLY | os.O_NONBLOCK), threading.Event()

    def read(most: int) -> bytes | None:
        """Bytes that wait, so many at most; empty where nobody writes, None where none were written."""
        try:
            return os.read(reader, most)
        except BlockingIOError:
            return None

    def read_slowly() -> None:
        while not over.wait(READ_EVERY_S):
            read(int(SLOW_BYTES_A_SECOND * READ_EVERY_S))
        deadline = time.monotonic() + CLOSED_WITHIN_S
        while read(SLOW_BYTES_A_SECOND) != b"" and time.monotonic() < deadline:
            time.sleep(READ_EVERY_S)

    try:
        with alongside(read_slowly, over):
            yield path
    finally:
        os.close(reader)


@contextlib.contextmanager
def _at_debug(lab: Lab) -> Iterator[None]:
    def many() -> bool:
        lines, age_s = broker.seen()
        return age_s > OLD_ENOUGH_S and lines > MANY_A_SECOND * age_s

    with ground(lab, "broker-at-debug", batched=False) as here, _debugging(lab) as broker:
        published_to(here, TOPICS, RATE)
        wait_until(many, "its lines at DEBUG are many", SHOWN_WITHIN_S, EVERY_S, instead=broker.seen)
        yield


@contextlib.contextmanager
def _into_a_slow_log(lab: Lab, name: str, level: LogLevel) -> Iterator[None]:
    """The broker with most of what is published logs at this level into a slow log."""
    with ground(lab, name, batched=False) as here, _slow_pipe(lab.home / "slow-log") as pipe:
        published_to(here, TOPICS, BUSY_RATE)
        busiest = max(lab.brokers, key=lambda broker: _Logging(lab, broker.broker_id).published())
        with _logging_at(lab, busiest.broker_id, level, pipe) as broker:
            time.sleep(SHOWN_PERIODS * PERIOD_S)  # rates are told of a whole period that is over
            wait_until(lambda: broker.seen()[1] > OLD_ENOUGH_S, "it has run for a while", SHOWN_WITHIN_S, EVERY_S)
            yield


@contextlib.contextmanager
def _at_debug_for_a_moment(lab: Lab) -> Iterator[None]:
    with ground(lab, "broker-at-debug-for-a-moment", batched=False) as here:
        with _debugging(lab) as broker:
            wait_until(lambda: broker.seen()[0] > 0, "it logs at DEBUG", SHOWN_WITHIN_S)
            time.sleep(MOMENT_S)
        published_to(here, TOPICS, RATE)
        wait_until(lambda: broker.seen()[1] > OLD_ENOUGH_S, "it has run for a while", SHOWN_WITHIN_S, EVERY_S)
        yield


def _slow_log(name: str, about: str, level: LogLevel, **label: Any) -> RealFault:
    """The busiest broker logs at this level into a slow log, while twelve topics are published to."""
    return RealFault(
        name=name,
        about=about,
        made=lambda lab: _into_a_slow_log(lab, name, level),
        settings=SETTINGS,
        own_lab=True,
        client="python",
        batched=False,
        **label,
    )


FAULTS = (
    RealFault(
        name="broker-at-debug",
        about="One broker of three logs at DEBUG, as for a search that is over; twelve topics are published to.",
        made=_at_debug,
        own_lab=True,
        client="python",
        batched=False,
        expected=(Expected("logging-debug", "", r"\(broker\) logged .* lines at DEBUG or TRACE"),),
    ),
    RealFault(
        name="broker-at-debug-for-a-moment",
        about="Healthy: one broker of three logged at DEBUG for some seconds, before twelve topics were published to.",
        made=_at_debug_for_a_moment,
        own_lab=True,
        client="python",
        batched=False,
        twin_of=("broker-at-debug",),
    ),
    _slow_log(
        "broker-at-debug-into-a-slow-log",
        "A broker logs at DEBUG more than its log takes: each line waits, and so does whoever publishes.",
        "DEBUG",
        expected=(Expected("logging-debug"), Expected("publish-slow", "", "cause: logging at DEBUG")),
        allowed={
            "bookie-thread-busy": "a broker whose threads wait for its log sees its writes take long",
            "broker-slower-than-peers": "it is, and the cause is named there as well",
        },
    ),
    _slow_log(
        "broker-at-info-into-a-slow-log",
        "Healthy: the same slow log at INFO takes what little is logged, and nobody waits for it.",
        "INFO",
        twin_of=("broker-at-debug-into-a-slow-log",),
    ),
)
