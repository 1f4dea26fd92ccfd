"""The report as a page."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from pulsar_steward.report.checkup.charts import MOST_BARS, Bar, bar_chart
from pulsar_steward.report.checkup.html import as_html, in_bytes
from tests.unit.report_checkup.snapshots import NASTY, a_finding, a_verdict, meta, skewed

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.report.checkup.document import Checkup

    Make = Callable[..., Checkup]

VOID = {"meta", "br", "rect"}


class Page(HTMLParser):
    """Collects a page's tags and text, and that every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.said = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag opens."""
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """A tag closes: the one that opened last."""
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Text."""
        self.said += data


def test_the_page_says_what_the_terminal_says(checkup_with: Make) -> None:
    """Result, finding, advice, remedy, source, what is clear, what would be proposed."""
    said = " ".join(Page(as_html(checkup_with(**skewed()))).said.split())

    for words in (
        "Check-up of east",
        "1 finding to look at",
        "broker-00:8080 has 16 of 16 transaction coordinators",
        "Move bundles of pulsar/system",
        "Steward can propose a remedy (tc_balance)",
        "Source: docs/knowledge.md A",
        "Clear (1)",
        "Could not be judged",
        "Even out 16 transaction coordinators",
        "Transaction coordinators by broker",
        "Loaded topics by broker",
        f"Topics by bundle of {NASTY}",
        "Backlog by namespace",
        "3.0 GiB",
    ):
        assert words in said


def test_the_page_needs_nothing_else(checkup_with: Make) -> None:
    """No script, no link, no image, no address; and the browser is told to load none."""
    text = as_html(checkup_with(**skewed()))
    page = Page(text)

    assert {"script", "link", "img", "iframe"} & set(page.tags) == set()
    assert {"src", "href"} & {name for name, _ in page.attributes} == set()
    assert re.search(r"https?:|url\(|@import", text) is None
    assert "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text


def test_names_are_words_and_never_tags(checkup_with: Make) -> None:
    """A namespace called like a script, an evidence with tags: all escaped, in charts as well."""
    finding = a_finding(evidence="<b>x</b>", subject='"><img src=x>')

    text = as_html(checkup_with(findings=[finding], verdicts=[a_verdict("tc-skew", "found")]))

    assert "<script" not in text
    assert "<b>" not in text
    assert "<img" not in text
    assert "&lt;b&gt;x&lt;/b&gt;" in text


def test_a_partial_snapshot_is_marked_on_the_page(checkup_with: Make) -> None:
    """With everything that could not be read."""
    text = as_html(checkup_with(snapshot=meta(unread_brokers=["broker-02:8080"])))

    assert 'id="partial"' in text
    assert "<code>broker-02:8080</code>" in text


def test_no_transactions_no_chart_of_coordinators(checkup_with: Make) -> None:
    """A chart of noughts says nothing."""
    text = as_html(checkup_with(snapshot=meta(coordinators=0), transaction_coordinators=[], bundles=[]))

    assert "Transaction coordinators by broker" not in text
    assert "Backlog by namespace" not in text


def drawn(*bars: Bar) -> ET.Element:
    """The drawing of a chart, parsed."""
    return ET.fromstring(str(bar_chart("T", bars)).partition("<p")[0])  # noqa: S314 - made by the line before


def test_bars_are_as_long_as_their_figures() -> None:
    """From 0; nothing is drawn where the figure is not known, and a line at least where it is not 0."""
    root = drawn(Bar("a", 1000, "1,000"), Bar("b", 500, "500"), Bar("c", 0, "0"), Bar("d", None, "?"), Bar("e", 1, "1"))
    rows = root.findall("g")
    widths = [rect.get("width") if (rect := row.find("rect")) is not None else None for row in rows]

    assert widths == ["360.0", "180.0", "0.0", None, "1.0"]
    assert [row.findall("text")[1].text for row in rows] == ["1,000", "500", "0", "?", "1"]
    assert root.findtext("title") == "T"


def test_a_long_name_keeps_its_end_and_is_whole_in_the_tip() -> None:
    """Hosts and bundles differ at their ends."""
    name = "broker-7.a-very-long-domain.of-an-even-longer-company.example:8080"
    (row,) = drawn(Bar(name, 1, "1")).findall("g")

    shown = row.findall("text")[0].text or ""
    assert shown.startswith("…")
    assert name.endswith(shown[1:])
    assert row.findtext("title") == f"{name}: 1"


def test_a_chart_of_too_many_bars_is_cut_and_says_so() -> None:
    """A page of a thousand brokers stays a page."""
    chart = str(bar_chart("T", [Bar(str(number), number, str(number)) for number in range(MOST_BARS + 7)]))

    assert chart.count("<rect") == MOST_BARS
    assert "and 7 more" in chart


def test_no_bars_no_chart() -> None:
    """Nothing is drawn of nothing; noughts alone are drawn without length."""
    assert str(bar_chart("T", [])) == ""
    assert [rect.get("width") for rect in drawn(Bar("a", 0, "0")).iter("rect")] == ["0.0"]


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0 B"), (1023, "1,023 B"), (1024, "1.0 KiB"), (1536 * 1024**2, "1.5 GiB"), (2 * 1024**6, "2,097,152.0 TiB")],
)
def test_bytes_in_a_unit_that_fits(number: int, words: str) -> None:
    """Powers of 1024."""
    assert in_bytes(number) == words
