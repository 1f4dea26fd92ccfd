"""Address and credentials of a cluster's admin API, also passed to other processes as environment variables."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from pydantic import SecretStr

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.policy.schema import AdminPolicy
from pulsar_steward.pulsar.addresses import (
    AddressMap,
    address_map,
    base_of,
    check_url,
    is_loopback,
    is_url,
    reached_by,
    travels_unencrypted,
)
from pulsar_steward.pulsar.logins import SENDABLE, Basic, ClientCredentials, Login, login_as_json, login_from_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

VARIABLES = "STEWARD_ADMIN_"
"""Prefix of each variable's name."""

TOKEN_VARIABLE = f"{VARIABLES}TOKEN"
LOGIN_VARIABLE = f"{VARIABLES}LOGIN"
_URLS, _ADDRESS_MAP = f"{VARIABLES}URLS", f"{VARIABLES}ADDRESS_MAP"
_TEXTS = ("ca_file", "token_file", "client_cert_file", "client_key_file", "proxy", "origin")
_FLAGS = ("allow_unencrypted_token", "front_door")
_YES = "true"


@dataclass(frozen=True)
class AdminSettings:
    """Address and credentials of a cluster's admin API; safe to print, as secrets are masked.

    Attributes:
        urls: ``http://host:port`` of one or more brokers (or a balancer in front of them), tried in turn.
        token: Bearer token of a superuser, or None if the cluster requires none.
        limits: Time limits and tries.
        ca_file: Certificates to trust for ``https``; None: the system's.
        allow_unencrypted_token: True if the token, or another secret, may be sent over ``http`` to another machine.
        token_file: File of the token, read again when it changes; None: the token is fixed.
        login: Credentials other than a token, or None.
        client_cert_file: Client certificate (mutual TLS), PEM; sent to brokers that ask for one.
        client_key_file: Its key, PEM without a password; None: it is in the certificate's file.
        address_map: URLs of brokers with other reachable addresses than the advertised ones.
        proxy: ``http://host:port`` of a forward proxy for all calls.
        front_door: True if the URLs lead to a balancer or proxy, and no single broker can be reached.
        origin: Option, variable or connection that the credentials are from, or that would give some; for messages.
    """

    urls: tuple[str, ...]
    token: SecretStr | None = None
    limits: AdminPolicy = field(default_factory=AdminPolicy)
    ca_file: str | None = None
    allow_unencrypted_token: bool = False
    token_file: str | None = None
    login: Login | None = None
    client_cert_file: str | None = None
    client_key_file: str | None = None
    address_map: AddressMap = ()
    proxy: str | None = None
    front_door: bool = False
    origin: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.urls:
            raise ConfigurationError("no admin URL: give at least one, such as http://broker:8080")
        for url in self.urls:
            check_url(url)
        self._check_login()
        if self.proxy is not None:
            _check_proxy(self.proxy)
        if self.front_door and self.address_map:
            raise ConfigurationError(
                "`front_door` says that no single broker can be reached, and `address_map` how they are: leave one out"
            )
        for url in [*self.urls, *(reached for _, reached in self.address_map if "*" not in reached)]:
            self.token_for(url)

    def _check_login(self) -> None:
        if self.token is not None and not SENDABLE.fullmatch(self.token.get_secret_value()):
            raise ConfigurationError(
                "the admin token is empty or holds white space or other characters that no header may carry: "
                "give it without a line break at its end, or none at all"
            )
        if self.token is not None and self.login is not None:
            raise ConfigurationError("a token and other credentials are given: leave one of them out")
        if self.token_file is not None and self.token is None:
            raise ConfigurationError("`token_file` is given, and no token was read from it")
        if self.client_key_file is not None and self.client_cert_file is None:
            raise ConfigurationError("`client_key_file` is given without `client_cert_file`: give both")
        if isinstance(self.login, ClientCredentials) and self._leaves_in_clear(self.login.url):
            raise ConfigurationError(
                f"the client secret would travel unencrypted to {urlsplit(self.login.url).netloc}: use the issuer's"
                ' https address, or allow it with `"allow_unencrypted_token": true`'
            )

    @property
    def schemes(self) -> frozenset[str]:
        """Schemes of the URLs: ``http``, ``https`` or both."""
        return frozenset(urlsplit(url).scheme for url in self.urls)

    @property
    def bases(self) -> tuple[str, ...]:
        """The URLs without a path or a trailing slash."""
        return tuple(map(base_of, self.urls))

    @property
    def secrets(self) -> tuple[str, ...]:
        """Secrets that are known before any call."""
        if self.token is not None:
            return (self.token.get_secret_value(),)
        return self.login.secrets if self.login is not None else ()

    def named_base(self, advertised: str) -> str | None:
        """URL in these settings for a broker's advertised ``host:port``; None: they have none."""
        if (mapped := reached_by(self.address_map, advertised)) is not None:
            return mapped
        return next((base for base in self.bases if urlsplit(base).netloc.lower() == advertised.lower()), None)

    def without_secrets(self, urls: tuple[str, ...]) -> AdminSettings:
        """Settings for a server that is no broker: the same limits, trusted certificates and proxy, but no secrets.

        Args:
            urls: Addresses of that server.
        """
        return AdminSettings(urls, None, self.limits, self.ca_file, proxy=self.proxy)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], limits: AdminPolicy) -> Self:
        """Reads the settings that `in_environment` wrote in another process.

        Raises:
            ConfigurationError: If the environment contains no address, or an invalid one.
        """
        urls = tuple(url.strip() for url in environment.get(_URLS, "").split(",") if url.strip())
        if not urls:
            raise ConfigurationError(f"{_URLS} is not set: give at least one address, such as http://broker:8080")
        token, login = environment.get(TOKEN_VARIABLE), environment.get(LOGIN_VARIABLE)
        texts = {name: environment.get(_variable(name)) or None for name in _TEXTS}
        flags = {name: environment.get(_variable(name)) == _YES for name in _FLAGS}
        return cls(
            urls,
            SecretStr(token) if token else None,
            limits,
            ca_file=texts["ca_file"],
            allow_unencrypted_token=flags["allow_unencrypted_token"],
            token_file=texts["token_file"],
            login=login_from_json(login) if login else None,
            client_cert_file=texts["client_cert_file"],
            client_key_file=texts["client_key_file"],
            address_map=map_in(environment.get(_ADDRESS_MAP)),
            proxy=texts["proxy"],
            front_door=flags["front_door"],
            origin=texts["origin"] or f"the variable {TOKEN_VARIABLE}",
        )

    def in_environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Returns an environment with these settings, and without settings of another cluster.

        Arguments are not used, as other users can read them.
        """
        written = {name: value for name, value in environment.items() if not name.startswith(VARIABLES)}
        written[_URLS] = ",".join(self.urls)
        if self.token is not None:
            written[TOKEN_VARIABLE] = self.token.get_secret_value()
        if self.login is not None:
            written[LOGIN_VARIABLE] = login_as_json(self.login)
        if self.address_map:
            written[_ADDRESS_MAP] = json.dumps(dict(self.address_map))
        written |= {_variable(name): value for name in _TEXTS if (value := getattr(self, name)) is not None}
        return written | {_variable(name): _YES for name in _FLAGS if getattr(self, name)}

    def token_for(self, url: str) -> SecretStr | None:
        """Token to send to an address, or None if there is none; other secrets are checked in the same way.

        Raises:
            ConfigurationError: If a secret would be sent unencrypted, and this is not allowed.
        """
        if (self.token is not None or self.login is not None) and self._leaves_in_clear(url):
            what = "password" if isinstance(self.login, Basic) else "token"
            remedy = TLS_ENDS_BEFORE if self.schemes == {"https"} else REMEDY
            raise ConfigurationError(
                f"the admin {what} would travel unencrypted to {urlsplit(url).netloc}: {remedy}"
                " (on the command line: --allow-unencrypted-token)"
            )
        return self.token

    def _leaves_in_clear(self, url: str) -> bool:
        """True if others, such as a proxy, could read a secret on its way to an address, and this is not allowed."""
        if self.allow_unencrypted_token:
            return False
        by_proxy = self.proxy is not None and not is_loopback(urlsplit(self.proxy).hostname or "")
        return travels_unencrypted(url) or (by_proxy and urlsplit(url).scheme != "https")


_ALLOW = 'or allow it with `"allow_unencrypted_token": true` in the connection\'s extra'

REMEDY = f"use the TLS address (with `ca_file` where the certificate is your own), {_ALLOW}"
"""Remedy for a token that would be sent unencrypted."""

TLS_ENDS_BEFORE = (
    "that broker has no port for TLS, as where TLS ends before it: name the https address that reaches it by"
    f" `address_map` (--address-map), {_ALLOW}"
)
"""Remedy if only https addresses are given, but the brokers behind them have no port for TLS."""


def map_in(text: str | None) -> AddressMap:
    """Reads an address map from JSON; no text is an empty map.

    Raises:
        ConfigurationError: If it is not valid.
    """
    try:
        given = json.loads(text) if text else {}
    except ValueError:
        given = None
    return address_map(given)


def way_in(environment: Mapping[str, str]) -> tuple[str | None, ...]:
    """What decides where a broker's address leads, of an environment that `AdminSettings.in_environment` wrote.

    Behind a front door that is the door's own address. Two environments of one way reach the same broker by its name.
    """
    way = [environment.get(each) for each in (_ADDRESS_MAP, _variable("proxy"), _variable("front_door"))]
    return (*way, environment.get(_URLS)) if environment.get(_variable("front_door")) else tuple(way)


def secrets_in(environment: Mapping[str, str]) -> Iterable[str]:
    """Secrets that `AdminSettings.in_environment` wrote to an environment."""
    if token := environment.get(TOKEN_VARIABLE):
        yield token
    if login := environment.get(LOGIN_VARIABLE):
        yield from login_from_json(login).secrets


def _variable(name: str) -> str:
    return f"{VARIABLES}{name.upper()}"


def _check_proxy(proxy: str) -> None:
    shown = proxy.rpartition("@")[2]
    if shown != proxy:
        raise ConfigurationError(f"`proxy` for {shown} holds a user or password, which is not supported: name another")
    if not is_url(proxy) or urlsplit(proxy).scheme != "http":
        raise ConfigurationError(f"`proxy` {proxy!r} is no forward proxy: expected http://host:port")
