"""A broker that answers as a test tells it to, over real HTTP on loopback, and remembers what it was asked."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

MEMBERS = "/admin/v2/brokers"


@dataclass(frozen=True)
class Asked:
    """One request as it came over the wire; `target` is the path with its query, still quoted."""

    method: str
    target: str
    authorization: str | None
    body: bytes = field(default=b"", compare=False)

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]


Reply = Callable[["Handler"], None]


def answer(document: Any = None, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """A whole answer: a document as JSON, bytes as they are, or no body for None."""
    body = document if isinstance(document, bytes) else b"" if document is None else json.dumps(document).encode()

    def reply(handler: Handler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return reply


def redirect(target: str, status: int = 307) -> Reply:
    return answer(status=status, headers={"Location": target})


def raw(sent: bytes) -> Reply:
    """Exactly these bytes, after which the connection is closed."""

    def reply(handler: Handler) -> None:
        handler.close_connection = True
        handler.wfile.write(sent)

    return reply


def dripping(head: bytes, drop: bytes, every_seconds: float = 0.05) -> Reply:
    """A head, and then one drop after the other until the client goes away."""

    def reply(handler: Handler) -> None:
        handler.close_connection = True
        handler.wfile.write(head)
        while not handler.broker.stopping.wait(every_seconds):
            handler.wfile.write(drop)

    return reply


def silence(head: bytes = b"") -> Reply:
    """A head (or none), and then nothing for as long as the server lives."""

    def reply(handler: Handler) -> None:
        handler.close_connection = True
        handler.wfile.write(head)
        handler.broker.stopping.wait()

    return reply


class Handler(BaseHTTPRequestHandler):
    """Looks the reply up in its broker's script."""

    protocol_version = "HTTP/1.1"
    broker: ClassVar[ScriptedBroker]

    def handle(self) -> None:
        """Serves one connection; a client that goes away is no error here."""
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True

    def setup(self) -> None:
        """Remembers the connection, so that it can be ended from outside."""
        super().setup()
        self.broker.connections.append(self.connection)

    def finish(self) -> None:
        """Closes the connection, broken or not."""
        try:
            super().finish()
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Says nothing on the terminal."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = Asked(self.command, self.path, self.headers.get("Authorization"), body)
        self.broker.next_reply(asked)(self)

    do_GET = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815 - http.server finds them by these names


class ScriptedBroker:
    """A server on a free port of loopback; by default it is the only member of its cluster, and knows nothing else."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.connections: list[socket.socket] = []
        self.stopping = threading.Event()
        self._replies: dict[str, list[Reply]] = {}
        handler = type("BoundHandler", (Handler,), {"broker": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = False  # so that closing waits for them
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        self.on(MEMBERS, answer([self.id]))

    @property
    def id(self) -> str:
        """``host:port``."""
        return f"127.0.0.1:{self._server.server_port}"

    @property
    def url(self) -> str:
        """``http://host:port``."""
        return f"http://{self.id}"

    def on(self, path: str, *replies: Reply) -> None:
        """Answers requests for a path (quoted, without query) by these replies in turn; the last one stays."""
        self._replies[path] = list(replies)

    def next_reply(self, asked: Asked) -> Reply:
        """Notes the request and takes the reply that is due."""
        self.asked.append(asked)
        replies = self._replies.get(asked.path)
        if replies is None:
            return answer({"reason": f"not in the script: {asked.path}"}, status=404)
        return replies.pop(0) if len(replies) > 1 else replies[0]

    def asked_for(self, path: str) -> list[Asked]:
        """The requests for a path so far."""
        return [asked for asked in self.asked if asked.path == path]

    def close(self) -> None:
        """Ends the server, its threads and every connection."""
        self.stopping.set()
        self._server.shutdown()
        self._thread.join()
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:  # closed already
                continue
        self._server.server_close()


@contextmanager
def scripted_brokers() -> Iterator[Callable[[], ScriptedBroker]]:
    """Starts brokers, and ends them when the block is over."""
    with ExitStack() as started:

        def start() -> ScriptedBroker:
            broker = ScriptedBroker()
            started.callback(broker.close)
            return broker

        yield start
