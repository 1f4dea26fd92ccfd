"""Words that notes of several planners share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_NAMED = 5
"""What is named one by one; there may be thousands."""


def enumerated(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more:,} more" if more > 0 else "")
