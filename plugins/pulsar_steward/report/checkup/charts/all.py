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
    Figure,
    as_json,
    drawn,
    hover,
    hover_template,
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


NO_TRENDS = (
    "Trends need a second snapshot, and this check-up found none before it. `steward checkup --keep DIR` keeps its"
    " snapshot in a folder and compares it with those that are there; so does Airflow's scheduled pulsar_observe."
)


def charts_of(checkup: Checkup) -> tuple[Chart, ...]:
    """The charts; a chart without data has a sentence with the reason."""
    return tuple(_paired(_in_order(checkup)))


def _paired(charts: Sequence[Chart]) -> Iterator[Chart]:
    """Charts of half a width in pairs; one without a neighbour gets the full width."""
    for half, run in groupby(charts, key=lambda chart: chart.half):
        *before, last = run
        yield from before
        yield msgspec.structs.replace(last, half=half and bool(len(before) % 2))


def _in_order(checkup: Checkup) -> tuple[Chart, ...]:
    measures = checkup.measures
    return (
        *_of_brokers(checkup),
        *_of_bundles(measures),
        *_of_backlog(measures),
        ack_holes_chart(measures.ack_holes)
        if measures.ack_holes
        else _said("chart-ack-holes", "Ack holes by subscription", "No subscription that was read has any."),
        delayed_chart(measures.delayed)
        if measures.delayed
        else _said(
            "chart-delayed",
            "Delayed messages and their index",
            "None were seen on the topics whose own statistics were read.",
        ),
        *(trend_charts(measures.trends) if measures.trends else (_said("chart-trends", "Trends", NO_TRENDS),)),
    )


def _of_brokers(checkup: Checkup) -> Iterator[Chart]:
    brokers = checkup.measures.brokers
    if checkup.about.coordinators:
        held = [_counted(each.broker, each.coordinators) for each in brokers]
        title = "Transaction coordinators by broker"
        yield bar_chart("chart-coordinators", title, held, ("broker", "transaction coordinators"), half=True)
    topics = [_counted(each.broker, each.topics) for each in brokers]
    yield bar_chart("chart-topics", "Loaded topics by broker", topics, ("broker", "topics"), half=True)


def _of_bundles(measures: Measures) -> Iterator[Chart]:
    for number, crowded in enumerate(measures.crowded, start=1):
        fewer = counted(crowded.not_listed, "further bundle has fewer", "further bundles have fewer each")
        more = f"{fewer}." if crowded.not_listed else ""
        bars = [_counted(each.bundle, each.topics) for each in crowded.bundles]
        title = f"Topics by bundle of {crowded.namespace}"
        yield bar_chart(f"chart-bundles-{number}", title, bars, ("bundle", "topics"), note=more, half=True)


def _of_backlog(measures: Measures) -> Iterator[Chart]:
    if measures.backlog:
        bars = [
            Bar(each.namespace, each.backlog_bytes, bytes_in_words(each.backlog_bytes, rounded=True))
            for each in measures.backlog
        ]
        yield bar_chart("chart-backlog", "Backlog by namespace", bars, ("namespace", "backlog"))
    if measures.limited:
        yield backlog_chart(measures.limited)
    else:
        yield _said("chart-limits", "Backlog against quota and retention", "No topic that was read has a backlog.")


def _counted(name: str, number: int | None) -> Bar:
    return Bar(name, number, "not known" if number is None else f"{number:,}")


def _said(chart_id: str, title: str, words: str) -> Chart:
    return Chart(chart_id=chart_id, title=title, note=words, figure=None)


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
