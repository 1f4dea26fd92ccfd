"""Bundles that do not stay where they are, and one that was moved."""

from collections.abc import Callable

from lab import placement
from lab.coordinators import move
from lab.faults.fault import Change
from lab.faults.real.ground import Ground
from lab.faults.real.growth import Arrange, trend
from lab.faults.real.operator import recently_shown
from lab.waiting import wait_until

MOVED_WITHIN_S = 90.0


def _restless(moves: Callable[[int], bool]) -> Arrange:
    """A topic with a client whose bundle is moved before those looks."""

    def arrange(here: Ground) -> Change:
        topic = here.topic()
        here.shared(topic)
        here.until(topic, lambda shown: bool(shown["subscriptions"]), "its consumer is connected", MOVED_WITHIN_S)

        def change(observed: int) -> None:
            if moves(observed):
                _move(here, topic, observed)

        return change

    return arrange


def _move(here: Ground, topic: str, observed: int) -> None:
    """Moves the bundle to the first or the second broker in turn, neither of which it is on."""
    brokers = [broker.broker_id for broker in here.lab.brokers]
    owner = placement.owners([topic], here.namespace, here.lab.owned_bundles()).get(topic)
    target = next(broker for broker in (*brokers[observed % 2 :], *brokers) if broker != owner)
    bundle = str(placement.bundle_of(topic, here.admin.bundles(here.namespace)))
    what = f"{topic} is on {target}"
    move(here.admin, here.namespace, {bundle: topic}, {bundle: target}, here.lab.owned_bundles, what)
    wait_until(lambda: topic in recently_shown(here.lab), f"{target} shows {topic}", MOVED_WITHIN_S, 0.5)


FAULTS = (
    trend(
        "to-and-fro",
        "A bundle that somebody moves between two looks, again and again.",
        _restless(bool),
        "bundle-flapping",
        client=None,
    ),
    trend(
        "moved-once",
        "Healthy: a bundle that somebody moved once.",
        _restless(lambda observed: observed == 2),  # two looks are done
        client=None,
        twin_of=("to-and-fro",),
    ),
)
