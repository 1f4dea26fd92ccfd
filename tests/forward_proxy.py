"""A forward proxy on loopback: makes tunnels (``CONNECT``) and passes plain requests on, and remembers what it read."""

from __future__ import annotations

import contextlib
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

KEEP = b"Connection: keep-alive\r\n"


class ForwardProxy:
    """One proxy.

    Attributes:
        asked: The first line of each request.
        read: Everything that came from clients, which within a tunnel is what a proxy sees of it.
        refusal: What it answers in place of passing anything on; empty: it does pass it on.
        url: ``http://host:port``.
    """

    def __init__(self, server: socket.socket) -> None:
        self.asked: list[str] = []
        self.read = b""
        self.refusal = b""
        self.url = f"http://127.0.0.1:{server.getsockname()[1]}"
        self._server = server
        self._open: list[socket.socket] = []

    def serve(self) -> None:
        """Takes connections until the server is closed."""
        workers = []
        with contextlib.suppress(OSError):
            while True:
                taken = self._server.accept()[0]
                self._open.append(taken)
                workers.append(threading.Thread(target=self._serve_one, args=(taken,)))
                workers[-1].start()
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for worker in workers:
            worker.join()

    def _serve_one(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                if not (piece := client.recv(65536)):
                    return
                head += piece
            self.read += head
            line = head.partition(b"\r\n")[0].decode("latin-1")
            self.asked.append(line)
            if self.refusal:
                client.sendall(self.refusal)
                return
            method, target, _ = line.split(" ")
            place = target if method == "CONNECT" else urlsplit(target).netloc
            host, _, port = place.rpartition(":")
            with socket.create_connection((host, int(port))) as there:
                self._open.append(there)
                if method == "CONNECT":
                    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                else:
                    # The next request on this connection may be for another host: there is none.
                    plain = head.replace(f"http://{place}".encode(), b"", 1).replace(KEEP, b"")
                    there.sendall(plain.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
                answers = threading.Thread(target=self._pass_on, args=(there, client, False))
                answers.start()
                self._pass_on(client, there, True)
                answers.join()

    def _pass_on(self, source: socket.socket, sink: socket.socket, noted: bool) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                if noted:
                    self.read += piece
                sink.sendall(piece)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def forward_proxy() -> Iterator[ForwardProxy]:
    """A proxy for the length of a block."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        proxy = ForwardProxy(server)
        thread = threading.Thread(target=proxy.serve)
        thread.start()
        try:
            yield proxy
        finally:
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def saying(words: bytes) -> Iterator[str]:
    """``host:port`` of a server that says the same to whoever says anything, and hangs up."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                with server.accept()[0] as taken, contextlib.suppress(OSError):
                    taken.recv(65536)
                    taken.sendall(words)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            thread.join()
