"""A link passes connections on until it is cut."""

from __future__ import annotations

import socket
import socketserver
import threading

import pytest

from lab.link import Link
from lab.ports import LOOPBACK


class Echo(socketserver.BaseRequestHandler):
    """Says again what it hears."""

    def handle(self) -> None:
        """Until the other side ends."""
        while piece := self.request.recv(100):
            self.request.sendall(piece)


def test_what_is_cut_ends_what_is_open_and_refuses_what_comes() -> None:
    with socketserver.ThreadingTCPServer((LOOPBACK, 0), Echo) as echo, Link() as link:
        threading.Thread(target=echo.serve_forever, daemon=True).start()
        link.target = (LOOPBACK, echo.server_address[1])
        with socket.create_connection((LOOPBACK, link.port)) as connection:
            connection.sendall(b"well")
            assert connection.recv(100) == b"well"
            link.cut()
            assert connection.recv(100) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((LOOPBACK, link.port))
        link.cut()  # once more is no harm
        echo.shutdown()
