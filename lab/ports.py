"""Ports of a lab: free ones, or those counted from a base port."""

import contextlib
import os
import random
import socket
from collections.abc import Collection, Iterator

from lab.errors import PortTakenError

# Below Linux' range for outgoing connections (32768 and up), so that no client grabs a stopped broker's port.
# `STEWARD_LAB_PORTS=20000-23000` narrows it, for programs that start labs side by side.
LOWEST, HIGHEST = 20_000, 32_000
ROOM = 1000
"""Ports that one lab never needs more of."""
LOOPBACK = "127.0.0.1"


def is_free(host: str, port: int) -> bool:
    """Tells whether a server could bind the port now; ports in TIME_WAIT count as free, as they do for Java."""
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def answers(host: str, port: int) -> bool:
    """Tells whether something accepts connections there."""
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
        return True
    return False


def require_free(host: str, port: int, purpose: str, otherwise: str = "") -> None:
    """Raises unless a server could bind the port now.

    Raises:
        PortTakenError: Names the port, what wanted it, and what to do, ``otherwise`` included.
    """
    if not is_free(host, port):
        raise PortTakenError(
            f"port {port} on {host}, wanted for {purpose}, is in use:"
            f" end what listens there (`ss -ltnp 'sport = :{port}'`){otherwise}"
        )


def _anywhere() -> int:
    lowest, _, highest = os.environ.get("STEWARD_LAB_PORTS", f"{LOWEST}-{HIGHEST}").partition("-")
    return random.randint(int(lowest), int(highest) - ROOM)


class Ports:
    """Hands out ports that nothing listens on.

    Args:
        base: The first port to hand out, the next ones following one by one; None for any free ones.
        used: Ports that are spoken for already, though nothing may be listening (a stopped broker's).
    """

    def __init__(self, base: int | None, used: frozenset[int] = frozenset()) -> None:
        self._asked = base is not None
        start = _anywhere() if base is None else base
        self._next = self._count(start, used)

    @staticmethod
    def _count(start: int, used: frozenset[int]) -> Iterator[int]:
        return (port for port in range(start, 65_536) if port not in used)

    def take(self, host: str, purpose: str) -> int:
        """The next port for ``purpose``.

        Raises:
            PortTakenError: The ports were asked for by number, and this one is in use.
        """
        return self.take_on_all([host], purpose)

    def take_on_all(self, hosts: Collection[str], purpose: str) -> int:
        """The next port that is free on each of the hosts; raises as `take` does."""
        for port in self._next:
            if self._asked:
                for host in hosts:
                    require_free(host, port, purpose, ", choose another --base-port, or leave it out")
            if all(is_free(host, port) for host in hosts):
                return port
        raise PortTakenError(f"no free port on {', '.join(hosts)} for {purpose}")
