"""URLs of the admin API, and the map from brokers' advertised addresses to reachable ones."""

from __future__ import annotations

import re
from contextlib import suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pulsar_steward.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_PORTS = {"http": 80, "https": 443}

AddressMap = tuple[tuple[str, str], ...]
"""Pairs of an advertised ``host:port``, or ``*:port`` for all hosts, and the URL that reaches it."""

_ADVERTISED = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+|\*):[0-9]{1,5}")
_ANY = "*"


def check_url(url: str) -> None:
    """Rejects an invalid admin URL, without repeating credentials that precede an ``@``.

    Raises:
        ConfigurationError: If it is not valid.
    """
    shown = url.rpartition("@")[2]
    if shown != url:
        raise ConfigurationError(f"the admin URL for {shown} holds a user or password: use a token")
    if not is_url(url):
        raise ConfigurationError(f"{url!r} is not an admin URL: expected http://host:port or https://host:port")
    _require_root(url, f"the admin URL {url}")


def _require_root(url: str, whose: str) -> None:
    """Rejects an address with a path: calls and tokens would be sent to other paths of that host.

    Raises:
        ConfigurationError: If it has a path.
    """
    if rest := url.partition("://")[2].partition("/")[2].strip("/"):
        raise ConfigurationError(
            f"{whose} has a path (/{rest}): the admin API is called at /admin of a host and port, as brokers serve it."
            f" Write {base_of(url)}, and have a proxy serve it there"
        )


def is_url(url: str) -> bool:
    """True for ``http://host:port`` and ``https://host:port`` without a user, with or without a path."""
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and "@" not in url
    except ValueError:
        return False


def base_of(url: str) -> str:
    """A URL without a path or a trailing slash."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def address_map(given: Mapping[str, str] | object) -> AddressMap:
    """Address map of a connection or an option.

    Raises:
        ConfigurationError: If it is not valid.
    """
    remedy = '`address_map` has to be an object such as {"broker-1.internal:8080": "https://broker-1.example.org:8443"}'
    if not isinstance(given, dict):
        raise ConfigurationError(remedy)
    for advertised, reached in given.items():
        if not isinstance(advertised, str) or not _ADVERTISED.fullmatch(advertised):
            raise ConfigurationError(f"{remedy}: {str(advertised).rpartition('@')[2]!r} is not host:port, nor *:port")
        any_host = _ANY in str(reached)
        if not isinstance(reached, str) or not is_url(reached.replace("//*:", "//any:", 1)):
            raise ConfigurationError(f"{remedy}: what {advertised} is reached by is no http:// or https:// address")
        _require_root(reached, f"`address_map`: the address of {advertised}")
        if any_host and not advertised.startswith(_ANY):
            raise ConfigurationError(f"`address_map`: {advertised} names one host, so that its address may hold no *")
        if advertised.startswith(_ANY) and not any_host:
            raise ConfigurationError(
                f"`address_map`: {advertised} stands for several brokers, and one address reaches one of them: put * in"
                " place of its host, or name each broker; for a balancer there is `front_door`"
            )
    return tuple(sorted((advertised.lower(), base_of(reached)) for advertised, reached in given.items()))


def reached_by(places: AddressMap, advertised: str) -> str | None:
    """URL that reaches an advertised ``host:port``; None: it is not in the map."""
    known = dict(places)
    advertised = advertised.lower()
    if advertised in known:
        return known[advertised]
    host, _, port = advertised.rpartition(":")
    reached = known.get(f"{_ANY}:{port}")
    return None if reached is None else reached.replace(f"//{_ANY}:", f"//{host}:", 1)


def travels_unencrypted(url: str) -> bool:
    """True if data sent to an address (``scheme://host:port``) leaves this machine as plain text."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return True
    return parts.scheme not in {"https", "pulsar+ssl"} and not is_loopback(parts.hostname or "")


def is_loopback(host: str) -> bool:
    """True if a host is this machine."""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"
