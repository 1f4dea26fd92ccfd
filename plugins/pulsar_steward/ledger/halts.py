"""The stop switch: halts all changes of a cluster, or lets them resume.

It is stored in the ledger, so that every process of every machine sees it at once. Anybody with access to the ledger
may halt, also by the command line: a halt permits nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import func, select

from pulsar_steward.ledger.chain import appending
from pulsar_steward.ledger.rows import from_row
from pulsar_steward.ledger.store import transaction
from pulsar_steward.ledger.tables import HALTS
from pulsar_steward.model.units import time_in_words

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

EVERY_CLUSTER = "*"

VARIABLE = "steward_halt"
"""Name of the Airflow variable that halts too: clusters' names, separated by commas, or `EVERY_CLUSTER`."""


def is_named(value: str, cluster: str) -> bool:
    """True if a value of `VARIABLE` halts a cluster."""
    return not {name.strip() for name in value.split(",")}.isdisjoint({cluster, EVERY_CLUSTER})


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


def say(engine: Engine, halt: Halt) -> None:
    """Records that a cluster is halted, or that changes may resume.

    Raises:
        LedgerError: If it could not be stored: nothing is halted then.
    """
    with appending(engine) as chain:
        chain.add(HALTS, msgspec.structs.asdict(halt))


def halt_of(engine: Engine, cluster: str) -> Halt | None:
    """Halt in force for a cluster, its own first; None: it may be changed.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    with transaction(engine) as connection:
        return halt_in(connection, cluster)


def halt_in(connection: Connection, cluster: str) -> Halt | None:
    """Halt in force for a cluster, read on a given connection; see `halt_of`."""
    for name in (cluster, EVERY_CLUSTER):
        newest = select(HALTS).where(HALTS.c.cluster == name).order_by(HALTS.c.halt_id.desc()).limit(1)
        row = connection.execute(newest).mappings().first()
        if row is not None and row["halted"]:
            return from_row(row, Halt)
    return None


def halts_in_force(engine: Engine) -> tuple[Halt, ...]:
    """Every halt in force: that of all clusters first, then by cluster.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    newest = select(func.max(HALTS.c.halt_id)).group_by(HALTS.c.cluster)
    query = select(HALTS).where(HALTS.c.halt_id.in_(newest), HALTS.c.halted)
    with transaction(engine) as connection:
        halts = [from_row(row, Halt) for row in connection.execute(query).mappings()]
    return tuple(sorted(halts, key=lambda halt: (halt.cluster != EVERY_CLUSTER, halt.cluster)))


class HaltRow(Halt, frozen=True, kw_only=True):
    """A halt or resumption with its number in the ledger."""

    halt_id: int


def halts_since(connection: Connection, since: datetime) -> tuple[HaltRow, ...]:
    """Halts and resumptions since then, and halts in force from before, oldest first."""
    newest = select(func.max(HALTS.c.halt_id)).group_by(HALTS.c.cluster)
    query = select(HALTS).where((HALTS.c.at >= since) | (HALTS.c.halt_id.in_(newest) & HALTS.c.halted))
    rows = connection.execute(query.order_by(HALTS.c.halt_id)).mappings()
    return tuple(from_row(row, HaltRow) for row in rows)
