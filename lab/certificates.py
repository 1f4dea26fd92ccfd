"""A lab's own certificate authority, with a certificate for its brokers and one for the superuser, in private files."""

import ssl
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from lab.model import Broker
from lab.tokens import KEY_BITS, SUPERUSER, write

VALID_FOR = timedelta(days=7)


class ClientFiles(NamedTuple):
    """Files of PEM: the authority's certificate, and the superuser's with its key."""

    ca_file: Path
    client_cert_file: Path
    client_key_file: Path


def make(folder: Path, hosts: Iterable[str]) -> None:
    """Writes an authority, a server's certificate for these addresses and a superuser's into ``folder``."""
    folder.mkdir(mode=0o700, exist_ok=True)
    authority, mine = _Authority(), client_files(folder)
    write(mine.ca_file, authority.certificate)
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ip_address(host)) for host in sorted(set(hosts))])
    for certificate, key, made in (
        (*server_files(folder), authority.issued("broker", addresses)),
        (mine.client_cert_file, mine.client_key_file, authority.issued(SUPERUSER)),
    ):
        write(certificate, made[0])
        write(key, made[1])


def client_files(folder: Path) -> ClientFiles:
    """Paths of the superuser's files."""
    return ClientFiles(folder / "ca.pem", folder / "superuser.pem", folder / "superuser.key.pem")


def server_files(folder: Path) -> tuple[Path, Path]:
    """Where a server's certificate and its key are."""
    return folder / "broker.pem", folder / "broker.key.pem"


def listener_settings(folder: Path, broker: Broker) -> dict[str, str]:
    """The broker's settings for its ports that speak TLS: beside those for plain text, or in their place."""
    certificate, key = server_files(folder)
    service_port, web_port = broker.service_port_tls, broker.web_port_tls
    alone = {}
    if broker.tls:
        service_port, web_port = broker.service_port, broker.web_port
        alone = {"brokerServicePort": "", "webServicePort": "", "brokerClientTlsEnabled": "true"}
    return {
        "brokerServicePortTls": str(service_port),
        "webServicePortTls": str(web_port),
        "tlsCertificateFilePath": str(certificate),
        "tlsKeyFilePath": str(key),
        "tlsTrustCertsFilePath": str(client_files(folder).ca_file),
        "brokerClientTrustCertsFilePath": str(client_files(folder).ca_file),
        **alone,
    }


def settings(folder: Path) -> dict[str, str]:
    """The broker's settings that let in clients with a certificate of the authority, and break off all others."""
    _, certificate, key = client_files(folder)
    return {
        "tlsRequireTrustedClientCertOnConnect": "true",
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderTls",
        "superUserRoles": SUPERUSER,
        "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationTls",
        "brokerClientAuthenticationParameters": f"tlsCertFile:{certificate},tlsKeyFile:{key}",
    }


def context(folder: Path) -> ssl.SSLContext:
    """TLS context of the lab's superuser."""
    authority, certificate, key = client_files(folder)
    made = ssl.create_default_context(cafile=str(authority))
    made.load_cert_chain(certificate, key)
    return made


class _Authority:
    def __init__(self) -> None:
        self._key = _new_key()
        self._name = _name("lab authority")
        limits = x509.BasicConstraints(ca=True, path_length=0)
        made = self._builder(self._name, self._key).add_extension(limits, critical=True).sign(self._key, SHA256())
        self.certificate = made.public_bytes(Encoding.PEM)

    def issued(self, role: str, *extensions: x509.ExtensionType) -> tuple[bytes, bytes]:
        """A certificate for a role and its key, which Pulsar reads only as PKCS #8."""
        key = _new_key()
        builder = self._builder(_name(role), key)
        for extension in (x509.BasicConstraints(ca=False, path_length=None), *extensions):
            builder = builder.add_extension(extension, critical=False)
        certificate = builder.sign(self._key, SHA256())
        return (
            certificate.public_bytes(Encoding.PEM),
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        )

    def _builder(self, name: x509.Name, key: rsa.RSAPrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=name,
            public_key=key.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=now - timedelta(days=1),
            not_valid_after=now + VALID_FOR,
        )


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, KEY_BITS)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common)])
