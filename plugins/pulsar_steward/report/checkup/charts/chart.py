"""One chart: its figure, and all that it shows as a table for whoever runs no scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.outside_text import shown
from pulsar_steward.report.checkup.charts.drawing import Figure

if TYPE_CHECKING:
    from collections.abc import Sequence

BLUE, AMBER, VIOLET, GREEN = "#3d7fc4", "#d97b1f", "#8b68c8", "#2f9a6b"
RED = "#cf4a41"
LINES = (BLUE, AMBER, GREEN, "#d0558f", VIOLET, "#1f9fb5", "#a3842b", "#7a8794", "#c84b45", "#5f8f2f")
"""Of middling lightness, so that they can be told apart on white and on black. The page colours everything else."""

ROW = 26
"""Pixels of one bar and the gap above it."""

AROUND = 44
"""Pixels for the axis below the bars."""

_LABEL = 44
"""Letters of a name beside its bar."""

_SCHEME = "persistent://"
"""So nearly every topic begins."""

_TAGS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """One chart.

    Attributes:
        chart_id: Unique in the page.
        title: What it shows.
        note: What to see in it, or what it leaves out.
        figure: None where words say it all.
        head: Of the table's columns.
        rows: Of the table, as many cells each.
        half: Whether two of its kind fit beside each other.
    """

    chart_id: str
    title: str
    note: str = ""
    figure: Figure | None
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    half: bool = False


def escaped(name: str) -> str:
    """A name as plotly shows it: it would take tags in a text for its own, links among them."""
    return shown(name).translate(_TAGS)


def label(name: str, most: int = _LABEL) -> str:
    """A name that fits beside its bar: its end tells hosts, bundles and topics apart better than its start."""
    name = shown(name.removeprefix(_SCHEME))
    return escaped(name if len(name) <= most else "…" + name[1 - most :])


def hover(names: Sequence[str], *words: Sequence[str]) -> list[list[str]]:
    """What plotly shows at the pointer: the whole name and a line for each of the other columns."""
    return [[escaped(each) for each in row] for row in zip(names, *words, strict=True)]


def hover_template(*columns: int) -> str:
    """Shows these columns of `hover`, a line each."""
    return "<br>".join(f"%{{customdata[{column}]}}" for column in columns) + "<extra></extra>"


def named_rows(names: Sequence[str], most: int = _LABEL) -> dict[str, object]:
    """The vertical axis of bars with names: by number, as two names may look the same when they are shortened."""
    return {
        "tickvals": list(range(len(names))),
        "ticktext": [label(name, most) for name in names],
        "range": [len(names) - 0.4, -0.6],
        "showgrid": False,
        "ticklabelstandoff": 6,
        "tickfont": {"family": "ui-monospace, monospace", "size": 11},
    }
