"""What brokers delete for a change: approved with the step, and compared with what they would delete in the end."""

from __future__ import annotations

import msgspec


class TopicLoss(msgspec.Struct, frozen=True, kw_only=True):
    """What one topic loses at once.

    Attributes:
        topic: Full name.
        messages: Over all of its subscriptions, each of which loses its own; None: not known.
        bytes: Stored ones, at most.
    """

    topic: str
    messages: int | None = None
    bytes: int


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """What is deleted at once, as far as it was seen.

    Attributes:
        topics: The worst, most bytes first.
        more: How many topics lose something beyond these.
        messages: Of all topics; None: not known.
        bytes: Of all topics, at most.
    """

    topics: tuple[TopicLoss, ...] = ()
    more: int = 0
    messages: int | None = None
    bytes: int = 0
