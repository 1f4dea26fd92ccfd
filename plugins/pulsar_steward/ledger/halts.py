"""The stop switch: halts all changes of a cluster, or lets them resume.

A halt is stored in the ledger, so that every process on every machine sees it at once. A person with access to the
ledger may halt a cluster, also by the command line: a halt permits nothing. It stops the cluster under all its names.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from sqlalchemy import func, select, union

from pulsar_steward.ledger.chain import appending
from pulsar_steward.ledger.cluster_names import known_cluster
from pulsar_steward.ledger.rows import from_row
from pulsar_steward.ledger.store import transaction
from pulsar_steward.ledger.tables import HALTS, LEASES, PLANS
from pulsar_steward.model.units import time_in_words
from pulsar_steward.outside_text import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection, Engine

    from pulsar_steward.ledger.cluster_names import KnownCluster
    from pulsar_steward.model.cluster import NamedCluster

EVERY_CLUSTER = "*"

VARIABLE = "steward_halt"
"""Name of the Airflow variable that also halts clusters."""


class WayOut(NamedTuple):
    """Remedy for a halt by the variable, as a clause, and whether the variable's value was understood."""

    words: str
    understood: bool = True


def way_out_of_variable(value: object, cluster: str, is_known: Callable[[str], bool]) -> WayOut | None:
    """Remedy for the halt of a cluster by a value of `VARIABLE`; None: the value does not halt it.

    The value is `EVERY_CLUSTER`, or names of known clusters, separated by commas. A blank value halts nothing. Any
    other value halts every cluster, as somebody wanted a halt.

    Args:
        value: The value; None: there is no such variable.
        cluster: The cluster's name in Steward's connections.
        is_known: True for the name of another cluster; case-sensitive.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    names = [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else []
    strange = [name for name in names if name not in {cluster, EVERY_CLUSTER} and not is_known(name)]
    if strange or not names:
        which = "it" if strange == names else f"{shown(strange[0])!r} in it"
        return WayOut(
            f"{which} names no cluster, and so every one is halted: name clusters as the connections do, with commas"
            f" between them, or {EVERY_CLUSTER}, or delete it to go on",
            understood=False,
        )
    by = EVERY_CLUSTER if EVERY_CLUSTER in names else cluster
    return WayOut(f"take {by} out of it to go on") if by in names else None


class Halt(msgspec.Struct, frozen=True, kw_only=True):
    """Latest halt or resumption of a cluster, or of `EVERY_CLUSTER`.

    Attributes:
        said_by: The person who halted or resumed, as a phrase.
    """

    cluster: str
    at: datetime
    halted: bool
    said_by: str
    reason: str

    @property
    def words(self) -> str:
        """The halt in a sentence."""
        which = "every cluster" if self.cluster == EVERY_CLUSTER else f"cluster {self.cluster}"
        return f"{which} was halted by {self.said_by} at {time_in_words(self.at, seconds=True)}: {self.reason}"

    def stops(self, cluster: KnownCluster) -> bool:
        """True if it halts a cluster; a halted name that leads to no known cluster yet may be this cluster's."""
        return self.cluster in {*cluster.names, EVERY_CLUSTER} or self.cluster not in cluster.placed

    def words_for(self, name: str) -> str:
        """The halt and its remedy in a sentence, for a person who wants to change a cluster of this name."""
        if self.cluster in {name, EVERY_CLUSTER}:
            return f"{self.words} (`steward resume` ends it)"
        return f"{self.words}; {name} is, or may be, the same Pulsar cluster (`steward resume {self.cluster}` ends it)"


def clusters_in(connection: Connection) -> frozenset[str]:
    """Clusters with a plan or a lease; a cluster that only a halt names is left out."""
    named = union(select(PLANS.c.cluster), select(LEASES.c.cluster))
    return frozenset(connection.execute(named).scalars())


def say(engine: Engine, halt: Halt) -> None:
    """Records that a cluster is halted, or that changes may resume.

    Raises:
        LedgerError: If it could not be stored; then nothing is halted.
    """
    with appending(engine) as chain:
        chain.add(HALTS, msgspec.structs.asdict(halt))


def halt_of(engine: Engine, cluster: NamedCluster) -> Halt | None:
    """Halt in force for a cluster, its own before others; None: the cluster is not halted.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    with transaction(engine) as connection:
        return halt_in(connection, cluster)


def halt_in(connection: Connection, cluster: NamedCluster) -> Halt | None:
    """Halt in force for a cluster, read on a given connection; see `halt_of`."""
    halts = _in_force(connection)
    if not halts:
        return None
    known = known_cluster(connection, cluster)
    nearest_first = sorted(halts, key=lambda halt: (halt.cluster != cluster.name, halt.cluster not in known.names))
    return next((halt for halt in nearest_first if halt.stops(known)), None)


def halts_in_force(engine: Engine) -> tuple[Halt, ...]:
    """Every halt in force: first the halt of all clusters, then by cluster.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    with transaction(engine) as connection:
        return tuple(sorted(_in_force(connection), key=lambda halt: (halt.cluster != EVERY_CLUSTER, halt.cluster)))


def _in_force(connection: Connection) -> list[Halt]:
    newest = select(func.max(HALTS.c.halt_id)).group_by(HALTS.c.cluster)
    query = select(HALTS).where(HALTS.c.halt_id.in_(newest), HALTS.c.halted)
    return [from_row(row, Halt) for row in connection.execute(query).mappings()]


class HaltRow(Halt, frozen=True, kw_only=True):
    """A halt or resumption with its number in the ledger."""

    halt_id: int


def halts_since(connection: Connection, since: datetime) -> tuple[HaltRow, ...]:
    """Halts and resumptions since `since`, and earlier halts still in force, oldest first."""
    newest = select(func.max(HALTS.c.halt_id)).group_by(HALTS.c.cluster)
    query = select(HALTS).where((HALTS.c.at >= since) | (HALTS.c.halt_id.in_(newest) & HALTS.c.halted))
    rows = connection.execute(query.order_by(HALTS.c.halt_id)).mappings()
    return tuple(from_row(row, HaltRow) for row in rows)
