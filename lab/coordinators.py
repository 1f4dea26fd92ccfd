"""Placing the transaction coordinators: all on one broker, as restarts leave them, or wherever somebody says."""

import contextlib
from collections.abc import Callable, Mapping

from lab import placement
from lab.admin import Admin
from lab.errors import AdminCallError
from lab.placement import SYSTEM_NAMESPACE
from lab.waiting import wait_until

PLACED_WITHIN_S = 60.0
EVERY_S = 0.5

Owned = Callable[[], Mapping[str, tuple[str, ...]]]
"""Tells which bundles each broker owns."""


def bundles_with_coordinators(admin: Admin) -> dict[str, list[str]]:
    """The bundles that hold coordinators, each with the topics that stand for these."""
    bundles = admin.bundles(SYSTEM_NAMESPACE)
    held: dict[str, list[str]] = {}
    for number in range(admin.coordinators()):
        topic = placement.coordinator_topic(number)
        held.setdefault(str(placement.bundle_of(topic, bundles)), []).append(topic)
    return held


def place(admin: Admin, target_of: Mapping[str, str], owned: Owned) -> None:
    """Moves bundles of coordinators to brokers, and returns once the brokers' ownership shows all of them there.

    A lookup loads a bundle; an unload that names a destination makes the next lookup find it there. That may be
    somebody else's, and ours then goes where the leader likes: such a bundle is moved once more.

    Args:
        admin: One broker's admin API.
        target_of: Bundle to the broker that it is to be on.
        owned: Which bundles each broker owns.

    Raises:
        NotReachedError: The cluster did not show it in time.
    """
    # One coordinator stands for all in its bundle: what is moved is the bundle.
    topic_of = {bundle: topics[0] for bundle, topics in bundles_with_coordinators(admin).items() if bundle in target_of}
    for topic in topic_of.values():
        admin.look_up(topic)

    def there() -> bool:
        owners = placement.owners(topic_of.values(), SYSTEM_NAMESPACE, owned())
        elsewhere = [bundle for bundle, topic in topic_of.items() if owners.get(topic) != target_of[bundle]]
        for bundle in elsewhere:
            admin.unload(SYSTEM_NAMESPACE, bundle, target_of[bundle])
            with contextlib.suppress(
                AdminCallError
            ):  # 500 where its former broker was quicker (docs/pulsar-behaviour.md)
                admin.look_up(topic_of[bundle])
        return not elsewhere

    brokers = ", ".join(sorted(set(target_of.values())))
    wait_until(there, f"{brokers} hold the transaction coordinators that they are to have", PLACED_WITHIN_S, EVERY_S)


def pile_up(admin: Admin, target: str, owned: Owned) -> None:
    """Moves every coordinator to the broker ``target``, and returns once the brokers' ownership shows it.

    Raises:
        NotReachedError: The cluster did not show it in time.
    """
    place(admin, dict.fromkeys(bundles_with_coordinators(admin), target), owned)
