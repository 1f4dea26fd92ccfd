"""Where a cluster's admin API is and how to be let in."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.policy.schema import AdminPolicy

if TYPE_CHECKING:
    from pydantic import SecretStr

_TOKEN = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True)
class AdminSettings:
    """Where a cluster's admin API is and how to be let in; safe to print, as the token hides itself.

    Attributes:
        urls: ``http://host:port`` of one or more brokers (or a balancer before them), tried in turn.
        token: Bearer token of a superuser, or None where the cluster asks for none.
        limits: Time limits and tries.
        ca_file: Certificates to trust for ``https``; None: the system's.
    """

    urls: tuple[str, ...]
    token: SecretStr | None = None
    limits: AdminPolicy = field(default_factory=AdminPolicy)
    ca_file: str | None = None

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

    @property
    def scheme(self) -> str:
        """``http`` or ``https``; the same for every URL."""
        return urlsplit(self.urls[0]).scheme

    @property
    def bases(self) -> tuple[str, ...]:
        """The URLs without a path or a slash at the end."""
        return tuple(f"{self.scheme}://{urlsplit(url).netloc}" for url in self.urls)


def _check_url(url: str) -> None:
    """Refuses what is no admin URL, and never repeats what stands before an ``@``."""
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
