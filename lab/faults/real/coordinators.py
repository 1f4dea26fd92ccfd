"""Transaction coordinators where they should not be."""

import contextlib
from collections.abc import Callable, Iterator, Mapping

from lab import coordinators, placement
from lab.admin import Admin
from lab.cluster import Lab
from lab.faults.fault import Change, Expected, Making, RealFault
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


def _shared_out(*shares: int) -> Callable[[Lab], Making]:
    """Coordinators placed by hand: these numbers of them on the brokers, in order."""

    @contextlib.contextmanager
    def making(lab: Lab) -> Iterator[None]:
        try:
            _place(lab, dict(zip(lab.active_brokers(), shares, strict=True)))
            yield
        finally:
            spread(lab)

    return making


def _restarts(number_of_restarts: int) -> Callable[[Lab], Making]:
    """A broker that restarts between looks, so often; its coordinators are given back, as somebody would."""

    @contextlib.contextmanager
    def making(lab: Lab) -> Iterator[Change]:
        last = lab.brokers[-1].broker_id

        def change(observed: int) -> None:
            if 0 < observed <= number_of_restarts:
                lab.stop_broker(last)
                _load_all(operator_of(lab))
                lab.start_broker(last)
                spread(lab)

        try:
            yield change
        finally:
            spread(lab)

    return making


def spread(lab: Lab) -> None:
    """Gives each broker as many coordinators as the others, as far as their bundles allow."""
    brokers = lab.active_brokers()
    each, more = divmod(operator_of(lab).coordinators(), len(brokers))
    _place(lab, {broker: each + (number < more) for number, broker in enumerate(brokers)})


def _place(lab: Lab, shares: Mapping[str, int]) -> None:
    """Gives brokers so many coordinators, as far as their bundles allow: the largest goes where most are missing."""
    admin = operator_of(lab)
    missing = dict(shares)
    target_of: dict[str, str] = {}
    for bundle, topics in sorted(
        coordinators.bundles_with_coordinators(admin).items(), key=lambda each: (-len(each[1]), each[0])
    ):
        target_of[bundle] = max(missing, key=lambda broker: missing[broker])
        missing[target_of[bundle]] -= len(topics)
    coordinators.place(admin, target_of, lab.owned_bundles)


def _load_all(admin: Admin) -> None:
    for number in range(admin.coordinators()):
        admin.look_up(placement.coordinator_topic(number))


FAULTS = (
    RealFault(
        name="piled-up-coordinators",
        about="One of three brokers has all 16 transaction coordinators.",
        expected=(Expected("tc-skew"),),
        alone=True,
        made=_piled_up,
    ),
    RealFault(
        name="two-thirds-of-the-coordinators",
        about="One of three brokers has 10 of the 16 transaction coordinators, the others have three each.",
        expected=(Expected("tc-skew"),),
        alone=True,
        made=_shared_out(10, 3, 3),
    ),
    RealFault(
        name="coordinators-as-after-a-start",
        about="Healthy: transaction coordinators as a freshly started cluster has them, 6, 6 and 4.",
        alone=True,
        made=_shared_out(6, 6, 4),
        twin_of=("two-thirds-of-the-coordinators", "piled-up-coordinators", "coordinators-after-restart"),
    ),
    RealFault(
        name="coordinators-after-restart",
        about="A broker was restarted: the two others have all transaction coordinators.",
        expected=(Expected("tc-skew"),),
        alone=True,
        made=_restarted,
    ),
    RealFault(
        name="broker-restarts-again-and-again",
        about="A broker restarts three times between four looks; its coordinators are given back each time.",
        expected=(Expected("bundle-flapping", r"^127\."),),
        alone=True,
        observations=4,
        made=_restarts(3),
    ),
    RealFault(
        name="broker-restarted-once",
        about="Healthy: a broker was restarted once within four looks, and has got its coordinators back.",
        alone=True,
        observations=4,
        made=_restarts(1),
        twin_of=("broker-restarts-again-and-again",),
    ),
)
