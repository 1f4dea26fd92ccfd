"""Write access to a cluster. Only `apply` may import this; import-linter enforces it.

A 2xx response is no proof that anything happened (an unload of a bundle that nobody owns returns 204): read the
cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pulsar_steward.errors import BehindFrontDoor
from pulsar_steward.pulsar.body import Closing
from pulsar_steward.pulsar.members import BEHIND_FRONT_DOOR
from pulsar_steward.pulsar.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.pulsar.calls import Call
    from pulsar_steward.pulsar.settings import AdminSettings


class Writer(Closing):
    """Sends changes to one cluster. A call is sent once and never repeated here."""

    def __init__(self, settings: AdminSettings) -> None:
        self._door = urlsplit(settings.bases[0]).netloc if settings.front_door else None
        self._transport = Transport(settings, frozenset({"GET", "PUT", "POST", "DELETE"}))

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def send(self, call: Call, may_leave: Callable[[], None]) -> None:
        """Sends a call.

        Args:
            call: The call.
            may_leave: Called right before each request is sent, including redirected ones. Its error stops the request,
                and is raised here if no request was sent before.

        Raises:
            AdminError: It did not succeed. After `TimedOut`, `BrokenAnswer`, `Unreachable` or `ServerError`, the change
                may have happened nevertheless.
        """
        if self._door is not None:
            raise BehindFrontDoor(call.method, call.path, self._door, f"nothing is changed: {BEHIND_FRONT_DOOR}")
        self._transport.send(call.method, call.path, call.query or None, call.body, may_leave)
