"""Translation of the HTTP libraries' errors into `AdminError`, so that none of them leaves the transport."""

from __future__ import annotations

import requests
from urllib3 import exceptions as urllib3_errors

from pulsar_steward.errors import AdminError, BrokenAnswer, TimedOut, TlsFailed, Unreachable


class NeverSent(Unreachable):
    """No connection was made, so nothing was sent: even a change may be sent to another broker."""


class Unusable(Exception):
    """A response that is not read any further; its only argument is the reason. Never leaves the transport."""


_WORDS: tuple[tuple[type[Exception], type[AdminError], str], ...] = (
    (requests.ConnectTimeout, NeverSent, "no connection within the time limit"),
    (requests.Timeout, TimedOut, "no answer within the time limit"),
    (urllib3_errors.TimeoutError, TimedOut, "the answer stopped within the time limit"),
    (TimeoutError, TimedOut, "the answer did not end within the total time limit"),
    # No `NeverSent`: TLS can also fail once the call has been sent, and the error does not tell.
    (requests.exceptions.SSLError, TlsFailed, "TLS failed: check the certificate and `ca_file`"),
    (urllib3_errors.ProtocolError, BrokenAnswer, "the answer was cut short"),
    (urllib3_errors.DecodeError, BrokenAnswer, "the answer's compression cannot be read"),
    (requests.ConnectionError, Unreachable, "the connection broke before an answer came"),
    (Exception, BrokenAnswer, "no usable answer"),
)
"""Error class and message for each error of the HTTP libraries; the first match counts, the last row matches all.

`requests` raises until the response's head is there, `urllib3` while its body is read.
"""


def in_our_words(error: Exception, method: str, path: str, broker: str) -> AdminError:
    """Translates an error of `requests`, `urllib3` or a socket; the caller chains the original as the cause."""
    if isinstance(error, requests.ConnectionError) and _never_connected(error):
        return NeverSent(method, path, broker, "no connection: refused, or the name does not resolve")
    if isinstance(error, Unusable):
        return BrokenAnswer(method, path, broker, f"the answer is not read any further: {error}")
    ours, words = next((ours, words) for theirs, ours, words in _WORDS if isinstance(error, theirs))
    return ours(method, path, broker, words)


def _never_connected(error: requests.ConnectionError) -> bool:
    cause = error.args[0] if error.args else None
    reason = getattr(cause, "reason", cause)
    return type(reason).__name__ in {"NewConnectionError", "NameResolutionError", "ConnectTimeoutError"}
