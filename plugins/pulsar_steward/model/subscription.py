"""A subscription of one topic as a broker reports it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.holders import HolderKind, kind_of_cursor
from pulsar_steward.model.units import time_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable


class Cursor(msgspec.Struct, frozen=True, kw_only=True):
    """Identity of a subscription: its cursor, which stays equal as long as nobody makes it anew, moves it or writes it.

    A name says little: a subscription that was deleted and made anew has the same one, and often the same position
    (docs/pulsar-behaviour.md, The identity of a subscription).

    Attributes:
        created: Time at which the metadata store got the cursor, UTC. Loading, moving and resetting it leave this.
        position: Mark-delete position, ``ledger:entry``.
        written: Last entry of the cursor's own ledger, ``ledger:entry``; ``-1:-1`` if nothing was written since the
            topic was loaded. A reset writes one, also a reset to the same position.
    """

    created: datetime
    position: str
    written: str

    def difference(self, now: Cursor | None) -> str | None:
        """Difference of the present cursor from this one, as the end of a sentence about it; None: it is the same.

        Args:
            now: The present cursor; None: not known.
        """
        if now is None:
            return "is not known to be the planned one, as its broker does not report when it was made"
        if now.created != self.created:
            made = (time_in_words(each.created, seconds=True) for each in (now, self))
            return "was made anew at {}; the planned one is of {}".format(*made)
        if now.position != self.position:
            return f"is at position {now.position}, no longer at {self.position}: somebody reset or consumed it"
        if now.written != self.written:
            return f"was written since, without another position ({now.written}, no longer {self.written})"
        return None


class SubscriptionState(msgspec.Struct, frozen=True, kw_only=True):
    """State of a subscription of one topic or partition.

    Attributes:
        consumers: Connected consumers.
        entries: Entries of its backlog.
        topic_bytes: Backlog of the topic, that of its slowest subscription: the bytes that it holds, at most.
        moved_milliseconds: Last time that a message of it was sent, acknowledged, skipped or expired, since the epoch,
            by the broker's memory; 0: never since the topic was loaded, or not known.
        cursor: Its identity; None: not read, or not known.
        replicated: True if its position is replicated to other clusters; None: not read.
        others: Other subscriptions of the topic that hold messages for an application (`holding`).
    """

    consumers: int
    entries: int
    topic_bytes: int
    moved_milliseconds: int = 0
    cursor: Cursor | None = None
    replicated: bool | None = None
    others: int = 0


def holding(subscriptions: Iterable[str]) -> int:
    """Number of durable subscriptions of applications, by name: not a reader's, and not Pulsar's own."""
    return sum(kind_of_cursor(each) is HolderKind.SUBSCRIPTION for each in subscriptions)
