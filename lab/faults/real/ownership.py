"""Bundles that nobody owns: such as do not load, and such as nobody asks for."""

import contextlib
from collections.abc import Callable, Iterator

from lab.cluster import Lab
from lab.faults.fault import Change, Expected, RealFault
from lab.faults.real.bundles import NOWHERE
from lab.faults.real.ground import Ground, ground
from lab.faults.real.growth import LOOKS, Arrange, apart, trend

TOPICS = 4
A_MINUTE: dict[str, object] = {"bundle_without_owner": {"minimum_minutes": 1}}
SOONER = (
    "The two minutes that a bundle has to be without an owner are lowered to one, as a benchmark cannot wait for them."
)

Close = Callable[[], None]


def _used(here: Ground) -> Close:
    """Topics with a producer and a consumer each, all over the namespace's bundles; returns what closes these."""
    clients = []
    for number in range(TOPICS):
        topic = here.topic(f"t{number}")
        clients += [here.shared(topic), here.producer(topic)]
        here.until(topic, lambda shown: bool(shown["publishers"] and shown["subscriptions"]), "its clients are there")

    def close() -> None:
        for client in clients:
            client.close()

    return close


@contextlib.contextmanager
def _kept_from_all_brokers(lab: Lab) -> Iterator[Change]:
    """An isolation policy of a broker that does not exist, set after the first look: it unloads all bundles."""
    name = "kept-from-all-brokers"
    with ground(lab, name) as here:
        try:
            _used(here)
            wait = apart()

            def change(observed: int) -> None:
                if observed == 1:
                    here.admin.set_isolation(name, here.namespace, NOWHERE)
                wait(observed)

            yield change
        finally:
            here.admin.drop_isolation(name)


def _unloaded(*, closed_before: int | None, unloaded_before: int) -> Arrange:
    """Bundles that are unloaded before that look; their clients are closed before the other, or else reconnect."""

    def arrange(here: Ground) -> Change:
        close, wait = _used(here), apart()

        def change(observed: int) -> None:
            if observed == closed_before:
                close()
            if observed == unloaded_before:
                here.admin.unload_namespace(here.namespace)
            wait(observed)

        return change

    return arrange


FAULTS = (
    RealFault(
        name="kept-from-all-brokers",
        about=f"A mistaken isolation policy: clients ask for topics of bundles that no broker may load. {SOONER}",
        expected=(
            Expected("bundle-without-owner", r"^public/kept-from-all-brokers$", r"no broker that is there"),
            Expected("cluster-placement", r"^public/kept-from-all-brokers$"),
        ),
        allowed={"connection-churn": "clients that no broker serves connect anew again and again: seen at 74 a minute"},
        alone=True,
        observations=LOOKS,
        policy=A_MINUTE,
        made=_kept_from_all_brokers,
    ),
    trend(
        "unloaded-with-clients",
        f"Healthy: bundles that were unloaded, and loaded again as their clients reconnected. {SOONER}",
        _unloaded(closed_before=None, unloaded_before=1),
        client=None,
        policy=A_MINUTE,
        twin_of=("kept-from-all-brokers",),
    ),
    trend(
        "closed-and-unloaded",
        f"Healthy: clients were closed, then their bundles were unloaded, and nobody asks for them. {SOONER}",
        _unloaded(closed_before=1, unloaded_before=2),
        client=None,
        policy=A_MINUTE,
        twin_of=("kept-from-all-brokers",),
    ),
    trend(
        "closed-and-unloaded-at-once",
        f"Healthy: clients were closed and their bundles unloaded between the same two looks. {SOONER}",
        _unloaded(closed_before=1, unloaded_before=1),
        client=None,
        policy=A_MINUTE,
        allowed={"bundle-without-owner": "no snapshot shows the bundles owned and without clients"},
        twin_of=("kept-from-all-brokers",),
    ),
)
