"""The brokers of a cluster: their addresses, and the URL that reaches each of them.

A cluster lists its brokers as ``host:port``, with the port for http, or the port for TLS if there is no http. So for
TLS, port and scheme have to be known from elsewhere (docs/decisions/0015-where-brokers-are-reached.md).
"""

from __future__ import annotations

import logging
import re
import threading
import time
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from pulsar_steward.errors import AdminError, BehindFrontDoor
from pulsar_steward.pulsar.addresses import DEFAULT_PORTS
from pulsar_steward.pulsar.figures import Broker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from urllib.parse import SplitResult

    from pulsar_steward.pulsar.body import BrokerAnswer
    from pulsar_steward.pulsar.settings import AdminSettings

log = logging.getLogger(__name__)

BEHIND_FRONT_DOOR = (
    "behind a front door (`front_door`) no single broker can be asked: name how brokers are reached by `address_map`"
)
"""Reason why no single broker is called if only a balancer or proxy in front of all brokers is reachable."""

MEMBERS_PATH = "/admin/v2/brokers"
CONFIGURATION_PATH = "/admin/v2/brokers/configuration/runtime"

_PORT = re.compile("[0-9]{1,5}")
_PORTS_SECONDS = 60.0
"""Seconds for which the ports of brokers are cached."""


class Place(NamedTuple):
    """Host in lower case, and port."""

    host: str | None
    port: int | None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in (self.host or "") else f"{self.host}:{self.port}"


def place_of(parts: SplitResult) -> Place:
    """Host and port of an address.

    Raises:
        ValueError: If its port is not a number.
    """
    return Place(parts.hostname, parts.port or DEFAULT_PORTS.get(parts.scheme))


class _WebPorts(NamedTuple):
    """Ports of a broker's admin API for http and for https; empty: none, or not known."""

    plain: tuple[str, ...] = ()
    tls: tuple[str, ...] = ()


_PORTS: dict[AdminSettings, tuple[float, _WebPorts]] = {}
_PORTS_LOCK = threading.Lock()


class Members:
    """The brokers of one cluster, for one transport.

    Args:
        settings: Admin API settings of the cluster.
        bases: Base URLs of the transport.
        ask: Sends a GET request to one of them, through the transport.
        ask_apart: Sends a GET request to any broker in the settings, through separate connections.
    """

    def __init__(
        self,
        settings: AdminSettings,
        bases: Sequence[str],
        ask: Callable[[str], BrokerAnswer],
        ask_apart: Callable[[str], BrokerAnswer],
    ) -> None:
        self._settings = settings
        self._bases = bases
        self._ask = ask
        self._ask_apart = ask_apart
        self._listed: frozenset[Place] = frozenset()
        self._tls = "https" in settings.schemes

    def base_of(self, broker: str) -> str:
        """URL of a broker by its id: from the settings, or for TLS from the ports in brokers' configuration.

        Raises:
            BehindFrontDoor: No single broker can be reached.
        """
        if self._settings.front_door:
            raise BehindFrontDoor("GET", MEMBERS_PATH, broker, BEHIND_FRONT_DOOR)
        if (named := self._settings.named_base(broker)) is not None:
            return named
        if not self._tls:
            return f"http://{broker}"
        host, _, port = broker.rpartition(":")
        ports = self._ports()
        if port in ports.plain:
            if ports.tls:
                return f"https://{host}:{ports.tls[0]}"
            # Over http, no client certificate is sent, and any server could respond: only the settings may choose it.
            return f"http://{broker}" if self._settings.client_cert_file is None else f"https://{broker}"
        return f"https://{broker}"

    def reached(self, there: SplitResult, place: Place) -> SplitResult | None:
        """Redirect's target as a reachable address; None: its own address is used, if it may be followed at all.

        Behind a balancer that terminates TLS, brokers redirect to http: TLS is used nevertheless.
        """
        if "@" in there.netloc or self._settings.front_door or self.is_base(there, place):
            return None
        base = dict(self._settings.address_map).get(str(place))
        others = self._settings.address_map or (there.scheme == "http" and self._settings.schemes == {"https"})
        if base is None and others and self.includes(place):  # `*` means any listed host only
            base = self.base_of(str(place))
        if base is None:
            return None
        parts = urlsplit(base)
        return there._replace(scheme=parts.scheme, netloc=parts.netloc)

    def is_base(self, there: SplitResult, place: Place) -> bool:
        """True if the settings name this address, or the transport calls it."""
        bases = map(urlsplit, (*self._settings.bases, *self._bases))
        return (there.scheme, place) in {(base.scheme, place_of(base)) for base in bases}

    def includes(self, place: Place) -> bool:
        """True if the settings or the cluster list this place; for an unknown place, the list is read again."""
        if place in {place_of(urlsplit(base)) for base in (*self._settings.bases, *self._bases)}:
            return True
        if self._settings.front_door:
            return False
        if self._is_listed(place):
            return True
        listed = self._ask(MEMBERS_PATH).decoded(list[Broker])
        scheme = "https" if self._tls else "http"
        self._listed = frozenset(place_of(urlsplit(f"{scheme}://{each}")) for each in listed)
        return self._is_listed(place)

    def _is_listed(self, place: Place) -> bool:
        """True if a listed broker has this place, by its id or, for TLS, by the brokers' TLS port."""
        if place in self._listed:
            return True
        if not self._tls or place.host not in {each.host for each in self._listed}:
            return False
        if place.port in {place_of(urlsplit(base)).port for base in self._settings.bases}:
            return True
        return str(place.port) in self._ports().tls

    def _ports(self) -> _WebPorts:
        """Ports of brokers, from the configuration of one that responds over TLS, so that they cannot be forged."""
        with _PORTS_LOCK:
            asked_at, ports = _PORTS.get(self._settings, (float("-inf"), _WebPorts()))
            if time.monotonic() - asked_at > _PORTS_SECONDS:
                ports = self._ports_told()
                _PORTS.clear()  # keeps one cluster only, as a process normally works on one
                _PORTS[self._settings] = time.monotonic(), ports
        return ports

    def _ports_told(self) -> _WebPorts:
        try:
            told = self._ask_apart(CONFIGURATION_PATH).decoded(dict[str, str])
        except AdminError as error:
            log.info("which ports brokers have is not known: %s", error)
            return _WebPorts()
        # In Java's notation: Optional[8443], Optional.empty.
        plain, tls = (_PORT.findall(told.get(name, "")) for name in ("webServicePort", "webServicePortTls"))
        return _WebPorts(tuple(plain), tuple(tls))
