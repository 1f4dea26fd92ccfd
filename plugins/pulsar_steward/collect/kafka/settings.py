"""Addresses and credentials of a Kafka cluster, also passed to other processes as an environment variable."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from pulsar_steward.decoding import decode
from pulsar_steward.errors import ConfigurationError
from pulsar_steward.pulsar.addresses import travels_unencrypted
from pulsar_steward.pulsar.settings import VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

KAFKA_VARIABLE = f"{VARIABLES}KAFKA"
"""Variable of an environment with the settings, JSON; Pulsar's settings take its place, and it takes theirs."""

ISSUER = "sasl.oauthbearer.token.endpoint.url"
"""Property with the address that gives access tokens; the client's secret is sent there."""

SECRETS = frozenset({"sasl.password", "sasl.oauthbearer.client.secret", "ssl.key.password", "ssl.key.pem"})

# Others of librdkafka's properties load libraries or run commands (`plugin.library.paths`, `sasl.kerberos.kinit.cmd`),
# or turn the proof of who answers off.
PROPERTIES = SECRETS | {
    "client.id",
    "security.protocol",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.username",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.extensions",
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.scope",
    ISSUER,
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.key.location",
}
"""Properties of librdkafka that may be given; their values are its own."""

_SERVER = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:]+\]):\d{1,5}")


class KafkaSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Addresses and credentials of a Kafka cluster.

    Attributes:
        servers: ``host:port`` of one or more brokers, divided by commas.
        properties: Properties of librdkafka by name, secrets among them.
        allow_unencrypted: True if a password may be sent unencrypted to another machine.
    """

    servers: str
    properties: dict[str, str] = {}
    allow_unencrypted: bool = False

    def __post_init__(self) -> None:
        for each in self.servers.split(","):
            if not _SERVER.fullmatch(each.strip()):
                raise ConfigurationError(f"{each.strip()!r} is no address of a Kafka broker: expected host:port")
        if strange := sorted(self.properties.keys() - PROPERTIES):
            raise ConfigurationError(
                f"the property {strange[0]!r} of Kafka's client may not be given: those for TLS and SASL may"
                f" ({', '.join(sorted(PROPERTIES))})"
            )
        self._check_encryption()

    def __repr__(self) -> str:
        """Without the properties, which hold secrets."""
        return f"KafkaSettings(servers={self.servers!r})"

    def _check_encryption(self) -> None:
        issuer = self.properties.get(ISSUER, "").strip()
        if "@" in urlsplit(issuer).netloc:
            raise ConfigurationError(f"`{ISSUER}` has a user or password: give `sasl.oauthbearer.client.id` and secret")
        if not self.allow_unencrypted and issuer and travels_unencrypted(issuer):
            raise ConfigurationError(
                f"the client's secret would travel unencrypted: `{ISSUER}` has to begin with https, or allow it"
                " (--allow-unencrypted-token)"
            )
        given = {name: value.strip().upper() for name, value in self.properties.items()}
        secret = "sasl.password" in given or "sasl.oauthbearer.client.secret" in given
        mechanism = given.get("sasl.mechanisms", given.get("sasl.mechanism", ""))
        encrypted = given.get("security.protocol", "").endswith("SSL")
        if not secret or encrypted or self.allow_unencrypted or mechanism.startswith("SCRAM"):
            return
        for each in self.servers.split(","):
            if travels_unencrypted(f"http://{each.strip()}"):
                raise ConfigurationError(
                    f"the password would travel unencrypted to {each.strip()}: set `security.protocol=SASL_SSL`, or"
                    " allow it (--allow-unencrypted-token)"
                )

    @property
    def secrets(self) -> tuple[str, ...]:
        """Secrets among the properties."""
        return tuple(value for name, value in self.properties.items() if name in SECRETS and value)

    def in_environment(self, other: Mapping[str, str]) -> dict[str, str]:
        """An environment with these settings, for `kafka_in`, and without settings of another cluster."""
        kept = {name: value for name, value in other.items() if not name.startswith(VARIABLES)}
        return {**kept, KAFKA_VARIABLE: msgspec.json.encode(self).decode()}


def kafka_in(environment: Mapping[str, str]) -> KafkaSettings | None:
    """Settings of an environment; None: it has none of a Kafka cluster.

    Raises:
        ConfigurationError: If they are not valid.
    """
    text = environment.get(KAFKA_VARIABLE)
    if not text:
        return None
    try:
        return decode(text, KafkaSettings)
    except msgspec.DecodeError:  # the message would quote it
        raise ConfigurationError(f"the variable {KAFKA_VARIABLE} holds no settings of a Kafka cluster") from None


def secrets_of_kafka(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Secrets that `KafkaSettings.in_environment` wrote to an environment."""
    settings = kafka_in(environment)
    return settings.secrets if settings is not None else ()


def properties_in(file: Path) -> dict[str, str]:
    """Properties of a file with a line ``name=value`` for each; lines that begin with ``#`` are comments.

    Raises:
        ConfigurationError: If it cannot be read, or a line is none of these.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return dict(_pairs(file, text))


def _pairs(file: Path, text: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, divider, value = line.partition("=")
        if not divider:  # the line may be a secret: it is not quoted
            raise ConfigurationError(f"{file}, line {number}: expected name=value")
        yield name.strip(), value.strip()
