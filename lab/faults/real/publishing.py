"""Publishing that is slow on real brokers: what they write to, or agree by, stops and goes on all the time."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from lab.cluster import Lab
from lab.faults.fault import Expected, Making, RealFault
from lab.faults.real.ground import ground
from lab.faults.real.healthy import published_to

TOPICS, RATE = 12, 60
"""Topics on all brokers, and messages a second of each, not batched: enough of them for a single look."""

PERIOD_S = 10
STOPPED_S, GOING_S = 3.0, 3.0
"""Of a period of ledgers' statistics half is stood still, in stalls that no session and no client gives up for."""

SHOWN_PERIODS = 3
SETTINGS = (("managedLedgerStatsPeriodSeconds", str(PERIOD_S)),)
SWITCHING = (
    *SETTINGS,
    ("managedLedgerMaxEntriesPerLedger", "200"),
    ("managedLedgerMinLedgerRolloverTimeMinutes", "0"),
)
"""Ledgers of a few seconds: only who switches waits for the metadata store."""


@contextlib.contextmanager
def _stop_and_go(stop: Callable[[], None], go: Callable[[], None]) -> Iterator[None]:
    """Stops something and lets it go on, again and again, until the block ends; it goes on then."""
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            stop()
            over.wait(STOPPED_S)
            go()
            over.wait(GOING_S)

    thread = threading.Thread(target=run, name="stop and go")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


Parts = Callable[[Lab], tuple[Callable[[], None], Callable[[], None]]]
"""Calls that stop something of a lab, and let it go on."""


def _fault(name: str, about: str, stopped: Parts | None = None, **label: Any) -> RealFault:
    """Topics on all brokers that are published to, with something that stops and goes, or without."""

    @contextlib.contextmanager
    def making(lab: Lab) -> Iterator[None]:
        with ground(lab, name, batched=False) as here, contextlib.ExitStack() as stack:
            published_to(here, TOPICS, RATE)
            if stopped is not None:
                stack.enter_context(_stop_and_go(*stopped(lab)))
            time.sleep(SHOWN_PERIODS * PERIOD_S)  # rates are told of a whole period that is over
            yield

    def made(lab: Lab) -> Making:
        return making(lab)

    return RealFault(name=name, about=about, made=made, own_lab=True, client="python", batched=False, **label)


FAULTS = (
    _fault(
        "bookie-stops-and-goes",
        "The only bookie stands still for three seconds of six: nothing that is published is written meanwhile.",
        lambda lab: (lab.pause_bookies, lab.resume_bookies),
        expected=(Expected("bookie-thread-busy"), Expected("publish-slow", "", "cause: bookies")),
        settings=SETTINGS,
    ),
    _fault(
        "zookeeper-stops-and-goes",
        "ZooKeeper stands still for three seconds of six, with ledgers that are switched every few seconds.",
        lambda lab: (lab.pause_zookeeper, lab.resume_zookeeper),
        expected=(Expected("metadata-latency"), Expected("publish-slow", "", "cause: the metadata store")),
        allowed={"ledger-switch-slow": "switches wait for it too, and may be seen to be slow"},
        settings=SWITCHING,
    ),
    _fault(
        "ledgers-of-a-few-seconds",
        "Healthy: twelve topics are published to, and switch their ledgers every few seconds.",
        settings=SWITCHING,
        twin_of=("bookie-stops-and-goes", "zookeeper-stops-and-goes"),
    ),
)
