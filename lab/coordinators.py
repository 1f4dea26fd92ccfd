"""Placing the transaction coordinators: all on one broker, as restarts leave them, or wherever somebody says."""

import contextlib
from collections.abc import Callable, Mapping

from lab import placement
from lab.admin import Admin
from lab.errors import AdminCallError
from lab.placement import SYSTEM_NAMESPACE
from lab.waiting import wait_until

MOVED_WITHIN_S = 60.0
EVERY_S = 0.5

Owned = Callable[[], Mapping[str, tuple[str, ...]]]
"""Tells which bundles each broker owns."""


def move(
    admin: Admin, namespace: str, topic_of: Mapping[str, str], target_of: Mapping[str, str], owned: Owned, what: str
) -> None:
    """Moves bundles of a namespace, and returns once the brokers' ownership shows all of them there.

    A lookup loads a bundle; an unload that names a destination makes the next lookup find it there. That may be
    somebody else's, and even of another namespace's bundle with the same range (docs/pulsar-behaviour.md): ours then
    goes where the leader likes, and is moved once more.

    Args:
        admin: One broker's admin API.
        namespace: ``tenant/namespace``.
        topic_of: Bundle to a topic in it.
        target_of: Bundle to the broker that it is to be on.
        owned: Which bundles each broker owns.
        what: What is waited for, in words.

    Raises:
        NotReachedError: The cluster did not show it in time.
    """

    def there() -> bool:
        owners = placement.owners(topic_of.values(), namespace, owned())
        elsewhere = [bundle for bundle, topic in topic_of.items() if owners.get(topic) != target_of[bundle]]
        for bundle in elsewhere:
            admin.unload(namespace, bundle, target_of[bundle])
            with contextlib.suppress(AdminCallError):  # 500 where its former broker was quicker
                admin.look_up(topic_of[bundle])
        return not elsewhere

    wait_until(there, what, MOVED_WITHIN_S, EVERY_S)


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
    brokers = ", ".join(sorted(set(target_of.values())))
    what = f"{brokers} hold the transaction coordinators that they are to have"
    move(admin, SYSTEM_NAMESPACE, topic_of, target_of, owned, what)


def pile_up(admin: Admin, target: str, owned: Owned) -> None:
    """Moves every coordinator to the broker ``target``, and returns once the brokers' ownership shows it.

    Raises:
        NotReachedError: The cluster did not show it in time.
    """
    place(admin, dict.fromkeys(bundles_with_coordinators(admin), target), owned)
