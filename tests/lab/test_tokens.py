"""The key and the token of a lab with authentication, and certificates of one that speaks TLS."""

import base64
import hashlib
import hmac
import json
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

from lab import certificates, plan, settings, tokens
from lab.model import LabSpec
from lab.tokens import SUPERUSER


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A folder with a fresh key and token."""
    folder = tmp_path / "secrets"
    tokens.make(folder)
    return folder


def decoded(part: str) -> bytes:
    """Base64url without its padding, as RFC 7515 has it."""
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def is_signed(token: Path, key: Path) -> bool:
    signed, _, signature = token.read_text(encoding="utf-8").rpartition(".")
    return decoded(signature) == hmac.new(key.read_bytes(), signed.encode(), hashlib.sha256).digest()


def test_the_token_names_the_superuser_and_is_signed_with_the_key(secrets: Path) -> None:
    head, body, _ = tokens.token_file(secrets).read_text(encoding="utf-8").split(".")
    assert json.loads(decoded(head)) == {"alg": "HS256"}
    assert json.loads(decoded(body)) == {"sub": tokens.SUPERUSER}
    assert is_signed(tokens.token_file(secrets), tokens.key_file(secrets))


def test_only_the_owner_may_read_them(secrets: Path) -> None:
    assert [path.stat().st_mode & 0o077 for path in (secrets, *secrets.iterdir())] == [0, 0, 0]


def test_the_brokers_settings_hold_no_secret(secrets: Path) -> None:
    text = json.dumps(tokens.settings(secrets))
    assert tokens.key_file(secrets).as_uri() in text
    assert tokens.token_file(secrets).as_uri() in text
    assert tokens.token_file(secrets).read_text(encoding="utf-8") not in text
    key = tokens.key_file(secrets).read_bytes()
    for written in (base64.b64encode(key).decode(), base64.urlsafe_b64encode(key).decode(), key.hex()):
        assert written.rstrip("=") not in text


def test_an_access_token_is_signed_with_the_issuers_key(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    tokens.make_key_pair(folder)
    public = load_der_public_key(
        Path(tokens.key_pair_settings(folder)["tokenPublicKey"].removeprefix("file://")).read_bytes()
    )
    assert isinstance(public, rsa.RSAPublicKey)
    head, body, signature = tokens.access_token(folder, 60, "urn:other").split(".")
    public.verify(decoded(signature), f"{head}.{body}".encode(), padding.PKCS1v15(), SHA256())
    claims = json.loads(decoded(body))
    assert json.loads(decoded(head)) == {"alg": "RS256"}
    assert (claims["aud"], claims[tokens.ROLE_CLAIM]) == ("urn:other", tokens.SUPERUSER)
    assert 50 < claims["exp"] - time.time() <= 60
    assert "exp" not in json.loads(decoded(tokens.token_file(folder).read_text(encoding="utf-8").split(".")[1]))
    assert [path.stat().st_mode & 0o077 for path in (folder, *folder.iterdir())] == [0] * 4


def test_every_lab_has_a_key_of_its_own(secrets: Path, tmp_path: Path) -> None:
    others = tmp_path / "others"
    tokens.make(others)
    assert is_signed(tokens.token_file(others), tokens.key_file(others))
    assert not is_signed(tokens.token_file(secrets), tokens.key_file(others))


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder with fresh certificates."""
    folder = tmp_path / "secrets"
    certificates.make(folder, ["127.0.0.1"])
    return folder


def broker_settings(folder: Path) -> dict[str, str]:
    """Of the first broker of such a lab."""
    state = plan.new_state(LabSpec(name="a", auth="tls", listeners="tls"))
    broker = state.brokers[0]
    extra = certificates.listener_settings(folder, broker) | certificates.settings(folder)
    return settings.parsed(settings.broker(state, broker, extra))


def test_a_broker_has_no_port_that_speaks_plain_text(made: Path) -> None:
    """A broker of a TLS lab has only TLS ports and accepts only clients with a trusted certificate."""
    given = broker_settings(made)
    assert (given["webServicePort"], given["brokerServicePort"]) == ("", "")
    assert int(given["webServicePortTls"]) > 0
    assert int(given["brokerServicePortTls"]) > 0
    assert given["tlsRequireTrustedClientCertOnConnect"] == "true"


def test_ports_for_tls_beside_those_for_plain_text(made: Path) -> None:
    spec = LabSpec(name="a", brokers=2, listeners="both", hosts="distinct")
    state = plan.with_one_more_broker(plan.new_state(spec))
    first, second, third = state.brokers
    given = settings.parsed(settings.broker(state, second, certificates.listener_settings(made, second)))
    assert second.broker_id == f"127.0.0.2:{given['webServicePort']}"
    assert second.admin_url_tls == f"https://127.0.0.2:{given['webServicePortTls']}"
    assert first.ports == second.ports == third.ports
    assert len(set(first.ports)) == 4


def test_only_the_owner_may_read_them_of_certificates(made: Path) -> None:
    assert [path.stat().st_mode & 0o077 for path in (made, *made.iterdir())] == [0] * 6


def test_server_and_superuser_trust_each_other(made: Path) -> None:
    given = broker_settings(made)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=given["tlsTrustCertsFilePath"])
    server.load_cert_chain(given["tlsCertificateFilePath"], given["tlsKeyFilePath"])
    server.verify_mode = ssl.CERT_REQUIRED
    seen: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            with listening.accept()[0] as taken, server.wrap_socket(taken, server_side=True) as secure:
                seen.append((secure.getpeercert() or {})["subject"])
                secure.sendall(b"hello")

        thread = threading.Thread(target=accept)
        thread.start()
        with socket.create_connection(listening.getsockname()) as plain:
            client = certificates.context(made)
            with client.wrap_socket(plain, server_hostname="127.0.0.1") as secure:
                assert secure.recv(5) == b"hello"
        thread.join()
    assert seen == [((("commonName", SUPERUSER),),)]
