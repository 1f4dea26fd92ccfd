"""Lines for a terminal, wrapped between words only; names from outside cannot control the terminal."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from rich.text import Text

from pulsar_steward.outside_text import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WIDEST = 100
"""Largest width in columns; longer lines are hard to read, however wide the terminal is."""

NARROWEST = 40
"""Smallest width in columns that lines are wrapped to."""

STYLES = {
    "critical": "bold red",
    "warning": "bold yellow",
    "info": "bold cyan",
    "clear": "green",
    "unknown": "magenta",
    "heading": "bold underline",
    "quiet": "dim",
}
"""Styles; each only adds to the meaning of the words."""


def fitting(width: int) -> int:
    """Width to write in, for a terminal of this width."""
    return max(NARROWEST, min(width, WIDEST))


def wrapped(words: object, width: int, *, first: str | Text = "", indent: int = 0, style: str = "") -> Iterator[Text]:
    """A paragraph; a name longer than a line stays whole, so that it can be copied.

    Args:
        words: The text, unescaped.
        width: Columns.
        first: Text before the first line, in place of its indentation.
        indent: Columns before every line.
        style: One of `STYLES`, for the words, or none.
    """
    lines = textwrap.wrap(shown(words), max(width - indent, 1), break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(lines or [""]):
        before = Text.assemble(first if number == 0 else "")
        before.pad_right(indent - len(before))
        yield Text.assemble(before, (line, STYLES.get(style, "")))


def heading(words: str) -> Iterator[Text]:
    """Heading, with an empty line before it."""
    yield Text()
    yield Text(shown(words), STYLES["heading"])


def numbered(steps: Iterable[str], width: int, indent: int) -> Iterator[Text]:
    """Numbered list."""
    for number, step in enumerate(steps, start=1):
        yield from wrapped(step, width, first=f"{' ' * indent}{number}. ", indent=indent + 3)


def bullets(items: Iterable[str], width: int, indent: int = 2) -> Iterator[Text]:
    """Bulleted list."""
    for item in items:
        yield from wrapped(item, width, first=f"{' ' * (indent - 2)}- ", indent=indent)
