"""Holds Steward's tasks up at a chosen moment, by a lock on the table of the ledger that they are about to write to."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine, Table

WAITS_WITHIN_S = 90.0
WAITING = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
"""Of the same database: the first process may hold the chain while it waits, and the next ones wait for that."""


@dataclass(frozen=True)
class HeldUp:
    """A table that nobody but this connection writes to."""

    engine: Engine
    table: Table
    connection: Connection

    def until_waiting(self, count: int = 1) -> None:
        """Waits until so many processes want to write to it, or to what these hold."""
        what = f"{count} processes wait, the first of them for {self.table.name}"
        wait_until(lambda: self._waiting() >= count, what, WAITS_WITHIN_S)

    def let_go(self) -> None:
        """Lets everybody write again."""
        self.connection.rollback()

    def _waiting(self) -> int:
        with self.engine.connect() as connection:
            return int(connection.execute(WAITING).scalar_one())


@contextlib.contextmanager
def held_up(engine: Engine, table: Table) -> Iterator[HeldUp]:
    """Locks a table against writes until it is let go or the block ends; reads stay possible.

    Args:
        engine: A ledger in PostgreSQL.
        table: One of its tables.
    """
    with engine.connect() as connection:
        connection.execute(text(f"LOCK TABLE {table.name} IN EXCLUSIVE MODE"))
        yield HeldUp(engine, table, connection)
