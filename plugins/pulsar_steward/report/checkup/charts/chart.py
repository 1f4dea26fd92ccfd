"""One chart: its figure, and a table of the same data for browsers without scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from plotly import graph_objects  # type: ignore[import-untyped]  # it has none

from pulsar_steward.outside_text import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

BLUE, AMBER, VIOLET, GREEN = "#3d7fc4", "#d97b1f", "#8b68c8", "#2f9a6b"
RED = "#cf4a41"
LINES = (BLUE, AMBER, GREEN, "#d0558f", VIOLET, "#1f9fb5", "#a3842b", "#7a8794", "#c84b45", "#5f8f2f")
"""Colours of medium lightness, legible on white and on black; everything else is coloured by the page."""

ROW = 26
"""Height of one bar with its gap, in pixels."""

AROUND = 44
"""Height of the axis below the bars, in pixels."""

_LABEL = 44
"""Maximum length of a name beside its bar, in characters."""

_SCHEME = "persistent://"
"""Prefix of nearly every topic's name."""

_TAGS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """One chart.

    Attributes:
        chart_id: Unique in the page.
        title: The chart's title.
        note: Point to look for in it, or data that it leaves out.
        figure: None if there is no data to draw.
        head: Headings of the table's columns.
        rows: Rows of the table, each with as many cells.
        half: True if two charts of its kind fit beside each other.
    """

    chart_id: str
    title: str
    note: str = ""
    figure: Figure | None
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    half: bool = False


def escaped(name: str) -> str:
    """Escapes a name for plotly, which would interpret tags in a text, links among them."""
    return shown(name).translate(_TAGS)


def label(name: str, most: int = _LABEL) -> str:
    """Shortens a name to fit beside its bar: its end identifies hosts, bundles and topics better than its start."""
    name = shown(name.removeprefix(_SCHEME))
    return escaped(name if len(name) <= most else "…" + name[1 - most :])


def hover(names: Sequence[str], *words: Sequence[str]) -> dict[str, Any]:
    """Fields of a trace for the text at the pointer: the full name and a line for each of the other columns."""
    lines = "<br>".join(f"%{{customdata[{column}]}}" for column in range(1 + len(words)))
    rows = [[escaped(each) for each in row] for row in zip(names, *words, strict=True)]
    return {"customdata": rows, "hovertemplate": f"{lines}<extra></extra>"}


def named_rows(names: Sequence[str], most: int = _LABEL) -> dict[str, object]:
    """Vertical axis of named bars: positioned by number, as two shortened names may be equal."""
    return {
        "tickvals": list(range(len(names))),
        "ticktext": [label(name, most) for name in names],
        "range": [len(names) - 0.4, -0.6],
        "showgrid": False,
        "ticklabelstandoff": 6,
        "tickfont": {"family": "ui-monospace, monospace", "size": 11},
    }


Figure: TypeAlias = Any
"""`plotly.graph_objects.Figure`; it rejects unknown properties."""

Trace: TypeAlias = Any
"""`plotly.graph_objects.Bar` or `Scatter`."""


def bars(values: Sequence[float], color: str | list[str], **fields: object) -> Trace:
    """Trace of horizontal bars, one below the other."""
    places, ends = list(range(len(values))), {"textposition": "outside", "cliponaxis": False}
    return graph_objects.Bar(x=values, y=places, orientation="h", marker={"color": color}, **ends, **fields)


def points(**fields: object) -> Trace:
    """Trace of points, or a line through them."""
    return graph_objects.Scatter(**fields)


def drawn(*traces: Trace, height: int, **layout: Any) -> Figure:
    """A figure of these traces in the page's style, without a template of its own; the height is in pixels.

    The layout is given at once: each update of a figure takes 5 ms, and a page may have ten figures.
    """
    axis = {"automargin": True, "zeroline": False, "fixedrange": True, "gridcolor": "#999"}
    usual: dict[str, Any] = {
        "template": graph_objects.layout.Template(),
        "height": height,
        "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"size": 12, "family": "system-ui, sans-serif"},
        "bargap": 0.35,
        "showlegend": False,
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "xanchor": "left"},
        "hoverlabel": {"align": "left"},
        "dragmode": False,
        "xaxis": axis,
        "yaxis": axis,
    }
    merged = {name: usual[name] | each if isinstance(usual.get(name), dict) else each for name, each in layout.items()}
    return graph_objects.Figure(traces, layout=usual | merged)
