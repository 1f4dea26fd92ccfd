"""The charts of the page: what they draw, and that their tables say the same."""

from __future__ import annotations

import html
import json
from datetime import UTC, datetime, timedelta
from math import log10
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.model.units import bytes_in_words
from pulsar_steward.report.checkup.charts.all import (
    MAX_BARS,
    NO_TRENDS,
    Bar,
    ack_holes_chart,
    backlog_chart,
    bar_chart,
    charts_of,
    delayed_chart,
    figures_json,
    scripts,
    trend_charts,
)
from pulsar_steward.report.checkup.charts.chart import BLUE, RED, Chart, escaped, label
from pulsar_steward.report.checkup.measures import (
    DelayedSubscription,
    HoledSubscription,
    LimitedBacklog,
    Trend,
    TrendPoint,
)
from tests.cases import row_by_row
from tests.unit.report_checkup.snapshots import meta, skewed

if TYPE_CHECKING:
    from tests.golden import Golden
    from tests.unit.report_checkup.conftest import Make


MIB = 1024**2
LINK = '<a href="//evil.example">x</a></script><!--'
HEAD = ("broker", "topics")


def drawn(chart: Chart) -> dict[str, Any]:
    """The figure as the page holds it."""
    figures: dict[str, Any] = json.loads(figures_json([chart]))
    return dict(figures[chart.chart_id])


def bars(*values: float | None) -> Chart:
    """A chart of these lengths."""
    return bar_chart("chart-x", "T", [Bar(f"n{number}", each, str(each)) for number, each in enumerate(values)], HEAD)


def test_bars_are_as_long_as_their_figures() -> None:
    """The length of a bar is its figure; an unknown figure has the length 0 and the label `not known`."""
    chart = bar_chart("chart-x", "T", [Bar("a", 1000, "1,000"), Bar("b", None, "not known"), Bar("c", 0, "0")], HEAD)
    (trace,) = drawn(chart)["data"]

    assert (trace["type"], trace["orientation"]) == ("bar", "h")
    assert trace["x"] == [1000, 0, 0]
    assert trace["text"] == ["1,000", "not known", "0"]
    assert trace["customdata"] == [["a", "1,000"], ["b", "not known"], ["c", "0"]]
    assert (chart.head, chart.rows) == (HEAD, (("a", "1,000"), ("b", "not known"), ("c", "0")))


def test_a_chart_of_too_many_bars_is_cut_and_says_so(golden: Golden) -> None:
    chart = bars(*range(MAX_BARS + 7))

    assert len(drawn(chart)["data"][0]["x"]) == MAX_BARS
    assert len(chart.rows) == MAX_BARS + 7
    golden(chart.note)


def test_noughts_alone_can_be_drawn() -> None:
    """The axis of a chart whose figures are all zero runs from 0 to 1."""
    assert drawn(bars(0, 0))["layout"]["xaxis"]["range"] == [0, 1]


def test_a_chart_is_as_high_as_its_bars_are_many() -> None:
    assert drawn(bars(*range(20)))["layout"]["height"] - drawn(bars(*range(10)))["layout"]["height"] == 260


@row_by_row(
    "name, shown",
    ("broker-00:8080", "broker-00:8080"),
    ("persistent://acme/orders/placed", "acme/orders/placed"),
    ("a-very-long-domain.of-an-even-longer-company.example:8080", "…domain.of-an-even-longer-company.example:8080"),
    ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
    ("a\u202eb\x07", "a\\u202eb\\x07"),
)
def test_names_beside_bars(name: str, shown: str) -> None:
    """Labels are shortened at their front, omit the scheme `persistent`, and have tags and control signs escaped."""
    assert label(name, 46) == shown


def test_a_name_is_whole_at_the_pointer() -> None:
    """The hover text of a bar holds the whole name, while its axis label is shortened to under 50 characters."""
    name = "persistent://acme/orders/" + "x" * 100
    figure = drawn(bar_chart("chart-x", "T", [Bar(name, 1, "1")], HEAD))

    assert figure["data"][0]["customdata"][0][0] == name
    assert len(figure["layout"]["yaxis"]["ticktext"][0]) < 50


def test_no_name_ends_the_script_that_it_stands_in() -> None:
    """The JSON of the figures contains no character that is special in HTML, and decodes to the same names."""
    text = str(figures_json([bar_chart("chart-x", LINK, [Bar(LINK, 1, f"{LINK}\u2028")], HEAD)]))

    assert not set("<>&\u2028") & set(text)
    assert json.loads(text)["chart-x"]["data"][0]["customdata"] == [[escaped(LINK), escaped(f"{LINK}\u2028")]]


def test_the_scripts_can_stand_in_a_page() -> None:
    """The page's scripts contain no script tags and no carriage returns, and are named by their SHA-256 digests."""
    for script in scripts():
        assert "</script" not in script.text.lower()
        assert "<script" not in script.text.lower()
        assert "\r" not in script.text
        assert script.source.startswith("'sha256-")


def limited(quota: int | None, retention: int | None, backlog: int = 8 * MIB, **by: Any) -> LimitedBacklog:
    """A backlog with its limits."""
    usual: dict[str, Any] = {"quota_by": "namespace", "retention_by": "default"}
    return LimitedBacklog(
        topic=f"persistent://acme/orders/{quota}-{retention}",
        namespace="acme/orders",
        backlog_bytes=backlog,
        quota_bytes=quota,
        retention_bytes=retention,
        **usual | by,
    )


def test_backlogs_with_a_line_at_quota_and_retention() -> None:
    """A backlog over its quota is red, a missing limit has no line, and the table tells who set each limit."""
    chart = backlog_chart(
        [limited(16 * MIB, None), limited(4 * MIB, 0), limited(None, None, quota_by=None, retention_by=None)]
    )
    backlog, quota = drawn(chart)["data"]

    assert backlog["marker"]["color"] == [BLUE, RED, BLUE]
    assert (quota["name"], quota["x"]) == ("size quota", [16 * MIB, 4 * MIB, None])
    assert [row[1:] for row in chart.rows] == [
        ("8.0 MiB", "16.0 MiB (namespace)", "50 %", "without limit (default)"),
        ("8.0 MiB", "4.0 MiB (namespace)", "200 %", "0 B (default)"),
        ("8.0 MiB", "not known", "", "not known"),
    ]
    assert backlog["customdata"][1][1:] == [
        "backlog 8.0 MiB",
        "size quota 4.0 MiB (namespace), 200 % of it",
        "retention 0 B (default)",
    ]


@pytest.mark.parametrize(("least", "most"), [(1, 1), (1, 2**50), (5000, 6000), (2**30, 2**31)])
def test_the_scale_of_bytes_has_ticks(least: int, most: int) -> None:
    """The axis of bytes has two to seven ticks within its range, at round figures."""
    layout = drawn(backlog_chart([limited(None, None, least), limited(None, None, most)]))["layout"]["xaxis"]
    start, end = layout["range"]

    assert layout["type"] == "log"
    assert 2 <= len(layout["tickvals"]) <= 7
    assert all(start <= log10(tick) <= end for tick in layout["tickvals"])
    assert not [words for words in layout["ticktext"] if "." in words]


def test_ack_holes_with_the_line_that_their_broker_draws() -> None:
    holes = [
        HoledSubscription(topic=f"t{most}", subscription="s", ack_holes=500, persisted_at_most=most)
        for most in (400, 500, None)
    ]
    chart = ack_holes_chart(holes)
    counted, line = drawn(chart)["data"]

    assert counted["marker"]["color"] == [RED, BLUE, BLUE]
    assert line["x"] == [400, 500, None]
    assert chart.rows[2] == ("tNone s", "500", "not read")
    assert len(drawn(ack_holes_chart(holes[2:]))["data"]) == 1


def test_delayed_messages_beside_the_size_of_their_index() -> None:
    chart = delayed_chart(
        [
            DelayedSubscription(topic="t", subscription="s", delayed_messages=9, index_bytes=2048, buckets=3),
            DelayedSubscription(topic="u", subscription="s", delayed_messages=None, index_bytes=None, buckets=None),
        ]
    )
    sizes, messages = drawn(chart)["data"]

    assert (sizes["x"], messages["x"]) == ([2048, 0], [9, 0])
    assert (sizes["xaxis"], messages["xaxis"]) == ("x", "x2")
    assert chart.rows == (("t s", "2.0 KiB", "9", "3"), ("u s", "not told", "not told", ""))


def trend(measure: str, subject: str, *values: float) -> Trend:
    """A figure a minute."""
    start = datetime(2026, 3, 1, 12, tzinfo=UTC)
    points = tuple(
        TrendPoint(taken_at=start + timedelta(minutes=number), value=value) for number, value in enumerate(values)
    )
    return Trend(measure=measure, meaning="what it is", subject=subject, points=points)


def test_a_trend_is_a_line_a_subject() -> None:
    """Each measure has a chart with a line for each subject, and a table with a row for each time, with gaps."""
    topics, backlog = trend_charts(
        [
            trend("broker_topics", "a", 1, 2, 3),
            trend("broker_topics", "b", 5, 6),
            trend("backlog_bytes", "east", 0, MIB),
        ]
    )

    assert [line["y"] for line in drawn(topics)["data"]] == [[1, 2, 3], [5, 6]]
    assert drawn(topics)["layout"]["showlegend"]
    assert topics.head == ("taken at, UTC", "a", "b")
    assert topics.rows[2] == ("2026-03-01 12:02:00", "3", "")
    assert backlog.rows[1] == ("2026-03-01 12:01:00", "1.0 MiB")
    assert not drawn(backlog)["layout"]["showlegend"]


@row_by_row(
    "measure, most, expected",
    ("topics", 0, ["0"]),
    ("topics", 9, ["0", "2", "4", "6", "8", "10"]),
    ("topics", 0.031, ["0", "0.01", "0.02", "0.03"]),
    ("topics", 1_234_567, ["0", "500,000", "1,000,000"]),
    ("backlog_bytes", 700, ["0 B", "200 B", "400 B", "600 B", "800 B"]),
    ("backlog_bytes", 9 * 1024**3, ["0 B", "2 GiB", "4 GiB", "6 GiB", "8 GiB", "10 GiB"]),
)
def test_the_scale_of_a_trend(measure: str, most: float, expected: list[str]) -> None:
    """The axis of a trend has round figures from 0, for bytes in powers of 1024."""
    (chart,) = trend_charts([trend(measure, "east", 0, most)])

    assert drawn(chart)["layout"]["yaxis"]["ticktext"] == expected


def test_nothing_to_draw_is_said_in_words(checkup_with: Make) -> None:
    """Each chart without data has a note in place of a figure, and the note on trends says what they need."""
    charts = {chart.chart_id: chart for chart in charts_of(checkup_with())}

    assert charts["chart-trends"].note == NO_TRENDS
    assert [each for each, chart in charts.items() if chart.figure is None] == [
        "chart-limits",
        "chart-ack-holes",
        "chart-delayed",
        "chart-trends",
    ]
    assert all(chart.note for chart in charts.values() if chart.figure is None)


def in_words(chart: Chart, value: int) -> str:
    """A figure of a chart, as its table has it."""
    return bytes_in_words(value, rounded=True) if chart.chart_id == "chart-backlog" else f"{value:,}"


def test_every_chart_has_a_table_of_what_it_draws(checkup_with: Make) -> None:
    """Each chart with a figure has a table whose rows are the names and the figures that it draws."""
    charts = [chart for chart in charts_of(checkup_with(**skewed())) if chart.figure is not None]

    assert len(charts) == 5
    for chart in charts:
        (trace,) = drawn(chart)["data"]
        assert trace["x"]
        assert [name for name, _ in chart.rows] == [html.unescape(name) for name, _ in trace["customdata"]]
        assert [figure for _, figure in chart.rows] == [in_words(chart, value) for value in trace["x"]]
        assert len(chart.head) == 2


def test_no_transactions_no_chart_of_coordinators(checkup_with: Make) -> None:
    checkup = checkup_with(snapshot=meta(coordinators=0), transaction_coordinators=[], bundles=[])

    assert [chart.chart_id for chart in charts_of(checkup) if chart.figure] == ["chart-topics"]
