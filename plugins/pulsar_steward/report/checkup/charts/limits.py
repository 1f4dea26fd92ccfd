"""Charts of figures against their limits: backlogs and quota or retention, ack holes and the broker's limit."""

from __future__ import annotations

from math import ceil, floor, log2, log10
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.model.units import bytes_in_words
from pulsar_steward.report.checkup.charts.chart import (
    AMBER,
    AROUND,
    BLUE,
    RED,
    ROW,
    VIOLET,
    Chart,
    Figure,
    bars,
    drawn,
    hover,
    named_rows,
    points,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.report.checkup.measures import HoledSubscription, LimitedBacklog

_LEGEND = 34
"""Height of the legend above the drawing, in pixels."""

_TICKS = 5
"""Approximate number of ticks on an axis of bytes."""


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
    backlogs = bars(values, [RED if each else BLUE for each in over], name=what, showlegend=False, **told)
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
