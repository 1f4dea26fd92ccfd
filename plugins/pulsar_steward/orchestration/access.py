"""Credentials in Airflow connections, for the admin API and for events: password, login and extra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import SecretStr

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.policy.place import SECRETS_FOLDERS, in_secrets_folders, secrets_folders
from pulsar_steward.pulsar.addresses import address_map
from pulsar_steward.pulsar.logins import Basic, Plugin, client_credentials, oauth2_in, token_in
from pulsar_steward.pulsar.settings import map_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow.sdk import Connection

    from pulsar_steward.pulsar.addresses import AddressMap
    from pulsar_steward.pulsar.logins import Login

ALLOWED = "allow_unencrypted_token"

SECRET_FILES = ("token_file", "oauth2_file", "client_cert_file", "client_key_file")
"""Keys of files with credentials: their content is sent to the connection's addresses, or proves the client there."""


class Access(NamedTuple):
    """Credentials of a connection: a token or a login, a client certificate alone or beside one of them, or none.

    Attributes:
        token: A fixed token, or the present one of `token_file`.
        token_file: File from which the token is read again when it changes.
        login: Credentials other than a token.
        ca_file: Certificates to trust.
        client_cert_file: Client certificate (mutual TLS).
        client_key_file: Its key.
        allowed: True if secrets may travel unencrypted.
        origin: Place of the credentials in words, or the place where a token would be.
    """

    token: SecretStr | None
    token_file: str | None
    login: Login | None
    ca_file: str | None
    client_cert_file: str | None
    client_key_file: str | None
    allowed: bool
    origin: str


def access_of(name: str, connection: Connection) -> Access:
    """Credentials of a connection.

    Raises:
        ConfigurationError: If it has several that exclude each other, invalid ones, or files that it may not name.
    """
    extra = connection.extra_dejson
    require_allowed_files(name, extra)
    token_file = extra.get("token_file") or None
    login = _login(name, connection)
    token = connection.password if login is None else None
    if token_file is not None:
        if connection.password or login is not None:
            raise ConfigurationError(
                f"the connection {name!r} names a `token_file`, and a password or other credentials as well:"
                " leave one of them out"
            )
        token = token_in(token_file)
    return Access(
        token=SecretStr(token or "") if token or token_file else None,
        token_file=token_file,
        login=login,
        ca_file=extra.get("ca_file"),
        client_cert_file=extra.get("client_cert_file") or None,
        client_key_file=extra.get("client_key_file") or None,
        allowed=is_set(name, extra, ALLOWED),
        origin=_origin(name, extra, bare=not token and login is None),
    )


def _origin(name: str, extra: Mapping[str, Any], *, bare: bool) -> str:
    """Place of a connection's credentials in words; `bare`: it has neither a token nor a login."""
    keys = ("token_file", "client_cert_file") if bare else ("token_file",)
    for key in keys:
        if extra.get(key):
            return f"`{key}` {extra[key]} of the connection {name!r}"
    return f"the {'password of the ' if bare else ''}connection {name!r}"


def require_allowed_files(name: str, extra: Mapping[str, Any], keys: Iterable[str] = SECRET_FILES) -> None:
    """Requires that files with credentials are in a folder that the worker's operator allows.

    A person who may edit a connection chooses the file, and the address to which its content is sent. Certificates to
    trust (`ca_file`) may be anywhere: they are never sent.

    Raises:
        ConfigurationError: If a file is in another folder, also by a symbolic link; the file is not read.
    """
    for key in keys:
        file = extra.get(key)
        if file and not in_secrets_folders(str(file)):
            raise ConfigurationError(
                f"`{key}` of the connection {name!r} is not in a folder for secrets of this worker"
                f" ({', '.join(map(str, secrets_folders()))}), or a link leads out of it: put the file there, or have"
                f" whoever runs the worker name its folder in the variable {SECRETS_FOLDERS}"
            )


def _login(name: str, connection: Connection) -> Login | None:
    """Credentials other than a token; the extra selects their kind, the field `login` alone selects none."""
    extra = connection.extra_dejson
    ways = {"oauth2": ("issuer_url", "token_url", "oauth2_file"), "plugin": ("auth_plugin",), "basic": ("auth",)}
    named = [way for way, keys in ways.items() if any(extra.get(key) for key in keys)]
    if len(named) > 1:
        keys = ", ".join(f"`{key}`" for way in named for key in ways[way] if extra.get(key))
        raise ConfigurationError(f"the connection {name!r} has several kinds of credentials: {keys}: leave one of them")
    if "oauth2" in named:
        values = {**extra, "client_id": extra.get("client_id") or connection.login}
        if file := extra.get("oauth2_file"):
            return oauth2_in(file, values)
        return client_credentials(values, connection.password)
    if "plugin" in named:
        return Plugin(str(extra["auth_plugin"]))
    if "basic" in named:
        if extra["auth"] != "basic":
            raise ConfigurationError(f"`auth` in the extra of the connection {name!r} may be basic, or left out")
        return Basic(connection.login or "", SecretStr(connection.password or ""))
    return None


def address_map_in(extra: Mapping[str, Any]) -> AddressMap:
    """Map from advertised to reachable addresses; in a connection that is a URI it is JSON as text."""
    given = extra.get("address_map") or {}
    return map_in(given) if isinstance(given, str) else address_map(given)


def is_set(name: str, extra: Mapping[str, Any], key: str) -> bool:
    """True if a flag in a connection's extra is set; in a connection that is a URI all values are text."""
    said = extra.get(key, False)
    known = {"true": True, "false": False}.get(str(said).lower())
    if known is None:
        raise ConfigurationError(f"`{key}` in the extra of the connection {name!r} has to be true or false")
    return known
