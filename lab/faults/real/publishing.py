"""Publishing that is slow on real brokers: what they write to, or agree by, stops and goes on all the time."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from lab.alongside import alongside
from lab.cluster import Lab
from lab.faults.fault import Expected, RealFault
from lab.faults.real.ground import ground
from lab.faults.real.healthy import published_to

TOPICS, RATE = 12, 60
"""Topics on all brokers, and messages a second of each, not batched: enough of them for a single look."""

PERIOD_S = 10
STOPPED_S, GOING_S = 3.0, 3.0
"""Of a period of ledgers' statistics half is stood still, in stalls that no session and no client gives up for."""

AT_ONCE = 60
"""Full collections of a broker one right after the other; each takes a tenth of a second."""

SHOWN_PERIODS = 3
JUDGED_PERIODS = 7
"""Until a broker is old enough for its collections to be judged."""
SETTINGS = (("managedLedgerStatsPeriodSeconds", str(PERIOD_S)),)


def _switching(entries: int) -> tuple[tuple[str, str], ...]:
    """Ledgers of so many entries of a topic, at most: only who switches waits for the metadata store."""
    most = ("managedLedgerMaxEntriesPerLedger", str(entries))
    return (*SETTINGS, most, ("managedLedgerMinLedgerRolloverTimeMinutes", "0"))


Trouble = Callable[[Lab, threading.Event], None]
"""Troubles a lab until it is over, and then no longer."""


def _stop_and_go(stop: Callable[[Lab], None], go: Callable[[Lab], None]) -> Trouble:
    """The bookies, or ZooKeeper, stop and go on, again and again."""

    def trouble(lab: Lab, over: threading.Event) -> None:
        while not over.is_set():
            stop(lab)
            over.wait(STOPPED_S)
            go(lab)
            over.wait(GOING_S)

    return trouble


def _collecting(lab: Lab, over: threading.Event) -> None:
    """The first broker collects its whole heap, one time right after the other."""
    while not over.is_set():
        lab.collect_heap(lab.brokers[0].broker_id, AT_ONCE)


@contextlib.contextmanager
def _troubled(lab: Lab, trouble: Trouble) -> Iterator[None]:
    over = threading.Event()

    def troubled() -> None:
        trouble(lab, over)

    with alongside(troubled, over):
        yield


def _fault(
    name: str, about: str, trouble: Trouble | None = None, periods: int = SHOWN_PERIODS, **label: Any
) -> RealFault:
    """Topics on all brokers that are published to for so many periods, with trouble all the while, or without."""

    @contextlib.contextmanager
    def making(lab: Lab) -> Iterator[None]:
        with ground(lab, name, batched=False) as here, contextlib.ExitStack() as stack:
            published_to(here, TOPICS, RATE)
            if trouble is not None:
                stack.enter_context(_troubled(lab, trouble))
            time.sleep(periods * PERIOD_S)  # rates are told of a whole period that is over
            yield

    return RealFault(name=name, about=about, made=making, own_lab=True, client="python", batched=False, **label)


FAULTS = (
    _fault(
        "bookie-stops-and-goes",
        "The only bookie stands still for three seconds of six: nothing that is published is written meanwhile.",
        _stop_and_go(Lab.pause_bookies, Lab.resume_bookies),
        expected=(Expected("bookie-thread-busy"), Expected("publish-slow", "", "cause: bookies")),
        settings=SETTINGS,
    ),
    _fault(
        "zookeeper-stops-and-goes",
        "ZooKeeper stands still for three seconds of six, with ledgers that are switched every second.",
        _stop_and_go(Lab.pause_zookeeper, Lab.resume_zookeeper),
        expected=(Expected("metadata-latency"), Expected("publish-slow", "", "cause: the metadata store")),
        allowed={"ledger-switch-slow": "switches wait for it too, and may be seen to be slow"},
        # Also at a third of the rate, on a busy machine, every topic switches in every stall.
        settings=_switching(50),
    ),
    _fault(
        "broker-collects-again-and-again",
        "A broker collects its whole heap again and again, as one does that is too small for what is in it.",
        _collecting,
        JUDGED_PERIODS,
        expected=(Expected("gc-pressure"), Expected("publish-slow", "", "cause: garbage collection")),
        allowed={
            "bookie-thread-busy": "a broker that stands still sees its writes take long",
            "broker-slower-than-peers": "it is, and the cause is named there as well",
        },
        settings=SETTINGS,
    ),
    _fault(
        "ledgers-of-a-few-seconds",
        "Healthy: twelve topics are published to, and switch their ledgers every few seconds.",
        settings=_switching(200),
        twin_of=("bookie-stops-and-goes", "zookeeper-stops-and-goes", "broker-collects-again-and-again"),
    ),
)
