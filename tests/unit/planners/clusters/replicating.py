"""Snapshots of two clusters, east and west, that replicate namespaces to each other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pulsar_steward.snapshots.read import Snapshot, open_snapshot
from tests.unit.planners.clusters.members import Held, write_member

if TYPE_CHECKING:
    from pathlib import Path

BOTH = ("east", "west")
ORDERS = "acme/orders"


def topic_of(namespace: Any = ORDERS, number: Any = 0, **replication: Any) -> dict[str, Any]:
    """A row of the table `topics`; `replication` is its figures of another cluster, if it is replicated."""
    told = json.dumps([{"connected": True, "backlog_entries": 0, "message_rate_out": 1.0} | replication])
    row = {"topic": name_of(namespace, number), "namespace": namespace, "subscriptions": 1, "storage_bytes": 1000}
    return row | {"replication_json": told if replication else None}


def name_of(namespace: str = ORDERS, number: int = 0) -> str:
    """Full name of a topic."""
    return f"persistent://{namespace}/t-{number}"


def subscribed(number: int = 0, subscription: str = "billing", **columns: Any) -> dict[str, Any]:
    """A row of the table `subscriptions`."""
    return {"topic": name_of(number=number), "namespace": ORDERS, "subscription": subscription, **columns}


def taken(
    shelf: Path, cluster: str, *topics: dict[str, Any], serving: dict[str, Any] | None = None, **changed: Any
) -> Snapshot:
    """A snapshot of a cluster with these topics; `serving`: the clusters in the policies of each namespace."""
    served = {ORDERS: BOTH} if serving is None else serving
    held = {name: Held(1, 0, clusters) for name, clusters in served.items()}
    return open_snapshot(write_member(shelf, cluster, held, topics=list(topics), **changed))
