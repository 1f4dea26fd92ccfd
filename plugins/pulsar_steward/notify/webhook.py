"""Sending of a message by HTTP: one POST with JSON, within a time limit, only to the given address."""

from __future__ import annotations

import base64
import socket
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Timer
from typing import TYPE_CHECKING

from pulsar_steward.errors import NotDelivered

if TYPE_CHECKING:
    from pulsar_steward.notify.addresses import Webhook
    from pulsar_steward.notify.compose import Message

SECONDS = 10
"""Time limit in seconds for connecting, and for each part of the response."""

TOTAL_SECONDS = 30
"""Time limit in seconds for the whole call, however slowly the response arrives."""

ID_HEADER = "Idempotency-Key"
"""Header with the message's id, by which a receiver recognises a repeated message."""

_TAKEN = range(200, 300)
_ELSEWHERE = range(300, 400)


def post(webhook: Webhook, message: Message, *, seconds: float = SECONDS, total_seconds: float = TOTAL_SECONDS) -> None:
    """Sends a message; returns once the receiver has confirmed it.

    Raises:
        NotDelivered: If it is not confirmed; the receiver may have it anyway.
        ConfigurationError: If the certificates to trust cannot be read.
    """
    host, port, tls = webhook.address
    connection = (
        HTTPSConnection(host, port, timeout=seconds, context=webhook.trusted())
        if tls
        else HTTPConnection(host, port, timeout=seconds)
    )
    headers = {"Content-Type": "application/json", "User-Agent": "pulsar-steward", ID_HEADER: message.id}
    if webhook.login is not None:
        user, password = webhook.login
        secret = password.get_secret_value()
        basic = base64.b64encode(f"{user}:{secret}".encode()).decode()
        headers["Authorization"] = f"Basic {basic}" if user else f"Bearer {secret}"
    late = Timer(total_seconds, _cut, [connection])
    late.daemon = True
    with closing(connection):
        late.start()
        try:
            connection.request("POST", webhook.target, message.encoded(), headers)
            status = connection.getresponse().status
        except (OSError, HTTPException) as error:
            raise NotDelivered(f"{host}:{port} did not take it: {reason_of(error)}") from error
        finally:
            late.cancel()
    if status in _ELSEWHERE:
        raise NotDelivered(f"{host}:{port} answered {status}: redirects are not followed; name the address itself")
    if status not in _TAKEN:
        raise NotDelivered(f"{host}:{port} answered {status}")


def reason_of(error: BaseException) -> str:
    """Summary of another library's error: its kind, and the system's error text. Its own text may contain secrets."""
    said = error.strerror if isinstance(error, OSError) else None
    return f"{type(error).__name__}: {said}" if isinstance(said, str) else type(error).__name__


def _cut(connection: HTTPConnection) -> None:
    """Ends a call that takes too long: the thread that waits for its response gets an error."""
    with suppress(OSError, AttributeError):  # not connected yet, or already ended
        connection.sock.shutdown(socket.SHUT_RDWR)
