"""Translation of the HTTP libraries' errors into `AdminError`, so that none of them leaves the transport."""

from __future__ import annotations

import base64
import json
import ssl
from datetime import UTC, datetime
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
from pulsar_steward.model.units import time_in_words
from pulsar_steward.pulsar.logins import Basic, ClientCredentials

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.pulsar.settings import AdminSettings


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


# A broker answers 401 by its web server's own page to whoever it does not know, and does not say why. To a role
# that it knows, it gives a reason, by 401 or 403 (docs/pulsar-behaviour.md).


_UNAUTHORIZED = 401
_KINDS_OF_401 = {
    "token": "it has expired, is meant for another cluster, or is signed by another key",
    "password": "the user or the password is wrong",
    "certificate": "it stands for nobody there",
}
_OTHERWISE = "they are wrong, or it wants credentials of another kind"


def why_refused(settings: AdminSettings, token: str | None, status: int, *, reasoned: bool) -> tuple[str, str]:
    """Why a broker refused a call, as far as that is known, and the remedy; no part of a secret is in either.

    Args:
        settings: Settings of the call.
        token: The token that was sent; None: another kind of credentials, or none.
        status: HTTP status: 401 or 403.
        reasoned: True if the broker gave a reason of its own, so that it knows who asked.
    """
    by = f" by {settings.origin}" if settings.origin else ""
    is_unknown = status == _UNAUTHORIZED and not reasoned
    if settings.token is None and settings.login is None and settings.client_cert_file is None:
        who = "this cluster" if is_unknown else "this call"
        if not by:  # of a server that is no broker
            return "no credentials were sent", ""
        return f"no credentials were sent, and {who} demands some", f"give a superuser's token{by}"
    sent = f"{role_of(settings, token)}, from {settings.origin or 'these settings'},"
    if not is_unknown:
        return (
            f"asked {sent} which may not do this: its role has to be a superuser's",
            f"give a superuser's credentials{by}",
        )
    ended = expired_at(token)
    if ended is not None:
        return f"asked {sent} which expired at {time_in_words(ended)}", f"have a new one made, and give it{by}"
    words = f"asked {sent} which the broker does not accept: {_KINDS_OF_401.get(_kind(settings), _OTHERWISE)}"
    return words, f"give valid credentials of a superuser{by}"


def role_of(settings: AdminSettings, token: str | None = None) -> str:
    """Whom the credentials stand for: of a JSON web token, the subject; its signature is not verified.

    Args:
        settings: Settings with the credentials.
        token: The token that was sent; None: the one in the settings.
    """
    login = settings.login
    if isinstance(login, Basic):
        return f"as user {login.username!r}, by a password"
    if isinstance(login, ClientCredentials):
        return f"by an access token that {login.url} gave to client {login.client_id!r}"
    if login is not None:
        return f"by headers of the plug-in {login.name!r}"
    if settings.token is None:
        return "by a client certificate" if settings.client_cert_file else "without a token"
    subject = _claims(token or settings.token.get_secret_value()).get("sub")
    return f"by a token for {subject!r}" if subject is not None else "by a token without a subject that we could read"


def expired_at(token: str | None) -> datetime | None:
    """When a JSON web token expired; None: it has not, or does not say so. Brokers only answer that they refuse it."""
    until = _claims(token or "").get("exp")
    if isinstance(until, (int, float)) and 0 < until < datetime.now(UTC).timestamp():
        return datetime.fromtimestamp(until, UTC)
    return None


def _kind(settings: AdminSettings) -> str:
    login = settings.login
    if settings.token is not None or isinstance(login, ClientCredentials):
        return "token"
    if isinstance(login, Basic):
        return "password"
    return "certificate" if login is None else "headers"


def _claims(token: str) -> dict[str, Any]:
    """Claims of a JSON web token; empty if the token is none."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, LookupError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}
