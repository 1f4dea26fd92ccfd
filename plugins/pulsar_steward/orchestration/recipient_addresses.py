"""Addresses of recipients by Airflow's connections, for ``steward doctor``, which runs this in a process of its own.

``python -m pulsar_steward.orchestration.recipient_addresses`` reads routes as JSON from standard input, and prints a
`Found` for each. Passwords stay in this process.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.errors import StewardError
from pulsar_steward.notify.addresses import Asked, Found, address_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def addresses(asked: Sequence[Asked]) -> list[Found]:
    """Address of each connection, or what is wrong with it."""
    from pulsar_steward.orchestration.recipients import fields_of  # noqa: PLC0415 - Airflow, after its process is named

    found = []
    for each in asked:
        try:
            address = address_of(each.kind, fields_of(each.connection))
        except StewardError as error:
            found.append(Found(connection=each.connection, trouble=str(error)))
        else:
            found.append(Found(connection=each.connection, address=address))
    return found


def main() -> None:
    """Answers on standard output, in the last line: libraries may print others before."""
    os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"  # as Airflow's own commands: connections without a task
    told = addresses(msgspec.json.decode(sys.stdin.buffer.read(), type=list[Asked]))
    sys.stdout.write(f"\n{msgspec.json.encode(told).decode()}\n")


if __name__ == "__main__":
    main()
