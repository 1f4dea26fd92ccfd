"""A namespace of a test's own on a lab that ends with the tests."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from lab.errors import NotReachedError
from lab.faults.real.ground import ground
from lab.placement import bundle_of
from lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Lab
    from lab.faults.real.ground import Ground

UNLOADED_WITHIN_S = 60.0
READ_BY_BROKERS = ("__change_events", "__transaction_buffer_snapshot")


@contextlib.contextmanager
def plot(lab: Lab, name: str, bundles: int = 4, **policies: Any) -> Iterator[Ground]:
    """Yields a `ground`, and leaves behind what brokers do not delete for minutes (docs/pulsar-behaviour.md)."""
    stack = contextlib.ExitStack()
    here = stack.enter_context(ground(lab, name, bundles, **policies))
    try:
        yield here
    finally:
        with contextlib.suppress(NotReachedError):
            stack.close()


def unloaded(here: Ground, topic: str) -> None:
    """Has nobody own the bundle of a topic any more, whose clients are closed.

    Brokers read some topics of a namespace by themselves, and come back to their bundles: it has to be in another one.
    """
    bundles = here.admin.bundles(here.namespace)
    bundle = bundle_of(topic, bundles)
    beside = {bundle_of(here.topic(name), bundles) for name in READ_BY_BROKERS}
    assert bundle not in beside, f"{topic} is beside topics that brokers read: give the namespace another name"

    def alone() -> bool:
        owned = {name for names in here.lab.owned_bundles().values() for name in names}
        if f"{here.namespace}/{bundle}" not in owned:
            return True
        here.admin.unload(here.namespace, str(bundle), here.lab.brokers[0].broker_id)
        return False

    wait_until(alone, f"nobody owns the bundle of {topic}", UNLOADED_WITHIN_S, 1.0)


def owners(here: Ground) -> dict[str, str]:
    """The namespace's bundles and who owns each, by the brokers' own word."""
    prefix = f"{here.namespace}/"
    owned = here.lab.owned_bundles().items()
    return {each.removeprefix(prefix): broker for broker, names in owned for each in names if each.startswith(prefix)}
