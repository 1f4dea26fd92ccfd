"""Parts of attacks on the wire: a random token, brokers that speak TLS, certificates, settings towards them."""

from __future__ import annotations

import logging
import ssl
import traceback
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from pydantic import SecretStr

from lab.tokens import signed
from pulsar_steward.errors import AdminError, ConfigurationError
from pulsar_steward.policy.schema import AdminPolicy
from pulsar_steward.pulsar.reader import Reader
from pulsar_steward.pulsar.settings import AdminSettings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.pulsar.scripted import ScriptedBroker

TOKEN = signed(b"a secret that only these tests know", "a-superuser-with-a-long-name@example.org")
"""A JSON Web Token as Pulsar's own tool makes them."""

LOCAL = IPv4Address("127.0.0.1")


def settings(*urls: str, token: str = TOKEN, ca_file: Path | None = None, **limits: Any) -> AdminSettings:
    """Settings with a token; the keywords are the policy's, also with fractions of a second."""
    policy = AdminPolicy.model_copy(AdminPolicy(), update=limits)
    return AdminSettings(urls, SecretStr(token), policy, ca_file=str(ca_file) if ca_file else None)


def said_of_a_failure(made: AdminSettings, caplog: pytest.LogCaptureFixture) -> str:
    """All that could be kept of a call that fails: the error, its parts, its causes and their traces, the log."""
    caplog.set_level(logging.DEBUG)
    with Reader(made) as reader, pytest.raises((AdminError, ConfigurationError)) as caught:
        reader.tenants()
    error: BaseException | None = caught.value
    told = "".join([*traceback.format_exception(caught.value), repr(vars(caught.value)), repr(made), caplog.text])
    while error is not None:
        told += f"{error!r} {error.args!r}"
        error = error.__cause__ or error.__context__
    return told


def certificate(folder: Path, *names: str) -> tuple[Path, Path]:
    """A certificate for names, or for 127.0.0.1, that vouches for itself, and its key: two files of PEM."""
    return Authority(folder, "certificate", *names).files


class Authority:
    """A certificate that vouches for itself, and for others.

    Attributes:
        files: Of its certificate and its key, PEM.
    """

    def __init__(self, folder: Path, name: str = "authority", *names: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(names[0] if names else str(LOCAL))
        self.files = self._written(name, self._key, self._made(self._key, self._name, names, ca=True))

    def certificate(self, name: str, *names: str) -> tuple[Path, Path]:
        """A certificate that this one vouches for, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        return self._written(name, key, self._made(key, _named(name), names, ca=False))

    def _made(
        self, key: ec.EllipticCurvePrivateKey, name: x509.Name, names: tuple[str, ...], *, ca: bool
    ) -> x509.Certificate:
        known: list[x509.GeneralName] = [x509.DNSName(each) for each in names]
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName(known or [x509.IPAddress(LOCAL)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=0 if ca else None), critical=True)
            .sign(self._key, SHA256())
        )

    def _written(self, name: str, key: ec.EllipticCurvePrivateKey, made: x509.Certificate) -> tuple[Path, Path]:
        files = self._folder / f"{name}.pem", self._folder / f"{name}.key.pem"
        files[0].write_bytes(made.public_bytes(Encoding.PEM))
        files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return files


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def server_context(files: tuple[Path, Path], clients_of: Path | None = None) -> ssl.SSLContext:
    """TLS context of a server with this certificate and key; with an authority it takes its clients only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    if clients_of is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients_of)
    return context


def over_tls(broker: ScriptedBroker, files: tuple[Path, Path], clients_of: Path | None = None) -> str:
    """Has a scripted broker speak TLS from now on; returns its URL."""
    context = server_context(files, clients_of)
    broker._server.socket = context.wrap_socket(broker._server.socket, server_side=True)
    return f"https://{broker.id}"
