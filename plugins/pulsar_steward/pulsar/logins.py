"""Logins: credentials other than a token (user and password, OAuth2, plug-in). Data only; no calls are made.

Names are as in Pulsar's own clients (``client_id``, ``client_secret``, ``issuer_url``, ``audience``, ``scope``).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.pulsar.addresses import is_url

if TYPE_CHECKING:
    from collections.abc import Mapping

SENDABLE = re.compile(r"[\x21-\x7e]+")
"""Tokens that may be sent in a header."""

_NO_CONTROLS = re.compile(r"[^\x00-\x1f\x7f]+")
_PLUGIN = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Basic:
    """User and password of HTTP basic authentication.

    Attributes:
        username: Name of the user, without a colon.
        password: Password of the user.
    """

    username: str
    password: SecretStr

    def __post_init__(self) -> None:
        if not _NO_CONTROLS.fullmatch(self.username) or ":" in self.username:
            raise ConfigurationError("basic authentication needs a user without a colon: give it as the `login`")
        if not _NO_CONTROLS.fullmatch(self.password.get_secret_value()):
            raise ConfigurationError(
                "basic authentication needs a password without a line break: give it as the `password`"
            )

    @property
    def secrets(self) -> tuple[str, ...]:
        """Secrets to mask in responses."""
        return (self.password.get_secret_value(),)


@dataclass(frozen=True)
class ClientCredentials:
    """OAuth2 client credentials (RFC 6749, 4.4) for access tokens from an issuer, which expire.

    Attributes:
        client_id: Client that requests tokens.
        client_secret: Its secret; sent to the issuer only.
        issuer_url: The issuer; its ``/.well-known/openid-configuration`` names the token endpoint, which has to be on
            the same host and port.
        token_url: The token endpoint itself, instead of `issuer_url`.
        audience: Audience of the tokens, as the brokers expect it.
        scope: Scope of the tokens.
        ca_file: Certificates to trust for the issuer; None: the system's.
    """

    client_id: str
    client_secret: SecretStr = field(repr=False)
    issuer_url: str | None = None
    token_url: str | None = None
    audience: str | None = None
    scope: str | None = None
    ca_file: str | None = None

    def __post_init__(self) -> None:
        if not self.client_id or not self.client_secret.get_secret_value():
            raise ConfigurationError(
                "OAuth2 needs `client_id` (or the connection's login) and a client secret (the connection's password,"
                " or `client_secret` in `oauth2_file`)"
            )
        if bool(self.issuer_url) == bool(self.token_url):
            raise ConfigurationError("OAuth2 needs `issuer_url` or `token_url`, one of both")
        key = "issuer_url" if self.issuer_url else "token_url"
        if not is_url(self.url):
            raise ConfigurationError(f"`{key}` is no address such as https://issuer.example.org, without a user")

    @property
    def url(self) -> str:
        """`issuer_url` or `token_url`."""
        return self.issuer_url or self.token_url or ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Secrets to mask in responses."""
        return (self.client_secret.get_secret_value(),)


@dataclass(frozen=True)
class Plugin:
    """Headers from a callable of an installed package, such as for Athenz.

    Attributes:
        name: Name of its entry point in the group ``pulsar_steward.auth_headers``. Not a dotted path: a person who may
            edit a connection must not choose the code that runs.
    """

    name: str

    def __post_init__(self) -> None:
        if not _PLUGIN.fullmatch(self.name):
            raise ConfigurationError(
                "`auth_plugin` has to be the name of an entry point in the group pulsar_steward.auth_headers"
            )

    @property
    def secrets(self) -> tuple[str, ...]:
        """Empty: its headers are known only after it was called."""
        return ()


Login = Basic | ClientCredentials | Plugin

_KINDS: dict[str, type[Basic | ClientCredentials | Plugin]] = {
    "basic": Basic,
    "oauth2": ClientCredentials,
    "plugin": Plugin,
}
_SECRET_FIELDS = frozenset({"password", "client_secret"})


def login_as_json(login: Login) -> str:
    """A login with its secret as JSON, for the environment of another process."""
    kind = next(name for name, each in _KINDS.items() if isinstance(login, each))
    values = {
        name: value.get_secret_value() if isinstance(value, SecretStr) else value
        for name, value in vars(login).items()
        if value is not None
    }
    return json.dumps({"kind": kind, **values})


def login_from_json(text: str) -> Login:
    """Reads the result of `login_as_json`.

    Raises:
        ConfigurationError: If it is not valid.
    """
    try:
        told: dict[str, Any] = json.loads(text)
        kind: Any = _KINDS[told.pop("kind")]
        values = {name: SecretStr(value) if name in _SECRET_FIELDS else value for name, value in told.items()}
        login: Login | None = kind(**values)
    except (ValueError, LookupError, TypeError, AttributeError):
        login = None  # the original error may contain the secret, so it is not chained
    if login is None:
        raise ConfigurationError("the login in the environment cannot be read")
    return login


def client_credentials(values: Mapping[str, Any], secret: str | None = None) -> ClientCredentials:
    """Client credentials from the values of a connection or file.

    Args:
        values: `issuer_url` or `token_url`, `client_id`, `audience`, `scope`, `issuer_ca_file`, and in a file
            `client_secret`.
        secret: The client secret, if it is not in `values`.
    """
    told = {name: str(value) for name, value in values.items() if value}
    return ClientCredentials(
        client_id=told.get("client_id", ""),
        client_secret=SecretStr(secret or told.get("client_secret", "")),
        issuer_url=told.get("issuer_url"),
        token_url=told.get("token_url"),
        audience=told.get("audience"),
        scope=told.get("scope"),
        ca_file=told.get("issuer_ca_file"),
    )


def oauth2_in(file: str | Path, values: Mapping[str, Any] | None = None) -> ClientCredentials:
    """Client credentials from a file for Pulsar's own clients: JSON with ``client_id`` and ``client_secret``.

    Args:
        file: The file, which may also contain ``issuer_url``, ``audience`` and ``scope``.
        values: Values of a connection, which take precedence over those of the file.

    Raises:
        ConfigurationError: If it cannot be read, or a value is missing.
    """
    try:
        told = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        failure = failure_of(error)
    else:
        if isinstance(told, dict):
            return client_credentials({**told, **{name: value for name, value in (values or {}).items() if value}})
        failure = "it is no JSON object"
    raise ConfigurationError(f"the file of client credentials {file} cannot be read: {failure}")


def basic_in(file: str | Path) -> Basic:
    """User and password in a file of one line, ``user:password``.

    Raises:
        ConfigurationError: If it cannot be read, or is not valid.
    """
    username, divider, password = text_in(file, "file of a user and a password").partition(":")
    if not divider:
        raise ConfigurationError(f"{file} has to hold `user:password` in one line")
    return Basic(username, SecretStr(password))


def token_in(file: str | Path) -> str:
    """Token in a file.

    Raises:
        ConfigurationError: If it cannot be read.
    """
    return text_in(file, "token file")


def failure_of(error: OSError | ValueError) -> str:
    """Why a file with a secret cannot be read, with the remedy; no part of its content."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file: check its path"
    if isinstance(error, PermissionError):
        return "this user may not read it: check its owner and mode"
    if isinstance(error, OSError):
        return f"{error.strerror or 'it cannot be opened'}: name a file"
    return "it is no text in UTF-8" if isinstance(error, UnicodeDecodeError) else "it is no valid JSON"


def text_in(file: str | Path, kind: str) -> str:
    """Content of a small file without the line break at its end; no error contains it."""
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        failure = failure_of(error)
    raise ConfigurationError(f"the {kind} {file} cannot be read: {failure}")
