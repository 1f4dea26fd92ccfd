"""Sizes, durations, times and lists of names as report text."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

MAX_NAMES = 5
"""Most names in one sentence; further ones are only counted."""

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP = 1024
_LENGTHS = ((86_400, "days"), (3_600, "h"), (60, "min"))


def size(count: float) -> str:
    """A number of bytes, such as ``1.5 GiB``."""
    rest, unit = float(count), 0
    while rest >= _STEP and unit < len(_UNITS) - 1:
        rest, unit = rest / _STEP, unit + 1
    return f"{rest:,.0f} bytes" if unit == 0 else f"{rest:,.1f} {_UNITS[unit]}"


def duration(seconds: float) -> str:
    """A number of seconds, such as ``36 s``, ``12.5 min``, ``3.0 h`` or ``20.0 days``."""
    for length, unit in _LENGTHS:
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:,.0f} s"


def utc(moment: datetime) -> str:
    """A time, such as ``2026-01-31 12:00 UTC``."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number of things, such as ``1 topic``, ``2,000 topics`` or ``3 entries``."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def named(names: Sequence[str]) -> str:
    """The first few names, and the number of further ones."""
    words = ", ".join(names[:MAX_NAMES])
    return f"{words} and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else words
