"""Load of each broker, crowded namespaces, and the largest backlogs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pulsar_steward.report.checkup.measures.data import BrokerLoad, CrowdedNamespace, NamespaceBacklog

if TYPE_CHECKING:
    from pulsar_steward.snapshots.read import Snapshot

MAX_NAMESPACES = 4
"""Number of crowded namespaces that are shown bundle by bundle."""

MAX_BUNDLES = 16
"""Number of bundles shown for each of them: the most that a new namespace has in the lab's clusters."""

MAX_BACKLOGS = 20
"""Number of namespaces whose backlog is shown."""

LEAST_TOPICS = 2
"""Minimum number of topics in one bundle for a crowded namespace."""


_CROWDED = f"""
    select namespace,
        list({{'bundle': bundle, 'topics': topics}} order by topics desc, bundle)[:{MAX_BUNDLES}] as bundles,
        greatest(count(*) - {MAX_BUNDLES}, 0) as not_listed
    from bundles where topics is not null group by namespace having max(topics) >= {LEAST_TOPICS}
    order by max(topics) desc, namespace limit {MAX_NAMESPACES}"""

_BACKLOGS = f"""
    select namespace, sum(backlog_bytes)::bigint as backlog_bytes from bundles group by namespace
    having sum(backlog_bytes) > 0 order by 2 desc, namespace limit {MAX_BACKLOGS}"""


def broker_loads(snapshot: Snapshot) -> tuple[BrokerLoad, ...]:
    """Load of every broker."""
    held = Counter(row.broker for row in snapshot.coordinators() if row.broker is not None)
    return tuple(
        BrokerLoad(broker=row.broker, topics=row.topics, coordinators=held[row.broker] if row.read else None)
        for row in snapshot.brokers()
    )


def crowded_namespaces(snapshot: Snapshot) -> tuple[CrowdedNamespace, ...]:
    """Namespaces with the fullest bundles."""
    return tuple(snapshot.select(_CROWDED, CrowdedNamespace))


def largest_backlogs(snapshot: Snapshot) -> tuple[NamespaceBacklog, ...]:
    """Namespaces with a backlog, the largest first."""
    return tuple(snapshot.select(_BACKLOGS, NamespaceBacklog))
