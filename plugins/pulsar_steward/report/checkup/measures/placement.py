"""Load of each broker, crowded namespaces, and the largest backlogs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_steward.report.checkup.measures.arrow import worst
from pulsar_steward.report.checkup.measures.data import BrokerLoad, BundleTopics, CrowdedNamespace, NamespaceBacklog

if TYPE_CHECKING:
    from pulsar_steward.snapshots.read import Snapshot

MAX_NAMESPACES = 4
"""Crowded namespaces that are shown bundle by bundle."""

MAX_BUNDLES = 16
"""Bundles shown of each of them: as many as a new namespace could have in the lab's clusters."""

MAX_BACKLOGS = 20
"""Namespaces whose backlog is shown."""

LEAST_TOPICS = 2
"""Topics in one bundle below which it does not count as crowded."""


def broker_loads(snapshot: Snapshot) -> tuple[BrokerLoad, ...]:
    """Load of every broker."""
    held = Counter(row.broker for row in snapshot.coordinators() if row.broker is not None)
    return tuple(
        BrokerLoad(broker=row.broker, topics=row.topics, coordinators=held[row.broker] if row.read else None)
        for row in snapshot.brokers()
    )


def crowded_namespaces(bundles: pa.Table) -> tuple[CrowdedNamespace, ...]:
    """Namespaces with the fullest bundles.

    Args:
        bundles: Columns `namespace`, `bundle` and `topics` of the table of that name.
    """
    by_namespace = bundles.group_by("namespace").aggregate([("topics", "max")])
    crowded = by_namespace.filter(pc.greater_equal(by_namespace["topics_max"], LEAST_TOPICS))
    names = worst(crowded, "topics_max", MAX_NAMESPACES, "namespace")["namespace"].to_pylist()
    return tuple(_fullest(bundles.filter(pc.equal(bundles["namespace"], name)), name) for name in names)


def _fullest(own: pa.Table, namespace: str) -> CrowdedNamespace:
    rows = worst(own, "topics", MAX_BUNDLES, "bundle").select(["bundle", "topics"]).to_pylist()
    return CrowdedNamespace(
        namespace=namespace,
        bundles=tuple(BundleTopics(**row) for row in rows),
        not_listed=pc.count(own["topics"]).as_py() - len(rows),
    )


def largest_backlogs(bundles: pa.Table) -> tuple[NamespaceBacklog, ...]:
    """Namespaces with a backlog, the largest first; takes the columns `namespace` and `backlog_bytes`."""
    summed = bundles.group_by("namespace").aggregate([("backlog_bytes", "sum")])
    waiting = summed.filter(pc.greater(summed["backlog_bytes_sum"], 0))
    return tuple(
        NamespaceBacklog(namespace=row["namespace"], backlog_bytes=row["backlog_bytes_sum"])
        for row in worst(waiting, "backlog_bytes_sum", MAX_BACKLOGS, "namespace").to_pylist()
    )
