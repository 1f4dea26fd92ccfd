"""Chart of delayed messages by subscription: their number, and the size of their index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.model.units import bytes_in_words
from pulsar_steward.report.checkup.charts.chart import (
    AROUND,
    BLUE,
    GREEN,
    ROW,
    Chart,
    hover,
    hover_template,
    named_rows,
)
from pulsar_steward.report.checkup.charts.drawing import Trace, bars, drawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.report.checkup.measures import DelayedSubscription

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
        _bars(sizes, [row[1] for row in rows], told, GREEN, "x"),
        _bars(messages, [row[2] for row in rows], told, BLUE, "x2"),
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


def _bars(values: list[int], words: list[str], told: list[list[str]], color: str, axis: str) -> Trace:
    return bars(
        x=values,
        y=list(range(len(values))),
        xaxis=axis,
        marker={"color": color},
        text=words,
        customdata=told,
        hovertemplate=hover_template(0, 1),
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
