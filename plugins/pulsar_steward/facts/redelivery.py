"""Upper bound of the acknowledged messages that a move redelivers; for planning and calls.

A broker that unloads a topic stores the position of each subscription, and the acknowledged entries behind it, up to a
limit. It does not store which messages of a partly acknowledged batch are acknowledged: so such a batch is redelivered
whole (docs/pulsar-behaviour.md, What a move sets off).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

PERSISTED_HOLES = "managedLedgerMaxUnackedRangesToPersist"
HOLES_IN_STORE = "managedLedgerMaxUnackedRangesToPersistInMetadataStore"
AS_ARRAY = "managedLedgerPersistIndividualAckAsLongArray"
BATCH_INDEXES = "acknowledgmentAtBatchIndexLevelEnabled"

SETTINGS = (PERSISTED_HOLES, HOLES_IN_STORE, AS_ARRAY, BATCH_INDEXES)
"""Brokers' settings that decide which acknowledgements survive a move."""

COUNTED_TYPES = frozenset({"Shared", "Key_Shared"})
"""Types of subscriptions for which brokers count unacknowledged messages of consumers."""


class KeptAcks(msgspec.Struct, frozen=True, kw_only=True):
    """Acknowledgements that survive a move, by brokers' settings.

    Attributes:
        holes: Number of ack holes of a cursor up to which all acknowledgements survive.
        knows_batches: True if brokers know which messages of a batch are acknowledged, and keep that in memory.
    """

    holes: int = 10_000
    knows_batches: bool = False


def kept_acks(running: Mapping[str, str]) -> KeptAcks:
    """Acknowledgements that survive a move, by brokers' running settings; a missing setting has its default.

    If brokers write bit arrays, the limit counts acknowledged entries instead of holes, and whole ledgers of them are
    left out. A small number of holes is written to the metadata store, which has no arrays.
    """
    holes = _number(running.get(PERSISTED_HOLES), KeptAcks().holes)
    if running.get(AS_ARRAY) == "true":
        holes = min(holes, _number(running.get(HOLES_IN_STORE), 1_000))
    return KeptAcks(holes=holes, knows_batches=running.get(BATCH_INDEXES) == "true")


class SubscriptionFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Acknowledgement figures of a loaded topic's subscription.

    Attributes:
        subscription: Its name.
        backlog_entries: Entries that are not wholly acknowledged; a batch is one entry.
        holes: Ranges of acknowledged entries after the first unacknowledged one
            (`totalNonContiguousDeletedMessagesRange`).
        entries_since_first_gap: Entries from the first unacknowledged one to the next one to be read.
        consumers: Connected consumers.
        held_messages: Messages that consumers received and did not acknowledge; None: brokers do not count them.
        messages_per_entry: Highest average of the consumers' recent messages per entry; 0: not known.
    """

    subscription: str
    backlog_entries: int = 0
    holes: int = 0
    entries_since_first_gap: int = 0
    consumers: int = 0
    held_messages: int | None = None
    messages_per_entry: int = 0

    def open_entries(self, kept: KeptAcks) -> int:
        """Maximum number of entries that may be partly acknowledged.

        Brokers that know batches keep this after the consumer left; else only connected consumers know it.
        """
        if kept.knows_batches:
            return max(self.backlog_entries, 0)
        return max(min(self.backlog_entries, self.entries_since_first_gap), 0) if self.consumers else 0

    def may_come_again(self, kept: KeptAcks, largest_batch: int) -> int | None:
        """Maximum of acknowledged messages in open batches; None: unknown, batches are larger than `largest_batch`."""
        entries = self.open_entries(kept)
        # Consumers' unacknowledged messages are no bound if brokers know batches: seen far below 0.
        held = None if kept.knows_batches or (self.held_messages or 0) < 0 else self.held_messages
        by_batches = entries * (largest_batch - 1) if self.messages_per_entry <= largest_batch else None
        bounds = [each for each in (held, by_batches) if each is not None]
        return min(bounds, default=None) if entries else 0


def _number(text: str | None, usual: int) -> int:
    return int(text) if text is not None and text.isdecimal() else usual
