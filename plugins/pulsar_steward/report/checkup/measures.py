"""Where things are, of a snapshot's tables: what each broker holds, crowded namespaces, the largest backlogs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_steward.model.tables import BUNDLES
from pulsar_steward.report.checkup.document import (
    BrokerLoad,
    BundleTopics,
    CrowdedNamespace,
    Measures,
    NamespaceBacklog,
)

if TYPE_CHECKING:
    from pulsar_steward.snapshots.read import Snapshot

MOST_NAMESPACES = 3
"""Crowded namespaces that are shown bundle by bundle."""

MOST_BUNDLES = 16
"""Bundles that are shown of each of them: as many as a new namespace could have in the lab's clusters."""

MOST_BACKLOGS = 20
"""Namespaces whose backlog is shown."""

_LEAST_TOPICS = 2
"""Topics in one bundle below which nobody would call it crowded."""


def measures_of(snapshot: Snapshot) -> Measures:
    """Reads what the charts show; a table of a hundred thousand bundles is summed up by Arrow, not row by row.

    Raises:
        SnapshotError: If a table cannot be read.
    """
    bundles = snapshot.table(BUNDLES, ["namespace", "bundle", "topics", "backlog_bytes"])
    return Measures(brokers=_brokers(snapshot), crowded=_crowded(bundles), backlog=_backlog(bundles))


def _brokers(snapshot: Snapshot) -> tuple[BrokerLoad, ...]:
    held = Counter(row.broker for row in snapshot.coordinators() if row.broker is not None)
    return tuple(
        BrokerLoad(broker=row.broker, topics=row.topics, coordinators=held[row.broker] if row.read else None)
        for row in snapshot.brokers()
    )


def _crowded(bundles: pa.Table) -> tuple[CrowdedNamespace, ...]:
    by_namespace = _by_namespace(bundles, "topics", "max")
    crowded = by_namespace.filter(pc.greater_equal(by_namespace["topics_max"], _LEAST_TOPICS))
    worst = crowded.sort_by([("topics_max", "descending"), ("namespace", "ascending")]).slice(0, MOST_NAMESPACES)
    return tuple(_fullest(bundles, namespace) for namespace in worst["namespace"].to_pylist())


def _fullest(bundles: pa.Table, namespace: str) -> CrowdedNamespace:
    own = bundles.filter(pc.equal(bundles["namespace"], namespace))
    own = own.filter(pc.is_valid(own["topics"])).sort_by([("topics", "descending"), ("bundle", "ascending")])
    return CrowdedNamespace(
        namespace=namespace,
        bundles=tuple(
            BundleTopics(bundle=row["bundle"], topics=row["topics"]) for row in own.slice(0, MOST_BUNDLES).to_pylist()
        ),
        not_listed=max(0, own.num_rows - MOST_BUNDLES),
    )


def _backlog(bundles: pa.Table) -> tuple[NamespaceBacklog, ...]:
    summed = _by_namespace(bundles, "backlog_bytes", "sum")
    waiting = summed.filter(pc.greater(summed["backlog_bytes_sum"], 0))
    largest = waiting.sort_by([("backlog_bytes_sum", "descending"), ("namespace", "ascending")])
    return tuple(
        NamespaceBacklog(namespace=row["namespace"], backlog_bytes=row["backlog_bytes_sum"])
        for row in largest.slice(0, MOST_BACKLOGS).to_pylist()
    )


def _by_namespace(bundles: pa.Table, column: str, how: str) -> pa.Table:
    return bundles.group_by("namespace").aggregate([(column, how)])
