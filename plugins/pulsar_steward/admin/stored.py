"""A topic's ledgers and cursors as the metadata store has them, for topics that no broker has loaded.

Any broker answers from the metadata store, and loads nothing for it. The store has neither size nor entries of the last
ledger, so that a backlog is told as a lower bound (docs/pulsar-behaviour.md, Topics that are not loaded).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.admin.figures import Figure, Long

if TYPE_CHECKING:
    from collections.abc import Iterator

OWN_CURSORS = "pulsar."
"""Prefix of Pulsar's own cursors: of deduplication and replication."""


class _Position(msgspec.Struct, frozen=True, rename="camel"):
    ledger_id: Long
    entry_id: Long


class StoredLedger(msgspec.Struct, frozen=True, rename="camel"):
    """One ledger; entries and size are absent of the last one, and of one that a broker did not close."""

    ledger_id: Long
    entries: Figure | None = None
    size: Figure | None = None
    timestamp: Figure = 0


class StoredCursor(msgspec.Struct, frozen=True, rename="camel"):
    """One cursor; its position is here once its topic was closed, and until then in a ledger of the cursor's own."""

    cursors_ledger_id: Long = -1
    mark_delete: _Position | None = None


class UnreadLedger(msgspec.Struct, frozen=True):
    """A closed ledger with entries that a cursor has not consumed.

    Attributes:
        bytes: Size of these entries, by their share of the ledger's.
        closed_milliseconds: When the ledger was closed, since the epoch: they are at least as old.
    """

    bytes: int
    closed_milliseconds: int


class StoredTopic(msgspec.Struct, frozen=True, rename="camel"):
    """A topic's ``internal-info``."""

    creation_date: str = ""
    ledgers: list[StoredLedger] = []
    cursors: dict[str, StoredCursor] = {}

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """Names of its subscriptions, sorted."""
        return tuple(sorted(name for name in self.cursors if not name.startswith(OWN_CURSORS)))

    @property
    def least_backlog_bytes(self) -> int:
        """Bytes that its slowest cursor has not consumed, at least."""
        return max((sum(each.bytes for each in self.unread(name)) for name in self.cursors), default=0)

    @property
    def oldest_closed_milliseconds(self) -> int | None:
        """When the oldest ledger was closed of which a cursor has not consumed something; None: there is none."""
        firsts = (next(self.unread(name), None) for name in self.cursors)
        return min((first.closed_milliseconds for first in firsts if first is not None), default=None)

    def unread(self, cursor: str) -> Iterator[UnreadLedger]:
        """Yields the closed ledgers with entries that a cursor has not consumed, oldest first; none if not known."""
        consumed = self.cursors[cursor].mark_delete
        known = self.cursors[cursor].cursors_ledger_id < 0
        for ledger in self.ledgers if known else ():
            if not ledger.entries or ledger.size is None or (consumed and ledger.ledger_id < consumed.ledger_id):
                continue
            read = consumed.entry_id + 1 if consumed and ledger.ledger_id == consumed.ledger_id else 0
            left = max(ledger.entries - read, 0)
            if left:
                yield UnreadLedger(ledger.size * left // ledger.entries, ledger.timestamp)
