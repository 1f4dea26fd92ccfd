"""Answers of this environment's Airflow to the command line, which runs this in a separate process.

``python -m pulsar_steward.orchestration.airflow_answers SUBJECT`` reads a question as JSON from standard input, and
prints the answer. Connections hold secrets: the process that asked reads them through a pipe, and nothing else does;
passwords for messages stay in this process.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.decoding import decode
from pulsar_steward.errors import StewardError
from pulsar_steward.model.cluster import CLUSTER_NAME, admin_connection
from pulsar_steward.notify.addresses import AddressFound, Asked, address_of
from pulsar_steward.notify.variable import HaltsAsked, HaltsTold
from pulsar_steward.orchestration.dag_states import paused_dags
from pulsar_steward.policy.fleet import ConnectedCluster
from pulsar_steward.policy.notify import RecipientKind
from pulsar_steward.policy.schema import Policy
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


def halts_told(asked: HaltsAsked) -> HaltsTold:
    """Clusters that the halt variable halts, and the names that have a connection."""
    from pulsar_steward.orchestration.connections import connection_named
    from pulsar_steward.orchestration.halt_variable import halt_by_variable

    halts = {cluster: halt_by_variable(cluster, lambda: asked.clusters) for cluster in asked.clusters}
    return HaltsTold(
        reasons={cluster: halt.words for cluster, halt in halts.items() if halt},
        understood=all(halt is None or halt.understood for halt in halts.values()),
        connected=tuple(
            name
            for name in asked.names
            if CLUSTER_NAME.fullmatch(name) and connection_named(admin_connection(name)) is not None
        ),
    )


def connected(cluster: str) -> ConnectedCluster:
    """A cluster with the settings of its connection, or the reason why that is not usable."""
    from pulsar_steward.orchestration.connections import connection_named, observed_settings

    try:
        settings = observed_settings(cluster, Policy())
    except StewardError as error:
        return ConnectedCluster(cluster=cluster, trouble=str(error))
    connection = connection_named(admin_connection(cluster))
    region = connection.extra_dejson.get("region") if connection else None
    return ConnectedCluster(cluster=cluster, variables=settings.in_environment({}), region=region and str(region))


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


def main(subject: str) -> None:
    """Prints the answer as the last line of standard output, as libraries may print lines before."""
    os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"  # as Airflow's own commands: connections without a task
    question = sys.stdin.buffer.read()
    answer: object
    match subject:
        case "halts":
            answer = halts_told(decode(question, HaltsAsked))
        case "connections":
            answer = [connected(each) for each in decode(question, list[str])]
        case "addresses":
            answer = addresses(decode(question, list[Asked]))
        case "paused":
            answer = paused_dags()
        case _:
            sys.exit(f"nothing here answers {subject!r}")
    sys.stdout.write(f"\n{msgspec.json.encode(answer).decode()}\n")


if __name__ == "__main__":
    main(sys.argv[1])
