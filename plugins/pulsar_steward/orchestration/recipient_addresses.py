"""Addresses of Airflow's connections for messages; ``steward doctor`` runs this in a separate process.

``python -m pulsar_steward.orchestration.recipient_addresses`` reads routes as JSON from standard input, and prints an
`AddressFound` for each. Passwords stay in this process.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.decoding import decode
from pulsar_steward.errors import StewardError
from pulsar_steward.notify.addresses import AddressFound, Asked, address_of
from pulsar_steward.policy.notify import RecipientKind
from pulsar_steward.runtime.installed_files import document

if TYPE_CHECKING:
    from collections.abc import Sequence

_PAGE = f"{document('notifications.md')} says what it holds"
_MENDED = f"mend the connection; {_PAGE}"
_ADDED = (
    f"add it in Airflow (Admin, Connections) or as AIRFLOW_CONN_{{}}; {_PAGE}. If it is there: run this with Airflow's"
    " own database, AIRFLOW__CORE__FERNET_KEY and secrets backend"
)
_INSTALLED = "`pip install 'pulsar-steward[{}]'` where Airflow's tasks run, and here"


def addresses(asked: Sequence[Asked]) -> list[AddressFound]:
    """Address of each connection, or the reason why it cannot send messages."""
    return [_found(each) for each in asked]


def _found(asked: Asked) -> AddressFound:
    from pulsar_steward.orchestration import recipients  # Airflow, after its process is named

    name, kind = asked.connection, asked.kind
    fields = recipients.fields_named(name)
    if fields is None:
        words = f"Airflow has no connection {name!r} that it can read here"
        return AddressFound(connection=name, trouble=words, remedy=_ADDED.format(name.upper()))
    try:
        address = address_of(kind, fields)
        if kind is RecipientKind.SMTP:
            recipients.readers_of(fields)
    except StewardError as error:
        return AddressFound(connection=name, trouble=str(error), remedy=_MENDED)
    try:
        recipients.require_provider(kind)
    except StewardError:
        words = f"the connection {name!r} is there, but not the package that sends messages by {kind}"
        return AddressFound(connection=name, trouble=words, remedy=_INSTALLED.format(kind))
    return AddressFound(connection=name, address=address)


def main() -> None:
    """Prints the addresses as the last line of standard output, as libraries may print lines before."""
    os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"  # as Airflow's own commands: connections without a task
    told = addresses(decode(sys.stdin.buffer.read(), list[Asked]))
    sys.stdout.write(f"\n{msgspec.json.encode(told).decode()}\n")


if __name__ == "__main__":
    main()
