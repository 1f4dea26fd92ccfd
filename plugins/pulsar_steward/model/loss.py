"""Messages that brokers delete for a change: approved with the step, and compared with the state before the call."""

from __future__ import annotations

import msgspec


class TopicLoss(msgspec.Struct, frozen=True, kw_only=True):
    """Data that one topic loses at once.

    Attributes:
        topic: Full name.
        messages: Total over all of its subscriptions, each of which loses its own; None: not known.
        bytes: Stored bytes, at most.
    """

    topic: str
    messages: int | None = None
    bytes: int


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """Data that is deleted at once, as far as it is known.

    Attributes:
        topics: The worst, most bytes first.
        more: Number of topics that lose something beyond these.
        messages: Total of all topics; None: not known.
        bytes: Total of all topics, at most.
    """

    topics: tuple[TopicLoss, ...] = ()
    more: int = 0
    messages: int | None = None
    bytes: int = 0

    @property
    def has_room(self) -> bool:
        """True if its total of messages is more than its topics lose now: a limit, with room for growth."""
        return not self.more and (self.messages or 0) > sum(each.messages or 0 for each in self.topics) > 0
