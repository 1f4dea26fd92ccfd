"""Addresses of messages from a connection's fields: the webhook's URL, and the host for each kind of recipient."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

import msgspec

from pulsar_steward.errors import ConfigurationError
from pulsar_steward.policy.notify import RecipientKind
from pulsar_steward.pulsar.addresses import is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import SecretStr

ALLOWED = "allow_unencrypted"
SMTP_PORT, SMTP_TLS_PORT, HTTP_PORT, HTTPS_PORT = 25, 465, 80, 443
SLACK, PAGERDUTY = "hooks.slack.com", "events.pagerduty.com"


class ConnectionFields(NamedTuple):
    """Fields of an Airflow connection.

    Attributes:
        name: The connection's id.
        extra: Its extra, decoded.
    """

    name: str
    host: str | None
    port: int | None
    schema: str | None
    login: str | None
    password: SecretStr | None
    extra: Mapping[str, Any]


class Address(NamedTuple):
    """Host that messages are sent to; `tls` is true if the connection begins with TLS."""

    host: str
    port: int
    tls: bool


class Asked(msgspec.Struct, frozen=True):
    """A connection whose address is needed."""

    connection: str
    kind: RecipientKind


class AddressFound(msgspec.Struct, frozen=True):
    """Result of checking whether a connection can send messages.

    Attributes:
        connection: Its name.
        address: Destination of messages; None if only a library knows it, or there is trouble.
        trouble: Reason why none can be sent; empty: no obstacle is known.
        remedy: Way to fix it.
    """

    connection: str
    address: Address | None = None
    trouble: str = ""
    remedy: str = ""


class Webhook(NamedTuple):
    """Receiver of messages by HTTP.

    Attributes:
        address: Its host.
        target: Path and query, which may be secret.
        login: User and password for basic authentication; without a user, the password is a bearer token.
        ca_file: Certificates to trust; None: those of this machine.
    """

    address: Address
    target: str
    login: tuple[str, SecretStr] | None
    ca_file: str | None

    def trusted(self) -> ssl.SSLContext:
        """TLS with the certificates to trust.

        Raises:
            ConfigurationError: If their file cannot be read.
        """
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError(f"`ca_file` {self.ca_file} holds no certificates that can be read") from error


def webhook_of(fields: ConnectionFields) -> Webhook:
    """Receiver in a connection of type HTTP: host, port and schema, or a whole `url` in its extra.

    Raises:
        ConfigurationError: If there is none, or messages would travel unencrypted; the message contains no secret.
    """
    parts = _url(fields)
    tls = parts.scheme == "https"
    address = Address(parts.hostname or "", parts.port or (HTTPS_PORT if tls else HTTP_PORT), tls)
    _require_encrypted(fields, address)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    login = None if fields.password is None else (fields.login or "", fields.password)
    return Webhook(address, target, login, fields.extra.get("ca_file") or None)


def address_of(kind: RecipientKind, fields: ConnectionFields) -> Address | None:
    """Host for a recipient's messages; None: only the library for that kind knows it.

    Raises:
        ConfigurationError: If the connection has none, or messages would travel unencrypted.
    """
    match kind:
        case RecipientKind.WEBHOOK:
            return webhook_of(fields).address
        case RecipientKind.SMTP:
            return smtp_address(fields)
        case RecipientKind.SLACK:
            given = fields.password.get_secret_value() if fields.password else ""
            host = urlsplit(given).hostname if "://" in given else urlsplit(f"//{fields.host or SLACK}").hostname
            return Address(host or SLACK, HTTPS_PORT, tls=True)
        case RecipientKind.PAGERDUTY:
            return Address(PAGERDUTY, HTTPS_PORT, tls=True)
        case RecipientKind.APPRISE:
            return None


def smtp_address(fields: ConnectionFields) -> Address:
    """Mail server of a connection of type SMTP.

    Raises:
        ConfigurationError: If there is none, or messages would travel unencrypted.
    """
    if not fields.host:
        raise ConfigurationError(f"the connection {fields.name!r} names no host: give the mail server's")
    tls = not fields.extra.get("disable_ssl")
    address = Address(fields.host, fields.port or (SMTP_TLS_PORT if tls else SMTP_PORT), tls)
    if not tls and fields.extra.get("disable_tls"):
        _require_encrypted(fields, address)
    return address


def _url(fields: ConnectionFields) -> SplitResult:
    given = fields.extra.get("url") or fields.host or ""
    if "://" not in given:
        port = f":{fields.port}" if fields.port else ""
        given = f"{fields.schema or 'https'}://{given}{port}{fields.extra.get('path') or ''}"
    try:
        parts = urlsplit(given)
        fits = (
            parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
        )
    except ValueError:
        fits = False
    if not fits or not given.isascii() or any(each.isspace() or not each.isprintable() for each in given):
        raise ConfigurationError(
            f"the connection {fields.name!r} names no receiver: give host, port and schema (https), or in its extra"
            " `url`, such as https://host/path, without a user or blanks in it"
        )
    return parts


def _require_encrypted(fields: ConnectionFields, address: Address) -> None:
    if address.tls or is_loopback(address.host) or str(fields.extra.get(ALLOWED, "")).lower() == "true":
        return
    raise ConfigurationError(
        f"messages by the connection {fields.name!r} would travel unencrypted to {address.host}: use TLS, or say"
        f' `"{ALLOWED}": true` in its extra'
    )
