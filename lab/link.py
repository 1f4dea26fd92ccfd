"""A way to a broker that can be cut: a port on loopback that passes connections on."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from typing import TYPE_CHECKING, Self

from lab.ports import LOOPBACK, Ports

if TYPE_CHECKING:
    from types import TracebackType

PIECE = 65_536


class _Connection(socketserver.BaseRequestHandler):
    """One connection, passed on in both directions."""

    server: Link

    def handle(self) -> None:
        """Passes on until either side ends, or the link is cut."""
        with contextlib.suppress(OSError), socket.create_connection(self.server.target) as there:
            if not self.server.admits(self.request, there):
                return
            back = threading.Thread(target=_pass_on, args=(there, self.request), daemon=True)
            back.start()
            _pass_on(self.request, there)
            back.join()


class Link(socketserver.ThreadingTCPServer):
    """A way to one place; use it in a ``with`` statement.

    Attributes:
        port: Port on loopback that leads there.
        target: Host and port of the place; to be set before the first connection.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        self.port = Ports(None).take(LOOPBACK, "a link")
        self.target = (LOOPBACK, 0)
        self._open: list[socket.socket] = []
        self._is_cut = False
        super().__init__((LOOPBACK, self.port), _Connection)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()

    def admits(self, *ends: socket.socket) -> bool:
        """Notes the ends of a connection; False: the link is cut."""
        self._open += ends
        return not self._is_cut

    def cut(self) -> None:
        """Ends all connections, and refuses new ones from now on."""
        if self._is_cut:
            return
        self._is_cut = True
        self.shutdown()
        self.server_close()
        for each in self._open:
            _end(each)


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(PIECE):
            sink.sendall(piece)
    _end(source)
    _end(sink)


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
