"""Brokers that log more than they should, or did so for a moment."""

import contextlib
import time
from collections.abc import Iterator

from lab.cluster import Lab
from lab.faults.fault import Expected, Making, RealFault
from lab.faults.real.ground import ground
from lab.faults.real.healthy import published_to
from lab.faults.real.operator import Operator
from lab.waiting import wait_until

TOPICS, RATE = 12, 20
"""Topics on all brokers, and messages a second of each, not batched: each message is several lines at DEBUG."""

OLD_ENOUGH_S = 75.0
"""Age of a broker that is judged: younger ones log much anyway."""

MANY_A_SECOND = 100.0
"""Lines at DEBUG, on average since the start: far more than asking for metrics writes, two hundred each time."""

MOMENT_S = 3.0
SHOWN_WITHIN_S, EVERY_S = 180.0, 5.0

LINES, STARTED = "log4j2_appender_total", "process_start_time_seconds"


class _Logging:
    """One broker's log lines at DEBUG, by its own metrics."""

    def __init__(self, lab: Lab, broker_id: str) -> None:
        self._operator = Operator(lab.broker(broker_id).admin_url, lab.token, cluster=lab.cluster)

    def seen(self) -> tuple[float, float]:
        """Lines at DEBUG since its start, and for how many seconds it has run."""
        rows = self._operator.metrics()
        lines = sum(value for name, value in rows if name.startswith(LINES) and 'level="debug"' in name)
        return lines, time.time() - max(value for name, value in rows if name.startswith(STARTED))


@contextlib.contextmanager
def _debugging(lab: Lab) -> Iterator[_Logging]:
    """Has the second broker log at DEBUG for the length of a block."""
    broker_id = lab.brokers[1].broker_id
    lab.log_at(broker_id, "DEBUG")
    try:
        yield _Logging(lab, broker_id)
    finally:
        lab.log_at(broker_id, "INFO")


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
def _at_debug_for_a_moment(lab: Lab) -> Iterator[None]:
    with ground(lab, "broker-at-debug-for-a-moment", batched=False) as here:
        with _debugging(lab) as broker:
            wait_until(lambda: broker.seen()[0] > 0, "it logs at DEBUG", SHOWN_WITHIN_S)
            time.sleep(MOMENT_S)
        published_to(here, TOPICS, RATE)
        wait_until(lambda: broker.seen()[1] > OLD_ENOUGH_S, "it has run for a while", SHOWN_WITHIN_S, EVERY_S)
        yield


def _made_at_debug(lab: Lab) -> Making:
    return _at_debug(lab)


def _made_at_debug_for_a_moment(lab: Lab) -> Making:
    return _at_debug_for_a_moment(lab)


FAULTS = (
    RealFault(
        name="broker-at-debug",
        about="One broker of three logs at DEBUG, as for a search that is over; twelve topics are published to.",
        made=_made_at_debug,
        own_lab=True,
        client="python",
        batched=False,
        expected=(Expected("logging-debug", "", r"\(broker\) logged .* lines at DEBUG or TRACE"),),
    ),
    RealFault(
        name="broker-at-debug-for-a-moment",
        about="Healthy: one broker of three logged at DEBUG for some seconds, before twelve topics were published to.",
        made=_made_at_debug_for_a_moment,
        own_lab=True,
        client="python",
        batched=False,
        twin_of=("broker-at-debug",),
    ),
)
