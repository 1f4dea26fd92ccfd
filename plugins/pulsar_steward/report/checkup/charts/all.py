"""All charts of a check-up, in the order of the page."""

from __future__ import annotations

import base64
import hashlib
from functools import partial
from importlib.resources import files
from itertools import groupby
from math import ceil, floor, log2, log10
from typing import TYPE_CHECKING, Any

import msgspec
from markupsafe import Markup
from plotly import io, offline  # type: ignore[import-untyped]  # it has none

from pulsar_steward.model.measures import (
    BROKER_CONNECTION_RATE,
    BROKER_CONNECTIONS,
    BROKER_COORDINATORS,
    BROKER_TOPICS,
    CLUSTER_BACKLOG,
    CLUSTER_CONSUMERS,
    CLUSTER_PRODUCERS,
    CLUSTER_SUBSCRIPTIONS,
    CLUSTER_TOPICS,
    IN_BYTES,
    TOPIC_BACKLOG,
)
from pulsar_steward.model.units import KIB, bytes_in_words, counted, number_in_words
from pulsar_steward.report.checkup.charts.chart import (
    AMBER,
    AROUND,
    BLUE,
    GREEN,
    LINES,
    RED,
    ROW,
    VIOLET,
    Chart,
    Figure,
    drawn,
    hover,
    label,
    named_rows,
    points,
)
from pulsar_steward.report.checkup.charts.chart import bars as draw_bars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from pulsar_steward.report.checkup.document import Checkup
    from pulsar_steward.report.checkup.measures import (
        DelayedSubscription,
        HoledSubscription,
        LimitedBacklog,
        Measures,
        Trend,
    )

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
    """A chart of horizontal bars, in the order given; the first `MAX_BARS` of them are drawn."""
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


_LEGEND = 34
"""Height of the legend above the drawing, in pixels."""

_TICKS = 5
"""Approximate number of ticks on an axis."""


class Limit(msgspec.Struct, frozen=True):
    """Line across each bar: its name, colour and position; None: no line. Bars that exceed the first limit are red."""

    name: str
    color: str
    places: tuple[int | None, ...]


def backlog_chart(backlogs: Sequence[LimitedBacklog]) -> Chart:
    """Bars of backlogs on a logarithmic scale, with lines for quota and retention."""
    rows = tuple(
        (
            each.topic,
            bytes_in_words(each.backlog_bytes, rounded=True),
            _limit_words(each.quota_bytes, each.quota_by, "none"),
            f"{each.backlog_bytes * 100 // each.quota_bytes:,} %" if each.quota_bytes else "",
            _limit_words(each.retention_bytes, each.retention_by, "without limit"),
        )
        for each in backlogs
    )
    limits = (
        Limit("size quota", AMBER, tuple(each.quota_bytes for each in backlogs)),
        Limit("retention by size", VIOLET, tuple(each.retention_bytes for each in backlogs)),
    )
    names, sizes = [row[0] for row in rows], [each.backlog_bytes for each in backlogs]
    told = hover(
        names,
        [f"backlog {row[1]}" for row in rows],
        [f"size quota {row[2]}{f', {row[3]} of it' if row[3] else ''}" for row in rows],
        [f"retention {row[4]}" for row in rows],
    )
    figure = _figure(names, sizes, "backlog", limits, told)
    # A logarithmic axis whose ticks are powers of two; 0 is off its left end.
    places = [place for place in (*sizes, *(each for limit in limits for each in limit.places)) if place]
    least, most = floor(log2(min(places))) - 1, ceil(log2(max(places))) + 1
    step = max(1, ceil((most - least) / _TICKS))
    ticks = [1 << exponent for exponent in range(max(least, 0), most + 1) if exponent % step == 0]
    scale = [log10(2) * least, log10(2) * most]
    figure.update_xaxes(type="log", range=scale, tickvals=ticks, ticktext=[bytes_in_words(tick) for tick in ticks])
    return Chart(
        chart_id="chart-limits",
        title="Backlog against quota and retention",
        note=(
            "Topics that fill most of their size quota, then the largest others. Red: over the quota, the amber"
            " line. Violet: how much of consumed messages is retained. The scale is logarithmic."
        ),
        figure=figure,
        head=("topic", "backlog", "size quota", "of the quota", "retention by size"),
        rows=rows,
    )


def ack_holes_chart(subscriptions: Sequence[HoledSubscription]) -> Chart:
    """Bars of ack holes, with a line at the number from which the broker persists no more."""
    rows = tuple(
        (
            f"{each.topic} {each.subscription}",
            f"{each.ack_holes:,}",
            "not read" if each.persisted_at_most is None else f"{each.persisted_at_most:,}",
        )
        for each in subscriptions
    )
    names, holes = [row[0] for row in rows], [each.ack_holes for each in subscriptions]
    limits = (Limit("persisted at most", AMBER, tuple(each.persisted_at_most for each in subscriptions)),)
    told = hover(names, [f"ack holes: {row[1]} of {row[2]}" for row in rows])
    figure = _figure(names, holes, "ack holes", limits, told)
    figure.update_xaxes(rangemode="tozero", tickformat=",d")
    return Chart(
        chart_id="chart-ack-holes",
        title="Ack holes by subscription",
        note=(
            "Ranges of acknowledged messages beyond the first that is not. Red: more than the broker persists"
            " (managedLedgerMaxUnackedRangesToPersist, the amber line); the rest is forgotten when the topic is loaded"
            " anew, and delivered again."
        ),
        figure=figure,
        head=("topic and subscription", "ack holes", "persisted at most"),
        rows=rows,
    )


def _limit_words(size: int | None, by: str | None, none: str) -> str:
    if by is None:
        return "not known"
    words = none if size is None else bytes_in_words(size, rounded=True)
    return f"{words} ({by})"


def _figure(
    names: Sequence[str], values: Sequence[int], what: str, limits: Sequence[Limit], told: dict[str, Any]
) -> Figure:
    rows = list(range(len(names)))
    over = [limit is not None and value > limit for value, limit in zip(values, limits[0].places, strict=True)]
    backlogs = draw_bars(values, [RED if each else BLUE for each in over], name=what, showlegend=False, **told)
    lines = [
        points(
            x=limit.places,
            y=rows,
            mode="markers",
            name=limit.name,
            marker={"symbol": "line-ns", "size": ROW - 8, "line": {"width": 3, "color": limit.color}},
            hoverinfo="skip",
        )
        for limit in limits
        if any(limit.places)
    ]
    return drawn(
        backlogs, *lines, height=ROW * len(rows) + AROUND + _LEGEND, yaxis=named_rows(names), showlegend=bool(lines)
    )


_HEIGHT = 220
_LEGEND_ROW = 20

TITLES = {
    CLUSTER_BACKLOG: "Backlog of the cluster",
    CLUSTER_TOPICS: "Loaded topics",
    CLUSTER_SUBSCRIPTIONS: "Subscriptions",
    CLUSTER_PRODUCERS: "Producers",
    CLUSTER_CONSUMERS: "Consumers",
    BROKER_TOPICS: "Topics by broker",
    BROKER_COORDINATORS: "Transaction coordinators by broker",
    BROKER_CONNECTIONS: "Connections accepted by broker since its start",
    BROKER_CONNECTION_RATE: "Connections accepted a second, by broker",
    TOPIC_BACKLOG: "Backlogs that grow fastest",
}


def trend_charts(trends: Sequence[Trend]) -> Iterator[Chart]:
    """Charts in the order given; trends of one measure have to be adjacent."""
    for measure, each in groupby(trends, key=lambda trend: trend.measure):
        yield _trend_chart(measure, list(each))


def _trend_chart(measure: str, trends: list[Trend]) -> Chart:
    of_bytes, meaning = measure in IN_BYTES, trends[0].meaning
    words: Callable[[float], str] = partial(bytes_in_words, rounded=True) if of_bytes else number_in_words
    lines = [
        points(
            x=[point.taken_at for point in trend.points],
            y=[point.value for point in trend.points],
            mode="lines+markers",
            name=label(trend.subject),
            line={"color": LINES[number % len(LINES)], "width": 2},
            marker={"size": 5},
            **hover(
                [trend.subject] * len(trend.points),
                [f"{words(point.value)} at {_moment(point.taken_at)}" for point in trend.points],
            ),
        )
        for number, trend in enumerate(trends)
    ]
    several = len(trends) > 1
    height = _HEIGHT + (_LEGEND_ROW * len(trends) if several else 0)
    legend = {"orientation": "v", "y": -0.3, "yanchor": "top", "x": 0, "xanchor": "left"}
    figure = drawn(*lines, height=height, showlegend=several, legend=legend)
    figure.update_yaxes(rangemode="tozero", ticklabelstandoff=8, **_ticks(trends, of_bytes=of_bytes))
    figure.update_xaxes(ticklabelstandoff=6)
    by_time = [{point.taken_at: point.value for point in trend.points} for trend in trends]
    return Chart(
        chart_id=f"chart-trend-{measure.replace('_', '-')}",
        title=TITLES.get(measure, measure),
        note=f"{meaning[:1].upper()}{meaning[1:]}.",
        figure=figure,
        head=("taken at, UTC", *(trend.subject for trend in trends)),
        rows=tuple(
            (_moment(moment), *(words(values[moment]) if moment in values else "" for values in by_time))
            for moment in sorted({moment for values in by_time for moment in values})
        ),
        half=True,
    )


def _ticks(trends: Sequence[Trend], *, of_bytes: bool) -> dict[str, list[object]]:
    """Round numbers; bytes in powers of 1024, as everywhere else."""
    most = max(point.value for trend in trends for point in trend.points)
    unit = KIB ** max(0, (int(most).bit_length() - 1) // 10) if of_bytes else 1
    # Rounded up to 1, 2, 5 or one of these times a power of ten.
    least = most / unit / _TICKS
    size = 10.0 ** len(str(int(least))) / 10 if least >= 1 else 0.01
    rounds = (size * each for each in (1, 2, 5, 10, 20, 50, 100) if size * each >= least)
    step = (next(rounds, least) if least > 0 else 1) * unit
    values = [step * number for number in range(_TICKS + 1) if step * number <= most * 1.2]
    return {
        "tickvals": list(values),
        "ticktext": [(bytes_in_words if of_bytes else number_in_words)(value) for value in values],
    }


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"


_ROOM_ABOVE = 1.32
_TITLES = 22


def delayed_chart(subscriptions: Sequence[DelayedSubscription]) -> Chart:
    """Two bars per subscription, side by side, as messages and bytes have no common scale."""
    rows = tuple(
        (
            f"{each.topic} {each.subscription}",
            "not told" if each.index_bytes is None else bytes_in_words(each.index_bytes, rounded=True),
            "not told" if each.delayed_messages is None else f"{each.delayed_messages:,}",
            "" if each.buckets is None else f"{each.buckets:,}",
        )
        for each in subscriptions
    )
    names = [row[0] for row in rows]
    told = hover(names, [f"{row[1]} of index, delayed messages: {row[2]}" for row in rows])
    sizes = [each.index_bytes or 0 for each in subscriptions]
    messages = [each.delayed_messages or 0 for each in subscriptions]
    figure = drawn(
        draw_bars(sizes, GREEN, xaxis="x", text=[row[1] for row in rows], **told),
        draw_bars(messages, BLUE, xaxis="x2", text=[row[2] for row in rows], **told),
        height=ROW * len(rows) + AROUND + _TITLES,
        barmode="overlay",
        xaxis=_axis("size of the index", sizes, 0.0, 0.49),
        xaxis2=_axis("delayed messages", messages, 0.51, 1.0),
        yaxis=named_rows(names),
    )
    return Chart(
        chart_id="chart-delayed",
        title="Delayed messages and their index",
        note="Of the topics whose own statistics were read; the index is memory of the broker that holds the topic.",
        figure=figure,
        head=("topic and subscription", "size of the index", "delayed messages", "buckets"),
        rows=rows,
    )


def _axis(title: str, values: list[int], start: float, end: float) -> dict[str, object]:
    return {
        "title": {"text": title, "font": {"size": 12}},
        "side": "top",
        "domain": [start, end],
        "range": [0, max(values, default=0) * _ROOM_ABOVE or 1],
        "showticklabels": False,
        "showgrid": False,
        "automargin": True,
        "fixedrange": True,
        "zeroline": False,
    }


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
    return _script(offline.get_plotlyjs()), _script(own)


def figures_json(charts: Sequence[Chart]) -> Markup:
    """The figures by id, as JSON that cannot end its HTML element, whatever names it contains."""
    each = {chart.chart_id: msgspec.Raw(io.to_json(chart.figure).encode()) for chart in charts if chart.figure}
    return Markup(msgspec.json.encode(each).decode().translate(_UNSAFE))  # noqa: S704 - translated just here


def _script(text: str) -> Script:
    """A script with its hash: a browser runs only scripts whose hash the content security policy lists."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Script(Markup(text), f"'sha256-{digest}'")  # noqa: S704 - plotly's and our own, nothing from a cluster
