"""The report as a page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.report.checkup.html import MAX_OPEN, as_html, coded
from pulsar_steward.report.checkup.terminal import lines
from tests.cases import row_by_row
from tests.unit.report_checkup.examples import EXAMPLES
from tests.unit.report_checkup.snapshots import NASTY, a_finding, a_verdict, skewed

if TYPE_CHECKING:
    from tests.golden import Golden
    from tests.unit.report_checkup.conftest import Make


VOID = {"meta", "br"}
SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
SUBJECT = re.compile(r'<span class="subject">(.*?)</span>')
BETWEEN_WORDS = re.compile(r"\n\s*(?:- |\d+\. )?|[,;()\[\]] ?|: | {2,}")
"""What stands between the words of a report in a terminal: punctuation, marks of lists and ends of lines."""


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


def squeezed(words: str) -> str:
    """Words without their spaces, which are elsewhere on the page, and in small letters."""
    return "".join(words.split()).casefold()


def test_the_page_says_what_the_terminal_says(checkup_with: Make) -> None:
    """The page says everything that the verbose report in a terminal says, except for three phrasings and a heading."""
    checkup = checkup_with(**skewed())
    told = "\n".join(line.plain for line in lines(checkup, 100, verbose=True))
    said = squeezed(Page(as_html(checkup)).said)

    assert {words for words in BETWEEN_WORDS.split(told) if squeezed(words) not in said} == {
        "2 namespaces in 10 bundles",
        "66 unknown",
        "What was found",
        "`steward plan` shows every step.",
    }


def test_the_page_has_charts_that_the_terminal_lacks(checkup_with: Make) -> None:
    said = " ".join(Page(as_html(checkup_with(**skewed()))).said.split())

    for words in (
        "Transaction coordinators by broker",
        "Loaded topics by broker",
        f"Topics by bundle of {NASTY}",
        "Backlog by namespace",
        "3.0 GiB",
    ):
        assert words in said


def test_the_page_needs_nothing_else(checkup_with: Make) -> None:
    """The page has no element that loads or embeds others, and outside its scripts no address of another place."""
    text = as_html(checkup_with(**skewed()))
    page = Page(text)

    assert {"link", "img", "iframe", "object", "embed", "base", "form"} & set(page.tags) == set()
    assert "src" not in {name for name, _ in page.attributes}
    assert all(str(value).startswith("#") for name, value in page.attributes if name in {"href", "action"})
    assert re.search(r"https?:|url\(|@import", SCRIPT.sub("", text)) is None
    assert "prefers-color-scheme: dark" in text


def test_only_the_pages_own_scripts_may_run(checkup_with: Make) -> None:
    """The page's security policy permits its two scripts, by their hashes, and no loading or sending of data."""
    text = as_html(checkup_with(**skewed()))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in SCRIPT.findall(text)]

    assert len(digests) == 2
    sources = " ".join(f"'sha256-{digest}'" for digest in digests)
    assert policy == (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {sources}; base-uri 'none'; form-action 'none'"
    )


def test_every_drawing_has_a_place_and_a_table(checkup_with: Make) -> None:
    """Each figure has a place with its id on the page, and a table."""
    text = as_html(checkup_with(**skewed()))
    (figures,) = re.findall(r'<script type="application/json" id="figures">(.*?)</script>', text)
    places = re.findall(r'<div class="plot" id="([^"]+)"', text)

    assert places == list(json.loads(figures))
    assert len(places) >= 5
    assert text.count("<summary>As a table</summary>") == len(places)
    assert "<noscript>" in text


def test_names_are_words_and_never_tags(checkup_with: Make) -> None:
    """Tags in names and evidence are escaped on the page and in the data of its charts."""
    finding = a_finding(evidence="<b>x</b>", subject='"><img src=x>')
    topic = {"topic": f"persistent://{NASTY}/t</script><img src=x>", "namespace": NASTY, "backlog_bytes": 9}

    text = as_html(checkup_with(findings=[finding], verdicts=[a_verdict("tc-skew", "found")], topics=[topic]))
    page = Page(text)

    assert page.tags.count("script") == 3
    assert "img" not in page.tags
    assert "&lt;b&gt;x&lt;/b&gt;" in text
    assert "alert(" not in "".join(SCRIPT.findall(text))


@row_by_row(
    "words, expected",
    ("Set `a=<b>` and `c`.", "Set <code>a=&lt;b&gt;</code> and <code>c</code>."),
    ("one ` only <i>", "one ` only &lt;i&gt;"),
    ("none", "none"),
)
def test_what_stands_between_backticks_is_code(words: str, expected: str) -> None:
    assert str(coded(words)) == expected


@pytest.mark.parametrize("name", EXAMPLES)
def test_how_a_page_reads(name: str, golden: Golden) -> None:
    """The page of each example equals its golden text, apart from scripts, styles and their hashes."""
    page = re.sub(r"<(script|style)\b[^>]*>.*?</\1>", "", as_html(EXAMPLES[name]()), flags=re.DOTALL)
    golden(re.sub(r"sha256-[^']+", "sha256-HASH", page))


def test_many_findings_unfold(checkup_with: Make) -> None:
    """Only the first findings are open, the others folded under their number, and omitted ones are counted."""
    findings = [a_finding("warning", subject=f"s{number:04}") for number in range(MAX_OPEN + 1200)]

    text = as_html(checkup_with(findings=findings, verdicts=[a_verdict("tc-skew", "found", more=77)]))

    opened, fold, folded = text.partition("<details><summary>1,200 more</summary>")
    assert fold
    assert SUBJECT.findall(opened) == [f"s{number:04}" for number in range(MAX_OPEN)]
    assert len(SUBJECT.findall(folded)) == 1200
    assert "and 77 more, not listed: 77 that count as warning, like the least bad one listed" in text
    assert f"{MAX_OPEN + 1277:,} findings" in text
