"""Placing the transaction coordinators: all on one broker, as restarts leave them, or wherever somebody says."""

from collections.abc import Mapping

from lab import placement
from lab.admin import Admin
from lab.moving import Owned, move
from lab.placement import SYSTEM_NAMESPACE


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
