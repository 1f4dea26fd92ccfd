"""A topic's ledgers and cursors from the metadata store, for topics that no broker has loaded.

Any broker can read them from the metadata store, without loading the topic. The store has neither the size nor the
entries of the last ledger, so a cursor's backlog is not known (docs/pulsar-behaviour.md, Topics that are not loaded).
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from pulsar_steward.pulsar.figures import Amount, Figure, Long


class _Position(msgspec.Struct, frozen=True, rename="camel"):
    ledger_id: Long


class StoredLedger(msgspec.Struct, frozen=True, rename="camel"):
    """One ledger; without a size if it is the last one, or if a broker did not close it."""

    ledger_id: Long
    size: Amount | None = None
    timestamp: Figure = 0


class StoredCursor(msgspec.Struct, frozen=True, rename="camel"):
    """One cursor; its position is here after its topic was closed, and before that in the cursor's own ledger."""

    creation_date: str = ""
    cursors_ledger_id: Long = -1
    mark_delete: _Position | None = None

    @property
    def created(self) -> datetime | None:
        """Time at which the metadata store got it, UTC; None: not reported. With etcd, every cursor has the epoch."""
        try:
            at = datetime.fromisoformat(self.creation_date)
        except ValueError:
            return None
        return at.astimezone(UTC) if at.tzinfo is not None and at.timestamp() > 0 else None


class StoredTopic(msgspec.Struct, frozen=True, rename="camel"):
    """A topic's ``internal-info``."""

    ledgers: list[StoredLedger]
    cursors: dict[str, StoredCursor]
    creation_date: str = ""

    def __post_init__(self) -> None:
        """Refuses a ledger without a size before the last one: the loss from its deletion would be unknown."""
        if lacking := [each.ledger_id for each in self.ledgers[:-1] if each.size is None]:
            raise ValueError(f"ledger {lacking[0]} has no size, and is not the last one")

    @property
    def closed(self) -> list[StoredLedger]:
        """Its ledgers with a size, oldest first: all except the last one."""
        return [each for each in self.ledgers if each.size is not None]

    @property
    def consumed(self) -> list[StoredLedger]:
        """Closed ledgers that all cursors with a known position have passed, or may have passed."""
        known = [each.mark_delete for each in self.cursors.values() if each.cursors_ledger_id < 0]
        slowest = min((each.ledger_id for each in known if each is not None), default=None)
        return [each for each in self.closed if slowest is None or each.ledger_id <= slowest]

    def closed_since(self, ledger_id: int) -> int | None:
        """Earliest time at which a ledger or a later one was closed, in milliseconds since the epoch; None: never."""
        return min((each.timestamp for each in self.closed if each.ledger_id >= ledger_id), default=None)

    def published_since(self, ledger_id: int) -> int | None:
        """Earliest publish time in a ledger, in milliseconds since the epoch; None: not known.

        It is the time at which the ledger before it was closed.
        """
        before = [each.timestamp for each in self.ledgers if each.ledger_id < ledger_id]
        if before:
            return before[-1]
        try:
            return int(datetime.fromisoformat(self.creation_date).timestamp() * 1000)
        except ValueError:
            return None
