"""The authority and the certificates of a lab that speaks TLS."""

import socket
import ssl
import threading
from pathlib import Path

import pytest

from lab import certificates, plan, settings
from lab.model import LabSpec
from lab.tokens import SUPERUSER


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


def test_only_the_owner_may_read_them(made: Path) -> None:
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
