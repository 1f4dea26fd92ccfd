"""Names of clusters in Steward's connections, and the Pulsar cluster that each leads to. Rows are only added.

Leases, halts, the pace, pauses, questions and silences apply to a cluster under all of its names. Only this module
decides which names belong to one cluster.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import and_, or_, select

from pulsar_steward.ledger.rows import from_row
from pulsar_steward.ledger.tables import CLUSTER_NAMES
from pulsar_steward.model.cluster import ClusterIdentity, NamedCluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement, Connection

    from pulsar_steward.ledger.chain import Appending


class ClusterName(msgspec.Struct, frozen=True, kw_only=True):
    """A name in Steward's connections, and the Pulsar cluster that it led to at a time.

    Attributes:
        pulsar_cluster: The cluster's own name.
        metadata_id: Id of its metadata store; None: brokers do not report it.
        brokers: Its list of brokers; empty: not known.
    """

    name_id: int
    cluster: str
    pulsar_cluster: str
    metadata_id: str | None
    brokers: tuple[str, ...]
    at: datetime

    @property
    def named(self) -> NamedCluster:
        """The cluster in the form that plans use."""
        identity = ClusterIdentity(name=self.pulsar_cluster, metadata_id=self.metadata_id)
        return NamedCluster(self.cluster, identity, frozenset(self.brokers))


class KnownCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster, with every name that leads or led to it.

    Attributes:
        name: The name in the request.
        rows: Recorded names of this cluster, oldest first.
        names: Names that lead to it now, including `name`.
        placed: All names, of any cluster, with a known Pulsar cluster.
    """

    name: str
    rows: tuple[ClusterName, ...]
    names: frozenset[str]
    placed: frozenset[str]

    @property
    def ever(self) -> frozenset[str]:
        """Names that lead or ever led to it; a question under one of them may be about another cluster."""
        return frozenset({self.name, *(row.cluster for row in self.rows)})

    def has(self, cluster: NamedCluster) -> bool:
        """True if a plan's cluster is this one; without an identity, its name has to lead here now."""
        if cluster.identity is None:
            return cluster.name in self.names
        return any(row.named.is_same(cluster) for row in self.rows)

    @property
    def name_id(self) -> int | None:
        """Id of the newest row of `name`; None: it never led to this cluster."""
        return max((row.name_id for row in self.rows if row.cluster == self.name), default=None)

    @property
    def name_ids(self) -> frozenset[int]:
        """Ids of the rows."""
        return frozenset(row.name_id for row in self.rows)


def known_cluster(connection: Connection, cluster: NamedCluster) -> KnownCluster:
    """A cluster with all of its names; without an identity, the last recorded cluster under its name."""
    rows = cluster_names(connection)
    last = {row.cluster: row for row in rows}
    same = [cluster if cluster.identity or cluster.name not in last else last[cluster.name].named]
    found: list[ClusterName] = []
    # Rows can be linked by shared brokers: a first row with a second one, and the second with a third.
    while near := [row for row in rows if row not in found and any(row.named.is_same(each) for each in same)]:
        found += near
        same += [row.named for row in near]
    leading = {name for name, row in last.items() if row in found}
    return KnownCluster(
        name=cluster.name,
        rows=tuple(sorted(found, key=lambda row: row.name_id)),
        names=frozenset({*leading, cluster.name}),
        placed=frozenset(last),
    )


def cluster_names(connection: Connection) -> Sequence[ClusterName]:
    """All names, oldest row first."""
    rows = connection.execute(select(CLUSTER_NAMES).order_by(CLUSTER_NAMES.c.name_id)).mappings()
    return [from_row(row, ClusterName) for row in rows]


def shared_names(connection: Connection) -> list[tuple[str, ...]]:
    """Clusters with several present names: the names of each, in alphabetical order."""
    names = sorted({row.cluster for row in cluster_names(connection)})
    found = {tuple(sorted(known_cluster(connection, NamedCluster(name)).names)) for name in names}
    return sorted(each for each in found if len(each) > 1)


def in_one_cluster(
    connection: Connection, first: ColumnElement[str], second: ColumnElement[str]
) -> ColumnElement[bool]:
    """Condition that two columns contain names of the same cluster."""
    groups = (and_(first.in_(names), second.in_(names)) for names in shared_names(connection))
    return or_(first == second, *groups)


def add_name(chain: Appending, cluster: NamedCluster, at: datetime) -> None:
    """Adds the Pulsar cluster that a name leads to, unless its newest row has the same one.

    Brokers come and go: one common broker is enough to be the same, so that the table stays small.
    """
    if cluster.identity is None:
        return
    last = [row.named for row in cluster_names(chain.connection) if row.cluster == cluster.name][-1:]
    if any(row.identity == cluster.identity and (not cluster.brokers or cluster.brokers & row.brokers) for row in last):
        return
    row = {
        "cluster": cluster.name,
        "pulsar_cluster": cluster.identity.name,
        "metadata_id": cluster.identity.metadata_id,
        "brokers": msgspec.json.encode(sorted(cluster.brokers)).decode(),
        "at": at,
    }
    chain.add(CLUSTER_NAMES, row)
