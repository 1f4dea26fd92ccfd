"""Figures as text, in fitting units."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024
_HUNDREDS = 100


def in_bytes(number: float) -> str:
    """Bytes in a fitting unit: ``1.5 GiB``."""
    size, unit = float(number), 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size, unit = size / _STEP, unit + 1
    return f"{size:,.1f} {_UNITS[unit]}" if unit else f"{number:,.0f} B"


def in_figures(number: float) -> str:
    """A count, or a rate with the decimals that matter: ``1,234``, ``0.25``."""
    if number == int(number) or abs(number) >= _HUNDREDS:
        return f"{number:,.0f}"
    return f"{number:,.2f}"
