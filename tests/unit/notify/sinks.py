"""Receivers of messages on loopback: HTTP and SMTP servers that keep what they get, and answer as they are told."""

from __future__ import annotations

import json
import socketserver
import threading
from contextlib import contextmanager
from email import message_from_string, policy
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import EmailMessage


class Posted(NamedTuple):
    """A request."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class HttpSink(HTTPServer):
    """Keeps requests.

    Attributes:
        status: Status of the next answers.
        location: Where a redirect leads.
        drip_seconds: Pause between two bytes of the answer's head; 0: it comes at once.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Post)
        self.posted: list[Posted] = []
        self.status = 204
        self.location = ""
        self.drip_seconds = 0.0
        self.stopped = threading.Event()

    @property
    def port(self) -> int:
        """Port that the HTTP server listens on."""
        return int(self.server_address[1])


class _Post(BaseHTTPRequestHandler):
    server: HttpSink

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.posted.append(Posted(self.path, dict(self.headers), body))
        while self.server.drip_seconds and not self.server.stopped.wait(self.server.drip_seconds):
            try:
                self.wfile.write(b"X")
            except OSError:
                return
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.end_headers()

    do_GET = do_POST  # noqa: N815 - http.server's name

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        """Suppresses the server's log, as tests look at the requests that were posted."""


class SmtpSink(socketserver.ThreadingTCPServer):
    """Keeps mails; speaks as much SMTP as a client needs.

    Attributes:
        refuses: True: no mail is taken (451).
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Mail)
        self.mails: list[tuple[list[str], EmailMessage]] = []
        self.tries = 0
        self.refuses = False

    @property
    def port(self) -> int:
        """Port that the mail server listens on."""
        return int(self.server_address[1])


class _Mail(socketserver.StreamRequestHandler):
    server: SmtpSink

    def handle(self) -> None:
        self._say("220 sink")
        to: list[str] = []
        while line := self.rfile.readline().decode().strip():
            verb = line.split(":")[0].split(" ")[0].upper()
            if verb == "QUIT":
                self._say("221 bye")
                return
            if verb == "RCPT":
                to.append(line.partition(":")[2].strip("<> "))
            if verb == "DATA":
                self._say("354 go on")
                self._take(to)
                to = []
            else:
                self._say("250 ok")

    def _take(self, to: list[str]) -> None:
        lines = []
        while (line := self.rfile.readline().decode()) != ".\r\n":
            lines.append(line.removeprefix(".") if line.startswith("..") else line)
        self.server.tries += 1
        if self.server.refuses:
            self._say("451 later, with the secret-password in it")
            return
        self.server.mails.append((to, message_from_string("".join(lines), policy=policy.default)))
        self._say("250 taken")

    def _say(self, words: str) -> None:
        self.wfile.write(f"{words}\r\n".encode())


@contextmanager
def running(sink: HttpSink | SmtpSink) -> Iterator[None]:
    """Runs a sink in a thread."""
    thread = threading.Thread(target=sink.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        if isinstance(sink, HttpSink):
            sink.stopped.set()
        sink.shutdown()
        thread.join()
        sink.server_close()
