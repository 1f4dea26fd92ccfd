"""Piling the transaction coordinators up on one broker: the skew that operators see after restarts, made at once."""

from collections.abc import Callable, Mapping

from lab import placement
from lab.admin import Admin
from lab.placement import SYSTEM_NAMESPACE
from lab.waiting import wait_until

MOVED_WITHIN_S = 60.0
EVERY_S = 0.5


def pile_up(admin: Admin, target: str, owned: Callable[[], Mapping[str, tuple[str, ...]]]) -> None:
    """Moves every coordinator to the broker ``target``, and returns once the brokers' ownership shows it.

    A lookup loads a bundle; an unload that names a destination makes the next lookup find it there. That may be
    somebody else's, and ours then goes where the leader likes: such a bundle is moved once more.

    Raises:
        NotReachedError: The cluster did not show it in time.
    """
    topics = [placement.coordinator_topic(number) for number in range(admin.coordinators())]
    bundles = admin.bundles(SYSTEM_NAMESPACE)
    # One coordinator stands for all in its bundle: what is moved is the bundle.
    topic_of = {placement.bundle_of(topic, bundles): topic for topic in topics}
    for topic in topic_of.values():
        admin.look_up(topic)

    def there() -> bool:
        owners = placement.owners(topics, SYSTEM_NAMESPACE, owned())
        elsewhere = [(bundle, topic) for bundle, topic in topic_of.items() if owners.get(topic) != target]
        for bundle, topic in elsewhere:
            admin.unload(SYSTEM_NAMESPACE, str(bundle), target)
            admin.look_up(topic)
        return not elsewhere

    wait_until(there, f"{target} holds all {len(topics)} transaction coordinators", MOVED_WITHIN_S, EVERY_S)
