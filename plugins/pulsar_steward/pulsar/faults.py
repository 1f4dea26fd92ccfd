"""Translation of the HTTP libraries' errors into `AdminError`, so that none of them leaves the transport."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import requests
from urllib3 import exceptions as urllib3_errors

from pulsar_steward.errors import (
    AdminError,
    BrokenAnswer,
    ClientCertificateWanted,
    HandshakeCut,
    NeverSent,
    NoTls,
    OnlyTls,
    ProxyFailed,
    TimedOut,
    TlsFailed,
    Unreachable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


class Unusable(Exception):
    """A response that is not read further; its only argument is the reason. Never leaves the transport."""


class ProxyRefused(Exception):
    """The forward proxy refuses a connection; its only argument is the proxy's reason. Never leaves the transport."""


TLS_WORDS: dict[type[Unreachable], str] = {
    TlsFailed: "TLS failed: check the certificate and `ca_file`",
    NoTls: "TLS failed: what answers there speaks none: is that the port for http?",
    ClientCertificateWanted: (
        "TLS failed: the server takes no client without a certificate that it trusts: check `client_cert_file` and"
        " `client_key_file`"
    ),
    HandshakeCut: (
        "TLS failed: the server broke it off: it may want a client certificate (`client_cert_file`), or speak no TLS"
    ),
    OnlyTls: "what answers there speaks TLS only: use https",
}
"""Message for each way in which TLS fails."""

NO_PROXY = "no connection: the forward proxy cannot be reached: check `proxy`"
PROXY_REFUSES = "no connection: the forward proxy (`proxy`) refuses it"

_TLS_REASONS: tuple[tuple[str, type[TlsFailed]], ...] = (
    ("WRONG_VERSION_NUMBER", NoTls),
    ("HTTP_REQUEST", NoTls),
    ("RECORD_LAYER_FAILURE", NoTls),
    ("UNKNOWN_PROTOCOL", NoTls),
    ("ALERT_CERTIFICATE_REQUIRED", ClientCertificateWanted),
    ("ALERT_BAD_CERTIFICATE", ClientCertificateWanted),
    ("ALERT_UNKNOWN_CA", ClientCertificateWanted),
    ("ALERT_CERTIFICATE", ClientCertificateWanted),
    ("ALERT_HANDSHAKE_FAILURE", ClientCertificateWanted),
)
"""Error class by part of OpenSSL's reason. An alert is from the server, which refuses this client."""

_TLS_ALERT = "\\x15\\x03"
"""Start of a TLS server's response to plain HTTP, in Python's notation for bytes."""

_WORDS: tuple[tuple[type[Exception], type[AdminError], str], ...] = (
    (requests.ConnectTimeout, NeverSent, "no connection within the time limit"),
    (requests.Timeout, TimedOut, "no answer within the time limit"),
    (urllib3_errors.TimeoutError, TimedOut, "the answer stopped within the time limit"),
    (TimeoutError, TimedOut, "the answer did not end within the total time limit"),
    # Not `NeverSent`: TLS can also fail after the call was sent, and the error does not tell.
    (requests.exceptions.SSLError, TlsFailed, TLS_WORDS[TlsFailed]),
    (urllib3_errors.ProtocolError, BrokenAnswer, "the answer was cut short"),
    (urllib3_errors.DecodeError, BrokenAnswer, "the answer's compression cannot be read"),
    (requests.ConnectionError, Unreachable, "the connection broke before an answer came"),
    (Exception, BrokenAnswer, "no usable answer"),
)
"""Error class and message for each error of the HTTP libraries; the first match counts, the last row matches all.

`requests` raises up to the response's head, `urllib3` while the body is read.
"""


def in_our_words(error: Exception, method: str, path: str, broker: str, *, left: bool = False) -> AdminError:
    """Translates an error of `requests`, `urllib3` or a socket; the caller chains the original as the cause.

    Args:
        error: The error.
        method: Method of the call.
        path: Path of the call.
        broker: ``host:port`` of the call.
        left: True if the request, or a part of it, was sent. Then the result is never `NeverSent`: for a connection
            that breaks later, the libraries may also report that the proxy was not reached.
    """
    if not left and (never := _never_sent(error)) is not None:
        kind, words = never
        return kind(method, path, broker, words)
    if (failed := _tls_failure(error)) is not None:
        return failed(method, path, broker, TLS_WORDS[failed])
    if isinstance(error, Unusable):
        return BrokenAnswer(method, path, broker, f"the answer is not read any further: {error}")
    ours, words = next((ours, words) for theirs, ours, words in _WORDS if isinstance(error, theirs))
    return (Unreachable if left and issubclass(ours, NeverSent) else ours)(method, path, broker, words)


def _never_sent(error: Exception) -> tuple[type[NeverSent], str] | None:
    """Error class and message if no connection was made; None: one was made, or it is not known."""
    if isinstance(error, ProxyRefused):
        return ProxyFailed, f"{PROXY_REFUSES}: {error}"
    if not isinstance(error, requests.ConnectionError):
        return None
    cause = error.args[0] if error.args else None
    reason: Any = getattr(cause, "reason", cause)
    match type(reason).__name__:
        case "ProxyError":
            return ProxyFailed, NO_PROXY
        case "NameResolutionError":
            words = "no connection: the name does not resolve"
        case "ConnectTimeoutError":
            words = "no connection within the time limit"
        case "NewConnectionError" if isinstance(reason.__cause__, ConnectionRefusedError):
            words = "no connection: refused"
        case "NewConnectionError":
            words = "no connection: nothing leads to that address"
        case _:
            return None
    return NeverSent, words


def _tls_failure(error: Exception) -> type[Unreachable] | None:
    """Error class for the TLS library's reason; None: the reason is not in the table."""
    for cause in _causes(error):
        reason = str(getattr(cause, "reason", "")) if isinstance(cause, ssl.SSLError) else ""
        for part, failed in _TLS_REASONS:
            if part in reason:
                return failed
        if isinstance(cause, ssl.SSLEOFError):
            return HandshakeCut
    answered = type(error) is requests.ConnectionError and _TLS_ALERT in str(error)
    return OnlyTls if answered else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes, including those in the arguments of `urllib3`'s errors."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        inner = (each.__cause__, each.__context__, getattr(each, "reason", None), *each.args)
        waiting += [one for one in inner if isinstance(one, BaseException)]
