"""Messages in flight that a move redelivers or loses: approved with the step, and compared before the call."""

from __future__ import annotations

import msgspec

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
