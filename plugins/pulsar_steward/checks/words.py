"""Lists of names as a person reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_NAMES = 5
"""Most names in one sentence; further ones are only counted."""


def named(names: Sequence[str]) -> str:
    """The first few names, and the number of further ones."""
    words = ", ".join(names[:MAX_NAMES])
    return f"{words} and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else words
