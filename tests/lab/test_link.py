"""A link passes connections on until it is cut, and nginx stands before brokers."""

from __future__ import annotations

import socket
import socketserver
import ssl
import threading

import httpx
import pytest

from lab.link import Link
from lab.nginx import running_nginx
from lab.ports import LOOPBACK
from lab.testing import need_nginx
from lab.waiting import wait_until
from tests.unit.pulsar.scripted import answer, redirect, scripted_brokers


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


def test_each_port_leads_to_its_brokers() -> None:
    with scripted_brokers() as start:
        first, second = start(), start()
        for broker in (first, second):
            broker.on("/name", answer(broker.id))
        second.on("/moved", redirect("http://b-1.internal:8080/moved"))
        with running_nginx(need_nginx(), [first.id], [second.id], [first.id, second.id]) as nginx:
            trusted = ssl.create_default_context(cafile=str(nginx.ca_file))
            with httpx.Client(verify=trusted, trust_env=False, headers={"Authorization": "Bearer made-up"}) as client:
                one, two, both = nginx.urls
                assert [client.get(f"{url}/name").json() for url in (one, two)] == [first.id, second.id]
                assert {client.get(f"{both}/name").json() for _ in range(4)} == {first.id, second.id}
                moved = client.put(f"{two}/moved?by=hand")
            wait_until(
                lambda: bool(nginx.calls("PUT")), "nginx has logged the call, which it does after its answer", 10
            )
            calls = nginx.calls("PUT")
    assert moved.headers["Location"] == "http://b-1.internal:8080/moved"
    assert calls == [f"{two.rpartition(':')[2]} PUT /moved?by=hand 307"]
    assert second.asked[-1].authorization == "Bearer made-up"
