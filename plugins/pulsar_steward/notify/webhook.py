"""Sending of a message by HTTP: one POST with JSON, within a time limit, to no other address than the one named."""

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
"""Time limit for connecting, and for each part of the answer."""

TOTAL_SECONDS = 30
"""Time limit for the whole call, however slowly the answer comes."""

ID_HEADER = "Idempotency-Key"
"""Header with the message's id, by which a receiver knows a message that comes twice."""

_TAKEN = range(200, 300)
_ELSEWHERE = range(300, 400)


def post(webhook: Webhook, message: Message, *, seconds: float = SECONDS, total_seconds: float = TOTAL_SECONDS) -> None:
    """Sends a message; returns once the receiver said that it has it.

    Raises:
        NotDelivered: If it did not; whether it has it all the same is not known then.
        ConfigurationError: If the certificates to trust cannot be read.
    """
    host, port, tls = webhook.address
    connection = (
        HTTPSConnection(host, port, timeout=seconds, context=webhook.trusted())
        if tls
        else HTTPConnection(host, port, timeout=seconds)
    )
    late = Timer(total_seconds, _cut, [connection])
    late.daemon = True
    with closing(connection):
        late.start()
        try:
            connection.request("POST", webhook.target, message.encoded(), _headers(webhook, message))
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
    """An error of another library in short: its kind, and what the system says of it. Its own text may hold secrets."""
    said = error.strerror if isinstance(error, OSError) else None
    return f"{type(error).__name__}: {said}" if isinstance(said, str) else type(error).__name__


def _headers(webhook: Webhook, message: Message) -> dict[str, str]:
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "pulsar-steward",
        ID_HEADER: message.id,
    }
    if webhook.login is not None:
        user, password = webhook.login
        secret = password.get_secret_value()
        basic = base64.b64encode(f"{user}:{secret}".encode()).decode()
        headers["Authorization"] = f"Basic {basic}" if user else f"Bearer {secret}"
    return headers


def _cut(connection: HTTPConnection) -> None:
    """Ends a call that takes too long: whoever waits for its answer gets an error."""
    with suppress(OSError, AttributeError):  # not connected yet, or over by now
        connection.sock.shutdown(socket.SHUT_RDWR)
