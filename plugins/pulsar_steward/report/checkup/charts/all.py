"""All charts of a check-up, in the order of the page."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec
from markupsafe import Markup

from pulsar_steward.model.units import bytes_in_words, counted
from pulsar_steward.report.checkup.charts.chart import (
    AROUND,
    BLUE,
    ROW,
    Chart,
    as_json,
    drawn,
    hover,
    library,
    named_rows,
)
from pulsar_steward.report.checkup.charts.chart import bars as draw_bars
from pulsar_steward.report.checkup.charts.limits import ack_holes_chart, backlog_chart
from pulsar_steward.report.checkup.charts.trends import delayed_chart, trend_charts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.report.checkup.document import Checkup
    from pulsar_steward.report.checkup.measures import Measures

MAX_BARS = 60
"""Number of bars drawn for a large cluster; the table has all."""

_SHORT, _LONG = 28, 44
"""Length of names, for a chart with half of the page's width, or all of it."""

_ROOM = 1.2
"""Length of the axis relative to the longest bar, with room for the figure at the bars' ends."""


class Bar(msgspec.Struct, frozen=True):
    """One bar: its name, its length, and the figure as text; a length of None means not known, not 0."""

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
    names, figures = [bar.name for bar in shown], [bar.figure for bar in shown]
    values = [bar.value or 0 for bar in shown]
    figure = drawn(
        draw_bars(values, BLUE, text=figures, **hover(names, figures)),
        height=ROW * len(shown) + AROUND,
        xaxis={"range": [0, max(values, default=0) * _ROOM or 1], "showticklabels": False, "showgrid": False},
        yaxis=named_rows(names, _SHORT if half else _LONG),
    )
    rows = tuple((bar.name, bar.figure) for bar in bars)
    return Chart(chart_id=chart_id, title=title, note=note, figure=figure, half=half, head=head, rows=rows)


def _said(chart_id: str, title: str, words: str) -> Chart:
    return Chart(chart_id=chart_id, title=title, note=words, figure=None)


NO_BACKLOG = _said("chart-limits", "Backlog against quota and retention", "No topic that was read has a backlog.")
NO_ACK_HOLES = _said("chart-ack-holes", "Ack holes by subscription", "No subscription that was read has any.")
NO_DELAYED = _said(
    "chart-delayed",
    "Delayed messages and their index",
    "None were seen on the topics whose own statistics were read.",
)
NO_TRENDS = (
    "Trends need a second snapshot, and this check-up found none before it. `steward checkup --keep DIR` keeps its"
    " snapshot in a folder and compares it with those that are there; so does Airflow's scheduled pulsar_observe."
)


def charts_of(checkup: Checkup) -> tuple[Chart, ...]:
    """The charts; a chart without data has a sentence with the reason.

    Charts of half a width come in pairs; one without a neighbour gets the full width.
    """
    found: list[Chart] = []
    for half, run in groupby(_charts(checkup, checkup.measures), key=lambda chart: chart.half):
        *before, last = run
        found += (*before, msgspec.structs.replace(last, half=half and bool(len(before) % 2)))
    return tuple(found)


def _charts(checkup: Checkup, measures: Measures) -> Iterator[Chart]:
    if checkup.about.coordinators:
        held = [_counted(each.broker, each.coordinators) for each in measures.brokers]
        title = "Transaction coordinators by broker"
        yield bar_chart("chart-coordinators", title, held, ("broker", "transaction coordinators"), half=True)
    topics = [_counted(each.broker, each.topics) for each in measures.brokers]
    yield bar_chart("chart-topics", "Loaded topics by broker", topics, ("broker", "topics"), half=True)
    for number, crowded in enumerate(measures.crowded, start=1):
        fewer = counted(crowded.not_listed, "further bundle has fewer", "further bundles have fewer each")
        more = f"{fewer}." if crowded.not_listed else ""
        bars = [_counted(each.bundle, each.topics) for each in crowded.bundles]
        title = f"Topics by bundle of {crowded.namespace}"
        yield bar_chart(f"chart-bundles-{number}", title, bars, ("bundle", "topics"), note=more, half=True)
    if measures.backlog:
        sizes = [(each.namespace, each.backlog_bytes) for each in measures.backlog]
        bars = [Bar(namespace, size, bytes_in_words(size, rounded=True)) for namespace, size in sizes]
        yield bar_chart("chart-backlog", "Backlog by namespace", bars, ("namespace", "backlog"))
    yield backlog_chart(measures.limited) if measures.limited else NO_BACKLOG
    yield ack_holes_chart(measures.ack_holes) if measures.ack_holes else NO_ACK_HOLES
    yield delayed_chart(measures.delayed) if measures.delayed else NO_DELAYED
    yield from trend_charts(measures.trends) if measures.trends else [_said("chart-trends", "Trends", NO_TRENDS)]


def _counted(name: str, number: int | None) -> Bar:
    return Bar(name, number, "not known" if number is None else f"{number:,}")


_UNSAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""Characters that could end a script or begin a comment, and their escapes in JSON strings."""


class Script(msgspec.Struct, frozen=True):
    """A script of the page, with its source for the content security policy."""

    text: Markup
    source: str


def scripts() -> tuple[Script, ...]:
    """Plotly's script, and the script that draws the figures with it."""
    own = files("pulsar_steward.report.checkup").joinpath("templates/charts.js").read_text(encoding="utf-8")
    return _script(library()), _script(own)


def figures_json(charts: Sequence[Chart]) -> Markup:
    """The figures by id, as JSON that cannot end its HTML element, whatever names it contains."""
    each = {chart.chart_id: msgspec.Raw(as_json(chart.figure).encode()) for chart in charts if chart.figure}
    return Markup(msgspec.json.encode(each).decode().translate(_UNSAFE))  # noqa: S704 - translated just here


def _script(text: str) -> Script:
    """A script with its hash: a browser runs only scripts whose hash the content security policy lists."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Script(Markup(text), f"'sha256-{digest}'")  # noqa: S704 - plotly's and our own, nothing from a cluster
