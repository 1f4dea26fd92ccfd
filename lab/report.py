"""Status of a lab, as data and as a table, for the command `status`."""

from typing import Any

from rich.console import Console
from rich.table import Table

from lab import process
from lab.cluster import Lab
from lab.errors import LabError
from lab.model import Broker, Node

COLOURS = {"running": "green", "paused": "yellow", "gone": "red"}


def status(lab: Lab) -> dict[str, Any]:
    """The lab as JSON-able data; brokers that do not answer have null for what they own."""
    spec = lab.state.spec
    owned, coordinators = lab.owned_bundles(), _coordinators(lab)
    return {
        "name": spec.name,
        "home": str(lab.home),
        "pulsar_version": spec.pulsar_version,
        "cluster": lab.cluster,
        "admin_urls": list(lab.admin_urls),
        "service_url": lab.service_url,
        "token_file": None if lab.token_file is None else str(lab.token_file),
        "parts": [_part(part, lab) for part in (lab.state.zookeeper, *lab.state.bookies)]
        + [
            _part(broker, lab)
            | {
                "broker_id": broker.broker_id,
                "bundles": len(owned[broker.broker_id]) if broker.broker_id in owned else None,
                "coordinators": coordinators.get(broker.broker_id),
            }
            for broker in lab.brokers
        ],
    }


def show(seen: dict[str, Any]) -> None:
    """Prints it as a table with the addresses underneath."""
    console = Console()
    table = Table("part", "version", "state", "pid", "address", "bundles", "TCs", title=seen["name"])
    for part in seen["parts"]:
        state = f"[{COLOURS[part['state']]}]{part['state']}[/]"
        counts = ("" if part.get(key) is None else str(part[key]) for key in ("bundles", "coordinators"))
        table.add_row(part["name"], part["pulsar_version"], state, str(part["pid"] or ""), part["address"], *counts)
    console.print(table)
    for label in ("service_url", "token_file", "home"):
        if seen[label]:
            console.print(f"{label}: {seen[label]}", soft_wrap=True, highlight=False)


def _part(part: Node | Broker, lab: Lab) -> dict[str, Any]:
    return {
        "name": part.name,
        "pulsar_version": part.pulsar_version if isinstance(part, Broker) else lab.state.spec.pulsar_version,
        "state": process.condition(part.process),
        "pid": None if part.process is None else part.process.pid,
        "address": part.broker_id if isinstance(part, Broker) else f"{part.host}:{part.port}",
        "log": str(lab.log(part.name)),
    }


def _coordinators(lab: Lab) -> dict[str, int]:
    try:
        return lab.tc_placement()
    except LabError:
        return {}
