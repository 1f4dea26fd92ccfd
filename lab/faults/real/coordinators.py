"""Transaction coordinators where they should not be."""

import contextlib
from collections.abc import Iterator

from lab import coordinators, placement
from lab.admin import Admin
from lab.cluster import Lab
from lab.faults.fault import Expected, RealFault
from lab.faults.real.operator import operator_of
from lab.waiting import wait_until

BACK_WITHIN_S = 60.0


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
        wait_until(lambda: lab.tc_placement().get(last) == 0, f"{last} is back without coordinators", BACK_WITHIN_S)
        yield
    finally:
        spread(lab)


def spread(lab: Lab) -> None:
    """Gives each broker as many coordinators as the others, as far as their bundles allow."""
    admin = operator_of(lab)
    held = coordinators.bundles_with_coordinators(admin)
    load = dict.fromkeys(lab.active_brokers(), 0)
    target_of: dict[str, str] = {}
    for bundle, topics in sorted(held.items(), key=lambda each: -len(each[1])):
        target_of[bundle] = min(load, key=lambda broker: load[broker])
        load[target_of[bundle]] += len(topics)
    coordinators.place(admin, target_of, lab.owned_bundles)


def _load_all(admin: Admin) -> None:
    for number in range(admin.coordinators()):
        admin.look_up(placement.coordinator_topic(number))


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
