"""What is known of a check in words."""

from __future__ import annotations

import msgspec


class CheckInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One check in words.

    Attributes:
        check_id: The id that findings carry.
        title: The trouble in a few words.
        advice: What to do about it, one step a line.
        source: Where this was learned.
        remedied_by: The planner that can propose a remedy; None where there is none.
    """

    check_id: str
    title: str
    advice: tuple[str, ...]
    source: str
    remedied_by: str | None = None
