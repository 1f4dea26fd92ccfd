"""Small Markdown writer: names of tenants and topics come from outside, and are escaped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pulsar_steward.outside_text import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")
_FIRST = re.compile(r"^(\d+(?=\.)|(?=[-=]))")
"""Characters that begin a list, a line or a heading at the start of a line: ``-``, ``=`` and the dot of ``1.``."""

_BREAKS = re.compile(r"([`|])")
_ADDRESS = re.compile(r"https?://|ftp://|www\.|[-.+\w]@[-\w]+\.[-\w]", re.IGNORECASE)
"""Addresses that GitHub's Markdown turns into links."""


def text(words: object) -> str:
    """Escapes text for Markdown, on one line.

    An address is set as code. A backslash would not prevent a link: Airflow's pages look for addresses after removing
    backslashes. Several spaces become one, as in rendered Markdown.
    """
    line = " ".join(_word(word) for word in shown(words).split(" ") if word)
    return _FIRST.sub(r"\1\\", line)


def table(header: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: frozenset[int] = frozenset()) -> str:
    """Table; cells are escaped, and the columns with these indices are aligned to the right."""
    lines = [
        _row([text(cell) for cell in header]),
        _row(["--:" if column in numbers else "---" for column in range(len(header))]),
    ]
    lines += [_row([text(cell) for cell in row]) for row in rows]
    return "\n".join(lines)


def bullets(items: Iterable[object]) -> str:
    """Bulleted list; items are escaped."""
    return "\n".join(f"- {text(item)}" for item in items)


def _word(word: str) -> str:
    """Escapes a word, or sets it as code if it contains an address; the code contains no backtick or end of a cell."""
    if not _ADDRESS.search(word):
        return _SPECIAL.sub(r"\\\1", word)
    parts = _BREAKS.split(word)
    return "".join(_code(part) if _ADDRESS.search(part) else _SPECIAL.sub(r"\\\1", part) for part in parts)


def _code(line: str) -> str:
    """Sets a line as code, between more backticks in a row than the line contains."""
    fence = "`" * (max((len(run) for run in re.findall(r"`+", line)), default=0) + 1)
    padding = " " if "`" in line else ""
    return f"{fence}{padding}{line}{padding}{fence}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
