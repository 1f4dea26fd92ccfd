"""Address and credentials of a cluster's admin API, also passed to other processes as environment variables."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from pydantic import SecretStr

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.policy.schema import AdminPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLES = "STEWARD_ADMIN_"
"""Prefix of each variable's name."""

_URLS, TOKEN_VARIABLE, _CA_FILE, _ALLOWED = (
    f"{VARIABLES}{name}" for name in ("URLS", "TOKEN", "CA_FILE", "ALLOW_UNENCRYPTED_TOKEN")
)
_YES = "true"
_TOKEN = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True)
class AdminSettings:
    """Address and credentials of a cluster's admin API; safe to print, as the token is masked.

    Attributes:
        urls: ``http://host:port`` of one or more brokers (or a balancer in front of them), tried in turn.
        token: Bearer token of a superuser, or None if the cluster requires none.
        limits: Time limits and tries.
        ca_file: Certificates to trust for ``https``; None: the system's.
        allow_unencrypted_token: True if the token may be sent over ``http`` to another machine.
    """

    urls: tuple[str, ...]
    token: SecretStr | None = None
    limits: AdminPolicy = field(default_factory=AdminPolicy)
    ca_file: str | None = None
    allow_unencrypted_token: bool = False

    def __post_init__(self) -> None:
        if not self.urls:
            raise ConfigurationError("no admin URL: give at least one, such as http://broker:8080")
        for url in self.urls:
            _check_url(url)
        if len({urlsplit(url).scheme for url in self.urls}) > 1:
            raise ConfigurationError("the admin URLs mix http and https: use one of them")
        if self.token is not None and not _TOKEN.fullmatch(self.token.get_secret_value()):
            raise ConfigurationError(
                "the admin token is empty or holds white space or other characters that no header may carry: "
                "give it without a line break at its end, or none at all"
            )
        for url in self.urls:
            self.token_for(url)

    @property
    def scheme(self) -> str:
        """``http`` or ``https``; the same for every URL."""
        return urlsplit(self.urls[0]).scheme

    @property
    def bases(self) -> tuple[str, ...]:
        """The URLs without a path or a trailing slash."""
        return tuple(f"{self.scheme}://{urlsplit(url).netloc}" for url in self.urls)

    def base_of(self, broker: str) -> str:
        """URL of a broker by its id (``host:webport``)."""
        return f"{self.scheme}://{broker}"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], limits: AdminPolicy) -> Self:
        """Reads the settings that `in_environment` wrote in another process.

        Raises:
            ConfigurationError: If the environment holds no address, or an invalid one.
        """
        urls = tuple(url.strip() for url in environment.get(_URLS, "").split(",") if url.strip())
        if not urls:
            raise ConfigurationError(f"{_URLS} is not set: give at least one address, such as http://broker:8080")
        token = environment.get(TOKEN_VARIABLE)
        return cls(
            urls=urls,
            token=SecretStr(token) if token else None,
            limits=limits,
            ca_file=environment.get(_CA_FILE) or None,
            allow_unencrypted_token=environment.get(_ALLOWED) == _YES,
        )

    def in_environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Returns an environment with these settings, and without any that it had about another cluster.

        They are not passed as arguments, which other users can read.
        """
        written = {name: value for name, value in environment.items() if not name.startswith(VARIABLES)}
        written[_URLS] = ",".join(self.urls)
        if self.token is not None:
            written[TOKEN_VARIABLE] = self.token.get_secret_value()
        if self.ca_file is not None:
            written[_CA_FILE] = self.ca_file
        if self.allow_unencrypted_token:
            written[_ALLOWED] = _YES
        return written

    def token_for(self, url: str) -> SecretStr | None:
        """Token to send to an address, or None if there is none.

        Raises:
            ConfigurationError: If it would travel unencrypted, and nobody allowed that.
        """
        if self.token is not None and not self.allow_unencrypted_token and travels_unencrypted(url):
            raise ConfigurationError(
                f"the admin token would travel unencrypted to {urlsplit(url).netloc}: {REMEDY}"
                " (on the command line: --allow-unencrypted-token)"
            )
        return self.token


REMEDY = (
    "use the TLS address (with `ca_file` where the certificate is your own), or allow it with"
    ' `"allow_unencrypted_token": true` in the connection\'s extra'
)
"""Remedy for a token that would be sent unencrypted."""


def travels_unencrypted(url: str) -> bool:
    """True if data sent to an address (``scheme://host:port``) leaves this machine as plain text."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return True
    return parts.scheme not in {"https", "pulsar+ssl"} and not _is_loopback(parts.hostname or "")


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def _check_url(url: str) -> None:
    """Rejects an invalid admin URL, without repeating credentials that precede an ``@``."""
    shown = url.rpartition("@")[2]
    if shown != url:
        raise ConfigurationError(f"the admin URL for {shown} holds a user or password: use a token")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigurationError(f"{url!r} is not an admin URL: expected http://host:port or https://host:port")
