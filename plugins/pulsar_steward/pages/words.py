"""Filters of the templates: times, sizes and numbers as people read them, and small drawings' coordinates."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pulsar_steward.model.units import DAY, HOUR, MINUTE, bytes_in_words, number_in_words, seconds_in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MISSING = "–"  # noqa: RUF001 - a dash where there is no figure

_DARK_HEAT = 5
"""Steps of colour on the map of bundles."""


def number(value: float | None) -> str:
    """A number with separators; a dash where there is none."""
    return MISSING if value is None else number_in_words(value)


def percent(value: float | None) -> str:
    """A percentage without digits behind the point; a dash where there is none."""
    return MISSING if value is None else f"{value:,.0f} %"


def size(value: float | None) -> str:
    """Bytes in words; a dash where there is no figure."""
    return MISSING if value is None else bytes_in_words(value, rounded=True)


def rate(value: float | None) -> str:
    """Bytes a second, in megabytes with one digit; a dash where there is no figure."""
    return MISSING if value is None else f"{value / 1_000_000:,.1f}"


def moment(value: datetime) -> str:
    """A time without its zone, which the page says once: ``2026-01-31 12:00:00``."""
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def duration(seconds: float) -> str:
    """A time span in its two largest units: ``3 d 4 h``, ``2 h 5 min``, ``40 s``."""
    whole = int(abs(seconds))
    if whole >= DAY:
        return _two(whole, DAY, "d", HOUR, "h")
    if whole >= HOUR:
        return _two(whole, HOUR, "h", MINUTE, "min")
    return f"{whole // MINUTE} min" if whole >= MINUTE else f"{whole} s"


def seconds(value: float) -> str:
    """A forecast in the words of findings, to the second where it is short: ``95 s``, ``2.5 min``."""
    return seconds_in_words(value, rounded=True)


def _two(seconds: int, large: int, large_unit: str, small: int, small_unit: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large} {large_unit}" + (f" {rest} {small_unit}" if rest else "")


def ago(now: datetime) -> Callable[[datetime], str]:
    """Filter for the time from a moment until now, or from now until a moment."""
    return lambda value: duration((now - value).total_seconds())


def heat_step(heat: float) -> int:
    """Step of colour for a throughput between 0 and 1: the square root, so that small differences show."""
    return min(int(heat**0.5 * _DARK_HEAT), _DARK_HEAT - 1)


def polyline(values: Sequence[float], width: int, height: int) -> str:
    """Points of a line through values, from 0 at the bottom, as SVG wants them."""
    most = max([*values, 1e-9])
    step = width / max(len(values) - 1, 1)
    points = ((place * step, height - value / most * (height - 2) - 1) for place, value in enumerate(values))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
