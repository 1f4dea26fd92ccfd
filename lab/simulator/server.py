"""The listening part: one thread, one event loop, one port a broker."""

import asyncio
import contextlib
import socket
import threading
from asyncio import Transport
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from lab.simulator.front import Front, Shared

T = TypeVar("T")
ANSWER_WITHIN_S = 60.0


class Connections:
    """The open connections of one broker, by the client's address."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], Transport] = {}

    def opened(self, transport: Transport) -> None:
        """A client has come."""
        self._open[_peer(transport)] = transport

    def closed(self, transport: Transport) -> None:
        """Forgets a connection that was closed."""
        self._open.pop(_peer(transport), None)

    def drop(self, client: tuple[str, int]) -> None:
        """Resets the connection of one client."""
        if transport := self._open.get(client):
            transport.abort()

    def drop_all(self) -> None:
        """Resets every connection."""
        for transport in list(self._open.values()):
            transport.abort()


def _peer(transport: Transport) -> tuple[str, int]:
    host, port = transport.get_extra_info("peername")[:2]
    return str(host), int(port)


def _protocol(connections: Connections) -> type[asyncio.Protocol]:
    """The protocol of uvicorn, which also tells who is connected: only so can a connection be reset."""

    class Known(HttpToolsProtocol):
        def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn types it
            connections.opened(transport)
            super().connection_made(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            connections.closed(self.transport)
            super().connection_lost(exc)

    return Known


TURNS_TO_CLOSE = 6
"""Turns of the event loop in which a connection that was accepted just before becomes known, and is closed."""


@dataclass(frozen=True, slots=True)
class Listener:
    """One broker that listens."""

    front: Front
    server: uvicorn.Server
    connections: Connections
    serving: "asyncio.Task[None]"
    sock: socket.socket

    async def kill(self) -> None:
        """From now on connections are refused, and those that were open are reset."""
        loop = asyncio.get_running_loop()
        for listening in (each for server in self.server.servers for each in server.sockets):
            loop.remove_reader(listening.fileno())
        # A server that is closed while it takes a connection leaves that open for ever (python/cpython#109564).
        for _ in range(TURNS_TO_CLOSE):
            await asyncio.sleep(0)
        for server in self.server.servers:
            server.close()
        self.sock.close()
        self.connections.drop_all()
        self.serving.cancel()
        await asyncio.gather(self.serving, return_exceptions=True)
        for _ in range(TURNS_TO_CLOSE):
            self.connections.drop_all()
            await asyncio.sleep(0)


async def listen(app: ASGIApp, broker_id: str, shared: Shared, sock: socket.socket) -> Listener:
    """Serves a broker's application on a bound socket, and returns once it does."""
    connections = Connections()
    front = Front(app, broker_id, shared, connections.drop)
    config = uvicorn.Config(
        front,
        http=_protocol(connections),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,  # each broker has a clock of its own
        proxy_headers=False,
        backlog=512,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    serving = asyncio.ensure_future(server.serve(sockets=[sock]))
    while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn sets a flag and no event
        await asyncio.sleep(0.005)
    if serving.done():
        serving.result()
    return Listener(front, server, connections, serving, sock)


def bound(host: str, port: int) -> socket.socket:
    """A socket on that port, or on a free one for 0.

    Raises:
        OSError: The port is in use.
    """
    # By name of the protocol: asyncio turns delayed sending (TCP_NODELAY) off for such sockets only.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"port {port} on {host} cannot be had ({error.strerror}): choose another") from error
    return sock


class LoopThread:
    """An event loop in a thread of its own; whoever has it may run things there."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="simulated-pulsar", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], within_s: float = ANSWER_WITHIN_S) -> T:
        """Runs a coroutine there and waits for its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(within_s)

    def call(self, work: Callable[..., T], *args: object, within_s: float = ANSWER_WITHIN_S) -> T:
        """Runs a function there and waits for its result."""

        async def working() -> T:
            return work(*args)

        return self.run(working(), within_s)

    def later(self, seconds: float, work: Callable[[], None]) -> None:
        """Runs a function there after a while."""
        self._loop.call_soon_threadsafe(self._loop.call_later, seconds, work)

    def close(self) -> None:
        """Ends the loop, with whatever still waits in it."""
        with contextlib.suppress(TimeoutError):
            self.run(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
