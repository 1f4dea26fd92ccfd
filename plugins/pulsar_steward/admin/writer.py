"""What changes a cluster. Only `apply` may import this; import-linter holds it.

A 2xx answer is no proof that anything happened (an unload of a bundle that nobody owns answers 204): read the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pulsar_steward.admin import paths
from pulsar_steward.admin.transport import Transport

if TYPE_CHECKING:
    from types import TracebackType

    from pulsar_steward.admin.settings import AdminSettings


class Writer:
    """Changes one cluster. Calls are sent once and never repeated here.

    Every method raises `pulsar_steward.errors.AdminError`; after `TimedOut`, `BrokenAnswer`, `Unreachable` or
    `ServerError` the change may have happened all the same.
    """

    def __init__(self, settings: AdminSettings) -> None:
        self._transport = Transport(settings, frozenset({"GET", "PUT", "POST", "DELETE"}))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._transport.close()

    def unload_bundle(self, namespace: str, bundle: str, destination: str) -> None:
        """Unloads a bundle from its owner, to be loaded by the destination (``host:webport``) at the next lookup."""
        path = paths.namespace(namespace, paths.segment(bundle), "unload")
        self._transport.send("PUT", path, {"destinationBroker": destination})

    def split_bundle(self, namespace: str, bundle: str, algorithm: str) -> None:
        """Splits a bundle in two; both halves stay with its owner."""
        path = paths.namespace(namespace, paths.segment(bundle), "split")
        self._transport.send("PUT", path, {"unload": "false", "splitAlgorithmName": algorithm})

    def load_bundle_of(self, topic: str) -> None:
        """Looks a topic up, which makes a broker load its bundle: the one that an unload named, if there was one."""
        self._transport.send("GET", paths.lookup(topic))
