"""Bundles of a test's own, to be moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.placement import holds
from pulsar_steward.model.step import UnloadBundle

if TYPE_CHECKING:
    from lab.cluster import Lab


def loaded_bundle(lab: Lab, namespace: str, bundles: int = 4) -> UnloadBundle:
    """Makes a namespace with one loaded topic, and the move of that topic's bundle to another broker."""
    topic = f"persistent://{namespace}/orders"
    lab.make_topic(topic, bundles)
    owners = {bundle: broker for broker, owned in lab.owned_bundles().items() for bundle in owned}
    bundle = next(key for key in owners if key.startswith(f"{namespace}/") and holds(key, topic))
    source = owners[bundle]
    target = next(broker for broker in sorted(lab.owned_bundles()) if broker != source)
    return UnloadBundle(namespace=namespace, bundle=bundle.rpartition("/")[2], source=source, target=target)


def owner_of(lab: Lab, move: UnloadBundle) -> str | None:
    bundle = f"{move.namespace}/{move.bundle}"
    return next((broker for broker, owned in lab.owned_bundles().items() if bundle in owned), None)
