"""Replication between two real clusters behind one configuration store: what links them is cut, or holds."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from lab.cluster import Lab
from lab.faults.fault import Change, Expected, RealFault
from lab.faults.real.ground import COMMON_SETTINGS, Ground, ground
from lab.faults.real.growth import LOOKS, apart
from lab.faults.real.healthy import well_kept
from lab.faults.real.operator import recently_shown
from lab.waiting import wait_until

WEST = "west"
TOPICS, RATE = 3, 50
"""Topics that are replicated, and messages a second of each."""

REPLICATED_WITHIN_S = 90.0
A_MINUTE: dict[str, object] = {"replication_stopped": {"warning_minutes": 1}}
SOONER = "The ten minutes over which it has to stand still are lowered to one, as a benchmark cannot wait for them."

CUT_BEFORE, MENDED_BEFORE = 1, 3
"""Looks that are done when the other cluster ends, and when it is there again."""

Linked = Callable[[Ground, Lab], Change]
"""Makes the change of the link, from a namespace that is replicated and the other cluster."""


def _replication(here: Ground) -> list[dict[str, Any]]:
    """Replication of this namespace's topics to the other cluster, as brokers tell it."""
    shown = recently_shown(here.lab)
    return [
        shown[topic]["replication"][WEST]
        for topic in map(here.topic, _names())
        if WEST in shown.get(topic, {}).get("replication", {})
    ]


def _names() -> list[str]:
    return [f"t{number}" for number in range(TOPICS)]


def _flowing(here: Ground) -> None:
    well_kept(here)
    for topic in map(here.topic, _names()):
        here.take(topic)
        here.flow(topic, RATE)
    _until(here, lambda each: each["connected"] and each["msgRateOut"] > 0, "every topic sends to the other cluster")


def _until(here: Ground, shows: Callable[[dict[str, Any]], bool], what: str) -> None:
    def reached() -> bool:
        told = _replication(here)
        return len(told) == TOPICS and all(map(shows, told))

    wait_until(reached, what, REPLICATED_WITHIN_S, 0.5, instead=lambda: _replication(here))


def _holds(_here: Ground, _west: Lab) -> Change:
    return lambda _observed: None


def _cut(here: Ground, west: Lab) -> Change:
    def change(observed: int) -> None:
        if observed == CUT_BEFORE:
            west.kill_broker(west.brokers[0].broker_id)
            _until(here, lambda each: not each["connected"] and each["replicationBacklog"] > 0, "nothing is sent")

    return change


def _mended(here: Ground, west: Lab) -> Change:
    cut = _cut(here, west)

    def change(observed: int) -> None:
        cut(observed)
        if observed == MENDED_BEFORE:
            west.start_broker(west.brokers[0].broker_id)
            _until(here, lambda each: each["connected"] and each["replicationBacklog"] < RATE, "what waited is sent")

    return change


def _fault(name: str, about: str, linked: Linked, **label: Any) -> RealFault:
    """Topics that are replicated to a second cluster of one broker."""

    @contextlib.contextmanager
    def making(lab: Lab) -> Iterator[Change]:
        west = lab.second_cluster(WEST, brokers=1, broker_settings=dict(COMMON_SETTINGS))
        with west as there, ground(lab, name, replication_clusters=[lab.cluster, WEST]) as here:
            _flowing(here)
            change, wait = linked(here, there), apart()

            def before(observed: int) -> None:
                change(observed)
                wait(observed)

            try:
                yield before
            finally:
                here.admin.set_policy(here.namespace, "replication", [lab.cluster])

    return RealFault(
        name=name, about=about, made=making, own_lab=True, client="python", observations=LOOKS, policy=A_MINUTE, **label
    )


FAULTS = (
    _fault(
        "replication-cut",
        f"The other cluster ends while three topics are replicated to it: what is published waits. {SOONER}",
        _cut,
        expected=(Expected("replication-stopped", r"^public/replication-cut to west$"),),
    ),
    _fault(
        "replication-holds",
        f"Healthy: three topics are replicated to another cluster as they are published to. {SOONER}",
        _holds,
        twin_of=("replication-cut",),
    ),
    _fault(
        "replication-mended",
        f"Healthy again: the other cluster was gone for a while, and has got all that waited for it. {SOONER}",
        _mended,
        twin_of=("replication-cut",),
    ),
)
