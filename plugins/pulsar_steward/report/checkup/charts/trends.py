"""Charts of figures over time: one per measure, with a line per subject."""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

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
from pulsar_steward.model.units import KIB, bytes_in_words, number_in_words
from pulsar_steward.report.checkup.charts.chart import (
    AROUND,
    BLUE,
    GREEN,
    LINES,
    ROW,
    Chart,
    bars,
    drawn,
    hover,
    label,
    named_rows,
    points,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from pulsar_steward.report.checkup.measures import DelayedSubscription, Trend

_HEIGHT = 220
_LEGEND_ROW = 20
_TICKS = 5

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
        yield _chart(measure, list(each))


def _chart(measure: str, trends: list[Trend]) -> Chart:
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


_ROOM = 1.32
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
        bars(sizes, GREEN, xaxis="x", text=[row[1] for row in rows], **told),
        bars(messages, BLUE, xaxis="x2", text=[row[2] for row in rows], **told),
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
        "range": [0, max(values, default=0) * _ROOM or 1],
        "showticklabels": False,
        "showgrid": False,
        "automargin": True,
        "fixedrange": True,
        "zeroline": False,
    }
