"""Bar charts that start at 0: a figure for each broker, bundle or namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.report.checkup.charts.chart import (
    AROUND,
    BLUE,
    ROW,
    Chart,
    hover,
    hover_template,
    named_rows,
)
from pulsar_steward.report.checkup.charts.drawing import Figure, drawn
from pulsar_steward.report.checkup.charts.drawing import bars as draw_bars

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_BARS = 60
"""Bars drawn for a large cluster; the table has all."""

_SHORT, _LONG = 28, 44
"""Length of names, for a chart with half of the page's width, or all of it."""

_ROOM = 1.2
"""Length of the axis relative to the longest bar, with room for the figure at the bars' ends."""


class Bar(msgspec.Struct, frozen=True):
    """One bar: its name, its length, and the figure as text; a length of None is not known, and not 0."""

    name: str
    value: float | None
    figure: str


def bar_chart(
    chart_id: str, title: str, bars: Sequence[Bar], head: tuple[str, str], *, note: str = "", half: bool = False
) -> Chart:
    """A chart of horizontal bars, in the order given.

    Args:
        chart_id: Unique in the page.
        title: The chart's title.
        bars: At most `MAX_BARS` of them are drawn.
        head: Headings of the names and the figures.
        note: See `Chart`.
        half: See `Chart`.
    """
    shown = bars[:MAX_BARS]
    if len(shown) < len(bars):
        note = f"{note} The first {len(shown):,} of {len(bars):,} are drawn; the table has all.".strip()
    return Chart(
        chart_id=chart_id,
        title=title,
        note=note,
        figure=_figure(shown, _SHORT if half else _LONG),
        half=half,
        head=head,
        rows=tuple((bar.name, bar.figure) for bar in bars),
    )


def _figure(bars: Sequence[Bar], letters: int) -> Figure:
    names, figures = [bar.name for bar in bars], [bar.figure for bar in bars]
    values = [bar.value or 0 for bar in bars]
    trace = draw_bars(
        x=values,
        y=list(range(len(bars))),
        marker={"color": BLUE},
        text=figures,
        customdata=hover(names, figures),
        hovertemplate=hover_template(0, 1),
    )
    return drawn(
        trace,
        height=ROW * len(bars) + AROUND,
        xaxis={"range": [0, max(values, default=0) * _ROOM or 1], "showticklabels": False, "showgrid": False},
        yaxis=named_rows(names, letters),
    )
