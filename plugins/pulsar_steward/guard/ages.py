"""How old the backlogs of a namespace are, as far as that is known: for plan and call alike."""

from __future__ import annotations

import msgspec


class BacklogAges(msgspec.Struct, frozen=True, kw_only=True):
    """The oldest message that a subscription has not consumed, over topics.

    Attributes:
        oldest_seconds: Of those topics of which it is known or estimated; 0: none of them has a backlog.
        topic: Whose that is; None: nobody's.
        estimated: Whether it is only estimated, from the size of a backlog and what comes in now.
        waiting: Topics with a backlog.
        unknown: Those of them of which nothing is known.
        why_unknown: In words, where there are any.
    """

    oldest_seconds: int = 0
    topic: str | None = None
    estimated: bool = False
    waiting: int = 0
    unknown: int = 0
    why_unknown: str = ""
