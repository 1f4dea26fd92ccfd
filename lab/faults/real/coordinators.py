"""Transaction coordinators where they should not be."""

import contextlib
from collections.abc import Iterator

from lab import placement
from lab.admin import Admin
from lab.cluster import Lab
from lab.faults.fault import Expected, RealFault
from lab.faults.real.operator import operator_of
from lab.placement import SYSTEM_NAMESPACE
from lab.waiting import wait_until

SPREAD_WITHIN_S = 60.0
EVERY_S = 1.0
EVEN_ENOUGH = 2


@contextlib.contextmanager
def _piled_up(lab: Lab) -> Iterator[None]:
    try:
        lab.pile_up_tcs()
        yield
    finally:
        spread(lab)


@contextlib.contextmanager
def _restarted(lab: Lab) -> Iterator[None]:
    """The others take what a restarting broker had, and it gets nothing back."""
    admin = operator_of(lab)
    _load_all(admin)
    last = lab.brokers[-1].broker_id
    try:
        lab.stop_broker(last)
        _load_all(admin)
        lab.start_broker(last)
        wait_until(lambda: lab.tc_placement().get(last) == 0, f"{last} is back without coordinators", SPREAD_WITHIN_S)
        yield
    finally:
        spread(lab)


def spread(lab: Lab) -> None:
    """Gives each broker as many coordinators as the others, as far as their bundles allow.

    A bundle may land on another broker than named, where somebody looks it up first: then it is moved once more.
    """

    def even() -> bool:
        if _even(lab):
            return True
        _hand_out(lab)
        return _even(lab)

    wait_until(even, "coordinators are spread", SPREAD_WITHIN_S, EVERY_S)


def _hand_out(lab: Lab) -> None:
    admin = operator_of(lab)
    bundles = admin.bundles(SYSTEM_NAMESPACE)
    by_bundle: dict[str, list[str]] = {}
    for number in range(admin.coordinators()):
        topic = placement.coordinator_topic(number)
        by_bundle.setdefault(str(placement.bundle_of(topic, bundles)), []).append(topic)
    load = dict.fromkeys(lab.active_brokers(), 0)
    owned = lab.owned_bundles()
    for bundle, topics in sorted(by_bundle.items(), key=lambda each: -len(each[1])):
        target = min(load, key=lambda broker: load[broker])
        load[target] += len(topics)
        if f"{SYSTEM_NAMESPACE}/{bundle}" not in owned[target]:
            admin.unload(SYSTEM_NAMESPACE, bundle, target)
            admin.look_up(topics[0])


def _load_all(admin: Admin) -> None:
    for number in range(admin.coordinators()):
        admin.look_up(placement.coordinator_topic(number))


def _even(lab: Lab) -> bool:
    counts = lab.tc_placement().values()
    return max(counts) - min(counts) <= EVEN_ENOUGH


FAULTS = (
    RealFault(
        name="piled-up-coordinators",
        about="One of three brokers has all 16 transaction coordinators.",
        expected=(Expected("tc-skew"),),
        quick=True,
        made=_piled_up,
    ),
    RealFault(
        name="coordinators-after-restart",
        about="A broker was restarted: the two others have all transaction coordinators.",
        expected=(Expected("tc-skew"),),
        made=_restarted,
    ),
)
