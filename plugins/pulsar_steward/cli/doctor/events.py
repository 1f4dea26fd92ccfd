"""Checks of ``steward doctor`` on the addresses that events are sent to, with TLS where they use it."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pulsar_steward.cli.doctor.line import fine, problem, unknown
from pulsar_steward.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pulsar_steward.cli.doctor.line import Line

SECONDS = 5
PORTS = {"pulsar": 6650, "pulsar+ssl": 6651}


def events_lines(service_url: str, ca_file: Path | None) -> Iterator[Line]:
    """Connects to each address and sends nothing: the token is not tested, as only producing would show its rights.

    Raises:
        ConfigurationError: If the service URL is not valid.
    """
    scheme, divider, hosts = service_url.partition("://")
    if scheme not in PORTS or not divider or "@" in hosts or not hosts.rstrip("/"):
        raise ConfigurationError("--events-url: expected pulsar+ssl://broker:6651 or pulsar://broker:6650")
    for each in hosts.rstrip("/").split(","):
        yield _address(scheme, each, ca_file)


def _address(scheme: str, place: str, ca_file: Path | None) -> Line:
    subject = f"events {scheme}://{place}"
    try:
        parts = urlsplit(f"//{place}")
        host, port = parts.hostname or "", parts.port or PORTS[scheme]
    except ValueError:
        return problem(subject, "is no address", "name it as host:port")
    try:
        with socket.create_connection((host, port), SECONDS) as plain:
            if scheme == "pulsar":
                return fine(subject, "can be reached; whether its token may produce shows with the first event")
            trusted = ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
            with trusted.wrap_socket(plain, server_hostname=host) as secure:
                return fine(subject, f"can be reached by {secure.version()}, and its certificate is trusted")
    except ssl.SSLError as error:
        remedy = "name the certificate of the brokers' authority by --ca-file, and the port that speaks TLS"
        return problem(subject, f"TLS failed: {error.reason or error}", remedy)
    except OSError as error:
        remedy = "check the address (6650, with TLS 6651 by default) and the firewalls between here and there"
        return unknown(subject, f"cannot be reached: {error.strerror or error}", remedy)
