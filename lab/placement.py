"""Position of a topic in a namespace's hash range, and so its bundle and broker: arithmetic, no calls.

The position of a topic is the CRC-32 of its full name (checked against the brokers' own ``topicHashPositions``), so
placement is computed from who owns which bundle; asking a broker for it would load the bundle.
"""

import zlib
from collections.abc import Iterable, Mapping

COORDINATOR_TOPIC = "transaction_coordinator_assign"
SYSTEM_NAMESPACE = "pulsar/system"
END = 0xFFFF_FFFF


def coordinator_topic(number: int) -> str:
    """The full name of the partition that stands for a transaction coordinator."""
    return f"persistent://{SYSTEM_NAMESPACE}/{COORDINATOR_TOPIC}-partition-{number}"


def position(topic: str) -> int:
    """A topic's hash, 0 to 0xffffffff."""
    return zlib.crc32(topic.encode())


def holds(bundle: str, topic: str) -> bool:
    """Tells whether ``bundle`` (``0xLOW_0xHIGH`` or ``tenant/ns/0xLOW_0xHIGH``) spans the topic's hash.

    Ranges are open at the upper end, but for the last one.
    """
    low, high = (int(bound, 16) for bound in bundle.rpartition("/")[2].split("_"))
    return low <= position(topic) < high or position(topic) == high == END


def bundle_of(topic: str, bundles: Iterable[str]) -> str | None:
    """The one of the namespace's bundles that holds the topic; None when none of them does."""
    return next((bundle for bundle in bundles if holds(bundle, topic)), None)


def owners(topics: Iterable[str], namespace: str, owned: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Topic to the broker that owns its bundle; topics whose bundle nobody owns are absent."""
    mine = {
        bundle: broker
        for broker, bundles in owned.items()
        for bundle in bundles
        if bundle.rpartition("/")[0] == namespace
    }
    found = {topic: bundle_of(topic, mine) for topic in topics}
    return {topic: mine[bundle] for topic, bundle in found.items() if bundle is not None}


def differences(
    before: Mapping[str, Iterable[str]], after: Mapping[str, Iterable[str]], besides: str
) -> dict[str, tuple[str | None, str | None]]:
    """Bundles that have another owner than before, each with the old and the new one.

    Args:
        before: Broker to the bundles that it owned.
        after: Broker to the bundles that it owns.
        besides: A namespace whose bundles may be *loaded* meanwhile: that of a topic which somebody writes to.
    """
    old = {bundle: broker for broker, bundles in before.items() for bundle in bundles}
    new = {bundle: broker for broker, bundles in after.items() for bundle in bundles}
    return {
        bundle: (old.get(bundle), new.get(bundle))
        for bundle in sorted(old.keys() | new.keys())
        if old.get(bundle) != new.get(bundle) and not (bundle not in old and bundle.rpartition("/")[0] == besides)
    }


def count_by_broker(coordinators: int, owned: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Broker to the number of transaction coordinators that it holds, zeros included."""
    placed = owners(map(coordinator_topic, range(coordinators)), SYSTEM_NAMESPACE, owned)
    return {broker: sum(owner == broker for owner in placed.values()) for broker in owned}
