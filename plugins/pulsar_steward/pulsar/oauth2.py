"""OAuth2 client credentials: requests access tokens from an issuer, and renews them before they expire (RFC 6749, 4.4).

The client secret is sent only to the issuer in the settings: no redirect is followed, and a token endpoint on another
host or port is refused. Access tokens are sent to the same addresses as fixed tokens
(`pulsar_steward.pulsar.transport`).
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import msgspec

from pulsar_steward.decoding import decode
from pulsar_steward.errors import (
    AdminError,
    ConfigurationError,
    IssuerUnavailable,
    NoAccessToken,
    ServerError,
    TooManyRequests,
    error_for_status,
)
from pulsar_steward.pulsar.addresses import DEFAULT_PORTS, base_of, is_url
from pulsar_steward.pulsar.credentials import PluginHeaders, TokenFile, Tokens, Unchanging, basic
from pulsar_steward.pulsar.exchange import Exchange
from pulsar_steward.pulsar.faults import Unusable
from pulsar_steward.pulsar.logins import SENDABLE, Basic, ClientCredentials
from pulsar_steward.pulsar.mask import mask_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.pulsar.credentials import Credential
    from pulsar_steward.pulsar.exchange import Response
    from pulsar_steward.pulsar.settings import AdminSettings

log = logging.getLogger(__name__)

T = TypeVar("T")

DISCOVERY = "/.well-known/openid-configuration"
ISSUER = "the issuer"
"""Name of the server for access tokens in messages."""

_AHEAD = 0.2
"""A token is renewed when this share of its lifetime is left."""

_AHEAD_AT_MOST_SECONDS = 60
_RETRY_SECONDS = 5.0
"""Pause after a failed request for the next token, while the present token is valid."""


class _Discovered(msgspec.Struct):
    token_endpoint: str


class _Given(msgspec.Struct):
    access_token: str
    token_type: str = "Bearer"  # noqa: S105 - the standard's name of a kind
    expires_in: float | None = None


class _Refusal(msgspec.Struct):
    error: str = ""
    error_description: str = ""


def credential_of(settings: AdminSettings) -> Credential:
    """Credential for these settings; the same object for every broker, so that tokens are requested once.

    Raises:
        ConfigurationError: If they name a plug-in that is not installed.
    """
    return _credential_of(replace(settings, urls=("https://any",), address_map=(), front_door=False))


@lru_cache(maxsize=32)
def _credential_of(settings: AdminSettings) -> Credential:
    login = settings.login
    if isinstance(login, Basic):
        return basic(login)
    if isinstance(login, ClientCredentials):
        return AccessTokens(settings, login)
    if login is not None:
        return PluginHeaders(login.name)
    if settings.token is None:
        return Unchanging()
    token = settings.token.get_secret_value()
    return TokenFile(settings.token_file, token) if settings.token_file else Unchanging(f"Bearer {token}", token)


class AccessTokens(Tokens):
    """Access tokens of one issuer for one cluster."""

    def __init__(self, settings: AdminSettings, login: ClientCredentials) -> None:
        super().__init__(*login.secrets)
        self._login = login
        urls = (base_of(login.url),)
        self._settings = replace(settings.without_secrets(urls), ca_file=login.ca_file)
        self._token = ""
        self._renew_at = self._expires_at = float("-inf")

    def _present(self) -> str:
        now = time.monotonic()
        if now < self._renew_at:
            return self._token
        try:
            return self._anew()
        except IssuerUnavailable as error:
            if now >= self._expires_at:
                raise
            log.warning("the access token is still valid, and is not renewed for now: %s", error)
            self._renew_at = now + _RETRY_SECONDS
            return self._token

    def _anew(self) -> str:
        login = self._login
        form = {
            "grant_type": "client_credentials",
            "client_id": login.client_id,
            "client_secret": login.client_secret.get_secret_value(),
            "audience": login.audience,
            "scope": login.scope,
        }
        # Access tokens are not masked here: an issuer may give the same one again.
        with Exchange(self._settings, Unchanging(None, *login.secrets)) as exchange:
            url = login.token_url or self._discovered(exchange)
            sent = {name: value for name, value in form.items() if value is not None}
            given = self._answer(exchange, "POST", url, _Given, sent)
        if given.token_type.lower() != "bearer" or not SENDABLE.fullmatch(given.access_token):
            raise _failure(NoAccessToken, "POST", url, "gave something else than a bearer token")
        lives = float("inf") if given.expires_in is None else given.expires_in
        self._token = given.access_token
        self._expires_at = time.monotonic() + lives
        self._renew_at = self._expires_at - max(0.0, min(lives * _AHEAD, _AHEAD_AT_MOST_SECONDS))
        return self._token

    def _discovered(self, exchange: Exchange) -> str:
        """Token endpoint of the issuer, which has to be on its own host and port."""
        url = self._login.url.rstrip("/") + DISCOVERY
        told = self._answer(exchange, "GET", url, _Discovered).token_endpoint
        if not is_url(told) or _place(told) != _place(url):
            raise ConfigurationError(
                f"{ISSUER} {urlsplit(url).netloc} says that tokens are given elsewhere than at itself: if that is"
                " right, name that address as `token_url` in place of `issuer_url`"
            )
        return told

    def _answer(
        self, exchange: Exchange, method: str, url: str, expected: type[T], form: Mapping[str, str] | None = None
    ) -> T:
        """Response of the issuer as this type.

        Raises:
            NoAccessToken: If it refuses, cannot be reached, or sends another type; no error contains its content.
        """
        try:
            response = exchange.whole(method, url, form=form)
        except AdminError as error:
            raise _failure(IssuerUnavailable, method, url, f"cannot be asked: {error.reason}") from error
        if not response.succeeded:
            passing = error_for_status(response.status) in {ServerError, TooManyRequests}
            kind = IssuerUnavailable if passing else NoAccessToken
            raise _failure(kind, method, url, f"refuses: {_words(response, self.secrets)}")
        try:
            return decode(response.body, expected, strict=False)  # some write numbers as text
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass  # the original error may contain a token, so it is not chained
        raise _failure(NoAccessToken, method, url, "gave an answer that cannot be read")


def _words(response: Response, secrets: tuple[str, ...]) -> str:
    """Reason in an issuer's error response (RFC 6749, 5.2), without secrets; or else the status line's phrase."""
    try:
        told = decode(response.body, _Refusal)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return response.phrase
    words = ": ".join(" ".join(each.split()) for each in (told.error, told.error_description) if each)
    try:
        return mask_of(*secrets).text(words) or response.phrase
    except Unusable:
        return response.phrase


def _failure(kind: type[NoAccessToken], method: str, url: str, words: str) -> NoAccessToken:
    parts = urlsplit(url)
    return kind(method, parts.path, parts.netloc, f"{ISSUER} {words}")


def _place(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or DEFAULT_PORTS.get(parts.scheme)
