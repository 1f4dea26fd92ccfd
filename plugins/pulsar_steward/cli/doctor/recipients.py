"""Checks of ``steward doctor`` on where messages and events go: connections, what sends by them, and their hosts."""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pulsar_steward.cli.airflow_process import AIRFLOW_SECONDS, ask_airflow
from pulsar_steward.cli.doctor.line import fine, problem, unknown
from pulsar_steward.cli.ledgers import is_ledger_known, opened_ledger
from pulsar_steward.errors import ConfigurationError, LedgerError, PolicyError
from pulsar_steward.ledger.messages import given_up_since
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.model.units import counted
from pulsar_steward.notify.addresses import AddressFound, Asked
from pulsar_steward.policy.files import policy_files
from pulsar_steward.policy.load import load_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pulsar_steward.cli.doctor.line import Line
    from pulsar_steward.notify.addresses import Address
    from pulsar_steward.policy.notify import Recipient

    Lookup = Callable[[Sequence[Asked]], Sequence[AddressFound] | None]

SECONDS = 5
PORTS = {"pulsar": 6650, "pulsar+ssl": 6651}
GIVEN_UP_WITHIN = timedelta(days=7)


def recipient_lines(named: Path | None, ledger: str | None, lookup: Lookup | None = None) -> Iterator[Line]:
    """Checks each recipient, by the addresses that `lookup` gives, and sends nothing."""
    recipients = dict(_recipients(named))
    if not recipients:
        return
    asked = [Asked(connection=each.connection, kind=each.kind) for each in recipients.values()]
    found = (lookup or by_airflow)(asked)
    for number, (name, recipient) in enumerate(recipients.items()):
        subject = f"recipient {name}"
        if found is None:
            words = f"whether the connection {recipient.connection} is there cannot be seen here"
            yield unknown(subject, words, "run this where Airflow runs, with its settings")
        elif found[number].trouble:
            yield problem(subject, found[number].trouble, found[number].remedy)
        elif (address := found[number].address) is None:
            yield fine(subject, f"its connection is there; where {recipient.kind} sends only its library knows")
        else:
            yield _answering(subject, address)
    if is_ledger_known(ledger):
        yield from _given_up(ledger)


def by_airflow(asked: Sequence[Asked], seconds: float = AIRFLOW_SECONDS) -> Sequence[AddressFound] | None:
    """Addresses by the connections of the Airflow of this environment; None: there is none, or it does not answer."""
    return ask_airflow("addresses", asked, list[AddressFound], seconds)


def _recipients(named: Path | None) -> Iterator[tuple[str, Recipient]]:
    """Recipients by file and name; a policy that is not valid has a line of its own already."""
    try:
        for file in [named] if named else policy_files():
            policy = load_policy(file)
            for each in (policy, *(policy.for_cluster(cluster) for cluster in policy.clusters)):
                for name, recipient in each.notify.recipients.items():
                    yield f"{name} ({recipient.kind}, {recipient.connection})", recipient
    except (PolicyError, ConfigurationError, OSError):
        return


def _answering(subject: str, address: Address) -> Line:
    place = f"{address.host}:{address.port}"
    try:
        if version := _reached(address.host, address.port, tls=address.tls):
            return fine(subject, f"{place} answers by {version}; nothing was sent")
        return fine(subject, f"{place} answers; whether it takes messages shows with the first one")
    except ssl.SSLError as error:
        remedy = "a certificate of your own authority: name it as `ca_file` in a webhook's extra; else check the port"
        return problem(subject, f"{place}: TLS failed: {error.reason or error}", remedy)
    except OSError as error:
        return problem(subject, f"{place} cannot be reached: {error.strerror or error}", "check address and firewalls")


def _reached(host: str, port: int, *, tls: bool, ca_file: Path | None = None) -> str | None:
    """Connects, and gives the version of TLS; None without TLS."""
    with socket.create_connection((host, port), SECONDS) as plain:
        if not tls:
            return None
        trusted = ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
        with trusted.wrap_socket(plain, server_hostname=host) as secure:
            return secure.version()


def _given_up(ledger: str | None) -> Iterator[Line]:
    try:
        with opened_ledger(ledger, only_read=True) as engine, one_moment(engine) as connection:
            found = given_up_since(connection, datetime.now(UTC) - GIVEN_UP_WITHIN)
    except (LedgerError, ConfigurationError):
        return  # reported with the ledger already
    for each in found:
        words = f"{counted(each.number, 'message')} of the last week given up after a day of tries: {each.reason}"
        yield problem(f"messages to {each.recipient}", words, "mend what is named; later messages are tried anew")


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
        if version := _reached(host, port, tls=scheme == "pulsar+ssl", ca_file=ca_file):
            return fine(subject, f"can be reached by {version}, and its certificate is trusted")
        return fine(subject, "can be reached; whether its token may produce shows with the first event")
    except ssl.SSLError as error:
        remedy = "name the certificate of the brokers' authority by --ca-file, and the port that speaks TLS"
        return problem(subject, f"TLS failed: {error.reason or error}", remedy)
    except OSError as error:
        remedy = "check the address (6650, with TLS 6651 by default) and the firewalls between here and there"
        return unknown(subject, f"cannot be reached: {error.strerror or error}", remedy)
