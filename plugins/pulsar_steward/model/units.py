"""Bytes, durations, times, rates, counts and names as text for people, and their units."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

MEGABYTE = 1_000_000
"""Unit of throughput, as in Pulsar and in networks; stored data is counted in powers of 1024."""

MINUTE = 60
HOUR = 3_600
DAY = 86_400

_BYTES = ((1 << 50, "PiB"), (1 << 40, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))
_SECONDS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"))
_HUNDREDS = 100


def bytes_in_words(count: float, *, rounded: bool = False) -> str:
    """Bytes in the largest unit that leaves at least 1.

    Args:
        count: Number of bytes; a limit below 0 is Pulsar's notation for no limit.
        rounded: True: one decimal (``23.4 GiB``, ``2.0 GiB``), for a measured or estimated value. False: up to two
            decimals without trailing zeros (``1.25 GiB``, ``2 GiB``), for a limit that somebody set.
    """
    if count < 0 and not rounded:
        return "unlimited"
    factor, unit = next(((factor, unit) for factor, unit in _BYTES if count >= factor), (1, "B"))
    if factor == 1:
        return f"{count:,.0f} B"
    if rounded:
        return f"{count / factor:,.1f} {unit}"
    return f"{count / factor:,.2f}".rstrip("0").rstrip(".") + f" {unit}"


def seconds_in_words(count: float, *, rounded: bool = False) -> str:
    """Seconds in a larger unit.

    Args:
        count: Number of seconds; a limit below 0 is Pulsar's notation for no limit.
        rounded: True: the largest unit with a value of at least 2, and one decimal (``12.5 min``, ``20.0 d``), for a
            measured or estimated value. False: the largest unit that divides the seconds (``36 h``, ``90 s``), for a
            limit that somebody set.
    """
    if count < 0 and not rounded:
        return "unlimited"
    if rounded:
        length, unit = next(((length, unit) for length, unit in _SECONDS if count >= 2 * length), (1, "s"))
        return f"{count:,.0f} s" if length == 1 else f"{count / length:,.1f} {unit}"
    length, unit = next(((length, unit) for length, unit in _SECONDS if count and count % length == 0), (1, "s"))
    return f"{int(count) // length:,} {unit}"


def milliseconds_in_words(count: int) -> str:
    """Milliseconds of a setting, in a larger unit that divides them (``3 d``, ``1 s``, ``1,500 ms``)."""
    return f"{count:,} ms" if count % 1000 else seconds_in_words(count // 1000)


def time_in_words(moment: datetime, *, date: bool = True, seconds: bool = False) -> str:
    """A time, such as ``2026-01-31 12:00 UTC``; without its date ``12:00 UTC``, with seconds ``12:00:00 UTC``."""
    clock = "%H:%M:%S" if seconds else "%H:%M"
    return f"{moment.astimezone(UTC).strftime(f'%Y-%m-%d {clock}' if date else clock)} UTC"


def epoch_in_words(milliseconds: int) -> str:
    """A time that Pulsar gives in milliseconds since 1970, such as ``2026-01-31 12:00 UTC``."""
    return time_in_words(datetime.fromtimestamp(milliseconds / 1000, UTC))


def throughput_in_words(bytes_per_second: float) -> str:
    """A throughput, such as ``1.5 MB/s``."""
    return f"{bytes_per_second / MEGABYTE:,.1f} MB/s"


def number_in_words(number: float) -> str:
    """A number; a small one that is not whole has two decimals: ``1,234``, ``0.25``."""
    return f"{number:,.0f}" if number == int(number) or abs(number) >= _HUNDREDS else f"{number:,.2f}"


def counted(count: float, one: str, many: str | None = None) -> str:
    """A number of things, rounded, such as ``1 topic``, ``2,000 topics`` or ``3 entries``.

    Args:
        count: Number of things.
        one: The singular, with its verb if that has to agree (``topic is``).
        many: The plural; by default with an s at the end.
    """
    number = f"{count:,.0f}"
    return f"{number} {one if number == '1' else many or f'{one}s'}"


MAX_NAMES = 5
"""Maximum number of names in one sentence; further ones are only counted."""


def named(names: Sequence[str]) -> str:
    """The first few names, and the number of further ones."""
    words = ", ".join(names[:MAX_NAMES])
    return f"{words} and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else words


def rate_side_by_side(rate_of_one: float, workers: float, rate_of_all: float) -> float:
    """Things per second of workers side by side, which share something that allows `rate_of_all` at most."""
    return min(rate_of_one * workers, rate_of_all)


def total_seconds(*parts: float) -> int:
    """Sum of parts that follow one another, in seconds, rounded up."""
    return math.ceil(sum(parts))
