"""Words for a refused call: which credentials were sent, from where, and what the broker's status says about them.

A broker answers 401 by its web server's own page to whoever it does not know, and does not say why. To a role that it
knows, it gives a reason, by 401 or 403 (docs/pulsar-behaviour.md).
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pulsar_steward.model.units import time_in_words
from pulsar_steward.pulsar.logins import Basic, ClientCredentials

if TYPE_CHECKING:
    from pulsar_steward.pulsar.settings import AdminSettings

_UNAUTHORIZED = 401
_KINDS_OF_401 = {
    "token": "it has expired, is meant for another cluster, or is signed by another key",
    "password": "the user or the password is wrong",
    "certificate": "it stands for nobody there",
}
_OTHERWISE = "they are wrong, or it wants credentials of another kind"


def why_refused(settings: AdminSettings, token: str | None, status: int, *, reasoned: bool) -> str:
    """Why a broker refused a call, as far as that is known, with the remedy; no part of a secret is in it.

    Args:
        settings: Settings of the call.
        token: The token that was sent; None: another kind of credentials, or none.
        status: HTTP status: 401 or 403.
        reasoned: True if the broker gave a reason of its own, so that it knows who asked.
    """
    is_unknown = status == _UNAUTHORIZED and not reasoned
    if settings.token is None and settings.login is None and settings.client_cert_file is None:
        who = "this cluster" if is_unknown else "this call"
        by = f", and {who} demands some: give a superuser's token by {settings.origin}" if settings.origin else ""
        return f"no credentials were sent{by}"
    sent = f"{role_of(settings, token)}, from {settings.origin or 'these settings'},"
    if not is_unknown:
        return f"asked {sent} which may not do this: its role has to be a superuser's"
    ended = expired_at(token)
    if ended is not None:
        return f"asked {sent} which expired at {time_in_words(ended)}: have a new one made"
    return f"asked {sent} which the broker does not accept: {_KINDS_OF_401.get(_kind(settings), _OTHERWISE)}"


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
    return f"by a token for {subject!r}" if subject is not None else "by a token that names nobody"


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
