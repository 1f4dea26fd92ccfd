"""``steward notify``: shows what people would be told now, and sends nothing."""

import os
from datetime import UTC, datetime
from typing import Annotated

import typer

from pulsar_steward.cli.known_names import CLUSTER
from pulsar_steward.cli.ledgers import LedgerUrl, opened_ledger
from pulsar_steward.cli.metrics import Snapshots
from pulsar_steward.cli.output import tell
from pulsar_steward.cli.paths import snapshots_uri
from pulsar_steward.errors import ConfigurationError, PolicyError
from pulsar_steward.ledger.messages import open_messages
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.model.cluster import named_clusters
from pulsar_steward.model.units import counted
from pulsar_steward.notify.compose import composed
from pulsar_steward.notify.gather import Turn, is_outdated, new_messages, notices_now, policies_of, route_of, turn
from pulsar_steward.snapshots.latest import SnapshotShelf

AIRFLOW = "AIRFLOW__API__BASE_URL"

DryRun = Annotated[bool, typer.Option("--dry-run", help="Needed: messages are sent by the DAG pulsar_notify alone.")]
AirflowUrl = Annotated[
    str, typer.Option("--airflow-url", envvar=AIRFLOW, show_envvar=True, metavar="URL", help="Where links lead.")
]


def notify(
    *, dry_run: DryRun = False, ledger: LedgerUrl = None, snapshots: Snapshots = None, airflow_url: AirflowUrl = ""
) -> None:
    """Prints the messages that would be sent now, by the policies in STEWARD_HOME. Sends nothing, changes nothing."""
    if not dry_run:
        raise ConfigurationError("messages are sent by the DAG pulsar_notify: give --dry-run to see what it would send")
    shelf = SnapshotShelf(snapshots_uri(snapshots))
    found = policies_of(shelf.clusters(), *named_clusters(os.environ.get(CLUSTER, "local")))
    if any(policy.recipients for policy in found.policies.values()):
        with opened_ledger(ledger, only_read=True) as engine, one_moment(engine) as connection:
            now = datetime.now(UTC)
            notices = notices_now(engine, shelf, found.policies, now)
            new = new_messages(engine, notices, found.policies, now)
            standing = {notice.key for notice in notices}
            waiting = [
                message
                for message in open_messages(connection)
                if turn(message, now) is Turn.SEND and not is_outdated(message, standing)
            ]
        messages = [*waiting, *new]
        for message in messages:
            if (route := route_of(message, found.policies)) is None:
                continue
            content = composed(message.message_id, message.notices, airflow_url)
            again = f", try {message.tries[-1].attempt + 1}" if message.tries else ""
            tell(f"To {route.recipient} ({route.kind} by {route.connection}{again}):")
            for line in (content.subject, *content.text.splitlines(), content.link):
                tell(f"  {line}")
            tell("")
        tell(f"{counted(len(messages), 'message')} would be sent now.")
    else:
        tell("No policy names a recipient of messages: nothing is sent.")
    if found.troubles:
        raise PolicyError(*found.troubles)
