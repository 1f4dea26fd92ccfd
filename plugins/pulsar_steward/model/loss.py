"""Messages that brokers delete because of a change: approved with the step, and compared before the call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.units import bytes_in_words, counted

if TYPE_CHECKING:
    from collections.abc import Iterable


class TopicLoss(msgspec.Struct, frozen=True, kw_only=True):
    """Data that one topic loses at once.

    Attributes:
        topic: Full name.
        messages: Unread entries, the total over all cursors, as each cursor loses its own. Brokers count entries, not
            messages: a batch is one entry. None: not known.
        bytes: Maximum of stored bytes; None: not known.
        holder: Owner of the backlog, in words; empty: nobody, or not known.
    """

    topic: str
    messages: int | None
    bytes: int | None
    holder: str = ""

    @property
    def words(self) -> str:
        """The data in words, with the holder of the backlog: ``5 entries, 500 B, held by subscription s``."""
        messages = "" if self.messages == 0 else f"{entries_in_words(self.messages)}, "
        held = f", held by {self.holder}" if self.holder else ""
        return f"{messages}{size_in_words(self.bytes)}{held}"


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """Maximum data that is deleted at once. Unknown values are None, never 0.

    Attributes:
        topics: The topics that lose most, most bytes first.
        more: Number of further topics that lose data.
        messages: Total of unread entries over all topics; None: not known.
        bytes: Total of all topics; None: not known.
    """

    topics: tuple[TopicLoss, ...] = ()
    more: int = 0
    messages: int | None
    bytes: int | None

    @property
    def is_known(self) -> bool:
        """True if both of its totals are known."""
        return self.messages is not None and self.bytes is not None

    @property
    def words(self) -> str:
        """Both totals in words: ``5 entries (500 B)``."""
        return f"{entries_in_words(self.messages)} ({size_in_words(self.bytes)})"

    def exceeds(self, other: Loss) -> bool:
        """True if more is lost, in messages or in bytes; an unknown value counts as more than any number."""
        return _exceeds(self.messages, other.messages) or _exceeds(self.bytes, other.bytes)


NOTHING_LOST = Loss(messages=0, bytes=0)


def entries_in_words(entries: int | None) -> str:
    """A number of entries, known or not; "messages" would be wrong, as brokers count a batch as one entry."""
    return "a number of entries that is not known" if entries is None else counted(entries, "entry", "entries")


def size_in_words(size: int | None) -> str:
    """A number of bytes, known or not."""
    return "a size that is not known" if size is None else bytes_in_words(size)


def total(figures: Iterable[int | None]) -> int | None:
    """The sum; None if one of the figures is not known."""
    every = list(figures)
    return None if None in every else sum(each or 0 for each in every)


def _exceeds(now: int | None, then: int | None) -> bool:
    return then is not None and (now is None or now > then)


_TIMES, _MORE = 2, 10_000


def room_for(messages: int, *, can_grow: bool = False) -> int:
    """Maximum number of messages in flight that `messages` may become until the call.

    Args:
        messages: Their number now.
        can_grow: True if 0 may become more, as clients are connected; else 0 stays 0.
    """
    return messages * _TIMES + _MORE if messages or can_grow else 0


class InFlight(msgspec.Struct, frozen=True, kw_only=True):
    """Maximum number of messages in flight: the number in a snapshot, and a margin.

    Attributes:
        again: Acknowledged messages that are redelivered, as batches are acknowledged in part.
        volatile_topics: Non-persistent topics; they lose messages published while their clients reconnect.
        lost: Messages that these topics lose, at their rates, in the time that the policy gives clients to reconnect.
    """

    again: int = 0
    volatile_topics: int = 0
    lost: int = 0

    def outgrew(self, earlier: InFlight) -> bool:
        """True if a later snapshot shows more than was agreed to, the margin included."""
        return (
            self.volatile_topics > earlier.volatile_topics
            or self.again > room_for(earlier.again)
            or self.lost > room_for(earlier.lost)
        )
