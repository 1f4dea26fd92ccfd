"""Time and size limits of one call, enforced at the socket, below the HTTP library.

The library's own time limits hold for each wait alone, so a server that sends a byte now and then (of a header, of a
chunk's length, of one interim response after the other) keeps a call open for ever. Here each wait lasts no longer than
what is left of the whole call, and every byte received counts, whatever it is a part of.
"""

from __future__ import annotations

import io
import socket
import time
from functools import partial
from http import HTTPStatus
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, HeaderParsingError, NameResolutionError, NewConnectionError
from urllib3.util.response import assert_header_parsing

from pulsar_steward.pulsar.faults import ProxyRefused, Unusable

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import WriteableBuffer


class Bounds:
    """Remaining time and bytes of one call; `renew` starts the next one.

    Attributes:
        left: True once the request, or a part of it, may have been sent.
    """

    def __init__(self) -> None:
        self.renew(0.0, 0)

    def renew(self, until: float, most_bytes: int, may_leave: Callable[[], None] | None = None) -> None:
        """Starts a call.

        Args:
            until: Deadline of the call, by `time.monotonic`.
            most_bytes: Most bytes that may be received, counted as they are sent.
            may_leave: Called right before the request is sent; None: it may always be sent.
        """
        self._until = until
        self._may_leave = may_leave
        self._most = self._bytes_left = most_bytes
        self.left = False

    def seconds(self, most: float | None) -> float:
        """Seconds that the next wait may take.

        Args:
            most: Limit of a single wait; None: only the limit of the whole call.

        Raises:
            TimeoutError: The call's time is over.
        """
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time for the whole call is over")
        return left if most is None else min(left, most)

    def leave(self) -> None:
        """Calls `may_leave` once, right before the request is sent; an error that it raises passes through."""
        ask, self._may_leave = self._may_leave, None
        if ask is not None:
            ask()
        self.left = True

    def took(self, count: int) -> None:
        """Counts received bytes.

        Raises:
            Unusable: There are more than the call may receive.
        """
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise Unusable(f"it is larger than {self._most >> 20} MB (admin.most_answer_megabytes)")


class BoundAdapter(HTTPAdapter):
    """Transport adapter of a `requests.Session`: all its connections share the same bounds."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Creates the pool manager with connections that keep the bounds."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = self._pools()

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        """Creates the pool manager of a proxy with connections that keep the bounds."""
        manager = super().proxy_manager_for(*args, **kwargs)
        manager.pool_classes_by_scheme = self._pools()
        return manager

    def _pools(self) -> dict[str, Any]:
        return {"http": partial(_PlainPool, bounds=self._bounds), "https": partial(_TlsPool, bounds=self._bounds)}


class _Stream(io.RawIOBase):
    """Socket stream that keeps the time and size limits of a call."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, bounds: Bounds) -> None:
        self._raw = raw
        self._socket = sock
        self._bounds = bounds
        self._most_seconds = sock.gettimeout()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        self._socket.settimeout(self._bounds.seconds(self._most_seconds))
        count: int | None = self._raw.readinto(buffer)
        self._bounds.took(count or 0)
        return count

    def fileno(self) -> int:
        return self._raw.fileno()

    def close(self) -> None:
        try:
            self._raw.close()
        finally:
            super().close()


class _Response(HTTPResponse):
    """HTTP response that is read through a `_Stream` and whose header lines are checked."""

    def __init__(self, sock: socket.socket, *args: Any, bounds: Bounds, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_Stream(self.fp.detach(), sock, bounds))

    def begin(self) -> None:
        """Reads the status line and the headers.

        Raises:
            Unusable: It is an interim response other than 100, which the library would take for the final one, so that
                the next call would get the response to this one; or a line is no valid header. The library would read
                on and write that line to the log.
        """
        super().begin()
        if self.status < HTTPStatus.OK:
            raise Unusable(f"{self.status} is no last answer")
        try:
            assert_header_parsing(self.msg)
        except HeaderParsingError as error:
            raise Unusable("its head cannot be read") from error


class _Bound(HTTPConnection):
    def __init__(self, *args: Any, bounds: Bounds, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._bounds = bounds
        self._making_tunnel = False
        self.response_class = partial(_Response, bounds=bounds)  # type: ignore[assignment]  # anything callable will do

    def send(self, data: Any) -> None:
        """Connects first, then calls `may_leave` at the last moment, and sends."""
        if self.sock is None:
            self.connect()
        if not self._making_tunnel:
            self._bounds.leave()
        super().send(data)

    def _tunnel(self) -> None:
        """Asks the forward proxy for a connection (``CONNECT``), which is not the request yet.

        Raises:
            ProxyRefused: It refuses.
        """
        self._making_tunnel = True
        try:
            super()._tunnel()
        except TimeoutError:
            raise
        except OSError as error:
            raise ProxyRefused(str(error)) from error
        finally:
            self._making_tunnel = False

    def _new_conn(self) -> socket.socket:
        """Connects as the library does, but within the call's time however many addresses the name has."""
        try:
            found = socket.getaddrinfo(self._dns_host.strip("[]"), self.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise NameResolutionError(self.host, self, error) from error  # type: ignore[arg-type]  # also bad names
        failure: Exception = OSError("the name has no address")
        for family, kind, protocol, _, address in found:
            made = socket.socket(family, kind, protocol)
            try:
                for option in self.socket_options or ():
                    made.setsockopt(*option)
                made.settimeout(self._bounds.seconds(self.timeout))
                made.connect(address)
                made.settimeout(self._bounds.seconds(self.timeout))
            except OSError as error:
                made.close()
                failure = error
            else:
                return made
        if isinstance(failure, TimeoutError):
            raise ConnectTimeoutError(self, f"no connection to {self.host} in time") from failure
        raise NewConnectionError(self, str(failure)) from failure


class _BoundTls(_Bound, HTTPSConnection):
    pass


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Bound

    def __init__(self, *args: Any, bounds: Bounds, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn_kw["bounds"] = bounds


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _BoundTls

    def __init__(self, *args: Any, bounds: Bounds, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn_kw["bounds"] = bounds
