"""A proxy between Steward and the brokers, which lets a chosen request meet trouble on its way.

The trouble is of the network's or of a broker's making: Steward itself runs as it always does, and what reached a
broker is told by the broker's own request log.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BROKER_SECONDS = 60.0
COORDINATORS = "/admin/v3/transactions/transactionCoordinator/replicas"
RESET = struct.pack("ii", 1, 0)
"""For SO_LINGER: closing sends a reset."""


@dataclass(frozen=True)
class Answer:
    """Answers with this status instead of the broker's; nothing reaches it.

    The location may be ``same``, the request's own, or ``elsewhere``: that of something else.
    """

    status: int
    location: str | None = None


@dataclass(frozen=True)
class Reset:
    """The connection is reset; the broker got the request before, or never."""

    forwarded: bool


@dataclass(frozen=True)
class Truncated:
    """The broker's answer, of whose body the second half is missing."""


@dataclass(frozen=True)
class Meanwhile:
    """A change of the cluster right before the request goes on its way."""

    what: Callable[[], None]


Trouble = Answer | Reset | Truncated | Meanwhile


@dataclass
class Ambush:
    """Which request meets which trouble.

    Attributes:
        trouble: What happens.
        writes: Whether only requests that change something are counted.
        number: The request that meets it, from 1.
        times: How many from there on.
        met: How many did.
    """

    trouble: Trouble
    writes: bool
    number: int
    times: int = 1
    met: int = 0
    _seen: int = field(default=0, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def next_for(self, method: str) -> Trouble | None:
        """The trouble that this request meets, or None."""
        with self._lock:
            if self.writes and method == "GET":
                return None
            self._seen += 1
            if not self.number <= self._seen < self.number + self.times:
                return None
            self.met += 1
            return self.trouble


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        ambush = self.server.ambush
        trouble = ambush.next_for(self.command) if ambush else None
        match trouble:
            case Answer(status=status, location=location):
                place = {"same": self.path, "elsewhere": elsewhere(self.path)}.get(location or "", location)
                self._answer(status, b'{"reason":"made to fail"}' if status != http.client.NO_CONTENT else b"", place)
                return
            case Reset(forwarded=False):
                self._reset()
                return
            case Meanwhile(what=what):
                what()
            case _:
                pass
        try:
            answer, content = self._forwarded(body)
        except OSError:
            self._reset()
            return
        if isinstance(trouble, Reset):
            self._reset()
            return
        self._answer(answer.status, content, cut=isinstance(trouble, Truncated), **_told(answer))

    do_GET = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815 - what the server calls

    def _forwarded(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        there = urlsplit(self.path)
        connection = http.client.HTTPConnection(there.hostname or "", there.port or 80, timeout=BROKER_SECONDS)
        passed = {
            name: value for name, value in self.headers.items() if name.lower() not in {"proxy-connection", "host"}
        }
        with contextlib.closing(connection):
            path = f"{there.path}?{there.query}" if there.query else there.path
            connection.request(self.command, path, body or None, passed)
            answer = connection.getresponse()
            return answer, answer.read()

    def _answer(
        self, status: int, content: bytes, location: str | None, encoding: str | None = None, *, cut: bool = False
    ) -> None:
        with contextlib.suppress(OSError):
            self.send_response(status)
            for name, value in (("Location", location), ("Content-Encoding", encoding)):
                if value:
                    self.send_header(name, value)
            if status != http.client.NO_CONTENT:
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if cut else content)
        if cut:
            self.close_connection = True

    def _reset(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's signature
        """Says nothing."""


def elsewhere(url: str) -> str:
    """The same address for another namespace than it is about; of the coordinators' number, a topic's partitions'."""
    url = re.sub(r"/public/chaos-(\d)", lambda found: f"/public/chaos-{(int(found[1]) + 1) % 4}", url)
    url = url.replace(COORDINATORS, "/admin/v2/persistent/public/chaos-0/t-2/partitions")
    return url.replace("/pulsar/system", "/public/chaos-0")


def _told(answer: http.client.HTTPResponse) -> dict[str, str | None]:
    return {"location": answer.headers.get("Location"), "encoding": answer.headers.get("Content-Encoding")}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    ambush: Ambush | None = None

    def handle_error(self, request: object, client_address: object) -> None:
        """A worker that was killed leaves its connection open: no news."""


class Detour:
    """The proxy; `through` lets requests meet an ambush for the length of a block."""

    def __init__(self) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="detour", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Address that it listens at."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @contextlib.contextmanager
    def through(self, ambush: Ambush | None) -> Iterator[None]:
        """Requests meet this for the length of a block."""
        self._server.ambush = ambush
        try:
            yield
        finally:
            self._server.ambush = None

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
