"""Bar charts as inline SVG: no script, font or colour from elsewhere, and every figure is there in words too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WIDTH = 720
ROW = 22
BAR = 14
LABEL = 250
"""Columns of the drawing, in its own units, for the names on the left."""

FIGURE = 110
"""The same for the figures on the right."""

MOST_BARS = 60
"""Brokers of a large cluster that are drawn; the rest is said in words below."""

_LETTER = 6.6
"""Width of a letter of the page's fixed-width font, at the size of the names."""


class Bar(msgspec.Struct, frozen=True):
    """One bar: its name, its length, and the figure in words; a length of None is not known, and not 0."""

    name: str
    value: float | None
    figure: str


def bar_chart(title: str, bars: Sequence[Bar]) -> Markup:
    """A chart of horizontal bars from 0, in the order given; nothing where there are no bars.

    Args:
        title: What it shows; read out in place of the drawing.
        bars: At most `MOST_BARS` of them are drawn.
    """
    if not bars:
        return Markup()
    shown = bars[:MOST_BARS]
    most = max((bar.value or 0 for bar in bars), default=0)
    height = ROW * len(shown) + 4
    drawn = Markup("").join(_row(number, bar, most) for number, bar in enumerate(shown))
    svg = Markup(
        '<svg class="chart" role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        "><title>{title}</title>{drawn}</svg>"
    ).format(width=WIDTH, height=height, title=title, drawn=drawn)
    more = len(bars) - len(shown)
    return svg + (Markup("<p class='more'>and {more} more</p>").format(more=f"{more:,}") if more else Markup())


def _row(number: int, bar: Bar, most: float) -> Markup:
    top = ROW * number + 2
    return Markup("").join(_parts(top, bar, _length(bar.value, most)))


def _parts(top: int, bar: Bar, length: float) -> Iterator[Markup]:
    baseline = top + BAR - 2
    yield Markup("<g><title>{name}: {figure}</title>").format(name=bar.name, figure=bar.figure)
    yield Markup('<text class="name" x="{x}" y="{y}" text-anchor="end">{name}</text>').format(
        x=LABEL - 8, y=baseline, name=_shortened(bar.name)
    )
    if bar.value is not None:
        yield Markup('<rect class="bar" x="{x}" y="{y}" width="{length:.1f}" height="{bar}"/>').format(
            x=LABEL, y=top, length=length, bar=BAR
        )
    yield Markup('<text class="figure" x="{x:.1f}" y="{y}">{figure}</text></g>').format(
        x=LABEL + length + 6, y=baseline, figure=bar.figure
    )


def _length(value: float | None, most: float) -> float:
    """Nothing for 0, and at least a line for anything more."""
    if not value or most <= 0:
        return 0.0
    return max(1.0, (WIDTH - LABEL - FIGURE) * value / most)


def _shortened(name: str) -> str:
    """A name that fits beside its bar: its end tells hosts, bundles and namespaces apart better than its start."""
    fits = int((LABEL - 12) / _LETTER)
    return name if len(name) <= fits else "…" + name[-(fits - 1) :]
