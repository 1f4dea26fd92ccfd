"""Names come from outside and stay names, whatever Markdown or HTML they look like."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pulsar_steward.outside_text import shown
from pulsar_steward.report.markdown import bullets, codes, table, text


@pytest.mark.parametrize(
    ("words", "escaped"),
    [
        ("public/default", "public/default"),
        ("tenant_one/*ns*", r"tenant\_one/\*ns\*"),
        ("[click](http://evil)", "`[click](http://evil)`"),
        ("by alice@example.org today", "by `alice@example.org` today"),
        ("a|www.example.org|`b`", r"a\|`www.example.org`\|\`b\`"),
        ("<script>alert(1)</script>", r"\<script\>alert\(1\)\</script\>"),
        ("&lt;b&gt;", r"\&lt;b\&gt;"),
        ("a | b", r"a \| b"),
        ("two\nlines\t and  blanks", r"two\\nlines\\t and blanks"),
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("===", r"\==="),
        ("16 of 16 - and 2.5", "16 of 16 - and 2.5"),
        ("`code` ~~no~~ # title", r"\`code\` \~\~no\~\~ \# title"),
        ("back\\slash", r"back\\slash"),
        (12, "12"),
    ],
)
def test_words_stay_words(words: object, escaped: str) -> None:
    """Characters with a meaning in Markdown are made harmless, and line breaks are spelled out."""
    assert text(words) == escaped


MARKDOWN = MarkdownIt("gfm-like", {"linkify": False})
PIECES = st.lists(st.sampled_from([*"`|\\*_[]()<>!#-=1.:/@&~ ", "www.", "https://", "a@b.c", "x"]), max_size=12)


@given(st.text() | PIECES.map("".join))
def test_a_reader_of_the_rendered_page_sees_the_words(words: str) -> None:
    """Rendered Markdown shows the words of a list item and of a table cell unchanged, apart from blanks."""
    for page, others in ((bullets([words]), ""), (table(("h",), [(words,)]), "h")):
        read = "".join(each.content for token in MARKDOWN.parse(page) for each in token.children or ())
        assert " ".join(read.split(" ")) == others + " ".join(filter(None, shown(words).split(" ")))


@given(st.lists(st.tuples(st.text(), st.text()), max_size=4))
def test_a_table_keeps_its_shape(rows: list[tuple[str, str]]) -> None:
    """Each row of a table is one line of two cells, whatever text the cells hold."""
    lines = table(("a", "b"), rows).split("\n")
    assert len(lines) == 2 + len(rows)
    assert all(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3 for line in lines)


def test_columns_of_numbers_stand_to_the_right() -> None:
    """The second line of a table aligns columns of numbers to the right."""
    assert table(("broker", "now"), [("b", 3)], numbers=frozenset({1})).split("\n") == [
        "| broker | now |",
        "| --- | --: |",
        "| b | 3 |",
    ]


def test_a_list_has_an_item_a_line() -> None:
    """A line break within an item does not start another item of the list."""
    assert (
        bullets(["one", "two\n- three"])
        == r"""- one
- two\\n- three"""
    )


@given(st.lists(st.text(alphabet="`~ab\n"), max_size=3))
def test_code_ends_where_it_should(lines: list[str]) -> None:
    """Each line becomes one list item of code, fenced by more backticks than any run of them inside."""
    items = codes(lines).split("\n") if lines else []
    assert len(items) == len(lines)
    for item in items:
        fence, body = re.fullmatch(r"- (`+)(.*?)\1", item, re.DOTALL).groups()  # type: ignore[union-attr]  # it must match
        assert all(len(run) < len(fence) for run in re.findall(r"`+", body))
