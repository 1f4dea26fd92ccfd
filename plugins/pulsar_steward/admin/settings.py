"""Where a cluster's admin API is and how to be let in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.policy.schema import AdminPolicy

if TYPE_CHECKING:
    from pydantic import SecretStr


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
            parts = urlsplit(url)
            if parts.scheme not in {"http", "https"} or not parts.hostname:
                raise ConfigurationError(f"{url!r} is not an admin URL: expected http://host:port or https://host:port")
            if parts.username or parts.password:
                raise ConfigurationError(f"the admin URL for {parts.hostname} holds a user or password: use a token")
        if len({urlsplit(url).scheme for url in self.urls}) > 1:
            raise ConfigurationError("the admin URLs mix http and https: use one of them")

    @property
    def scheme(self) -> str:
        """``http`` or ``https``; the same for every URL."""
        return urlsplit(self.urls[0]).scheme

    @property
    def bases(self) -> tuple[str, ...]:
        """The URLs without a path or a slash at the end."""
        return tuple(f"{self.scheme}://{urlsplit(url).netloc}" for url in self.urls)
