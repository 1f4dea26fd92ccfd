"""Small Markdown: names of tenants and topics come from outside, and must stay names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pulsar_steward.outside_text import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")
_FIRST = re.compile(r"^(\d+(?=\.)|(?=[-=]))")
"""Before ``-``, ``=`` and the dot of ``1.``, which begin a list, a line across or a heading at the start of a line."""

_BREAKS = re.compile(r"([`|])")
_ADDRESS = re.compile(r"https?://|ftp://|www\.|[-.+\w]@[-\w]+\.[-\w]", re.IGNORECASE)
"""What GitHub's Markdown makes links of without being told to."""


def text(words: object) -> str:
    """Words with nothing in them that Markdown would take for its own, on one line.

    An address is set as code. A backslash would not keep it from becoming a link: Airflow's pages look for addresses
    once backslashes are gone. Blanks in a row become one, as Markdown would show them.
    """
    line = " ".join(_word(word) for word in shown(words).split(" ") if word)
    return _FIRST.sub(r"\1\\", line)


def table(header: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: frozenset[int] = frozenset()) -> str:
    """A table; cells are escaped, and the columns with these indices are set to the right."""
    lines = [
        _row([text(cell) for cell in header]),
        _row(["--:" if column in numbers else "---" for column in range(len(header))]),
    ]
    lines += [_row([text(cell) for cell in row]) for row in rows]
    return "\n".join(lines)


def bullets(items: Iterable[object]) -> str:
    """A list; items are escaped."""
    return "\n".join(f"- {text(item)}" for item in items)


def codes(lines: Iterable[object]) -> str:
    """A list of lines that are shown as they are: Airflow's pages run the lines of a fenced block together."""
    return "\n".join(f"- {_code(shown(line))}" for line in lines)


def _word(word: str) -> str:
    """Escaped, or as code where it holds an address; no code holds a backtick, or what would end a table's cell."""
    if not _ADDRESS.search(word):
        return _SPECIAL.sub(r"\\\1", word)
    parts = _BREAKS.split(word)
    return "".join(_code(part) if _ADDRESS.search(part) else _SPECIAL.sub(r"\\\1", part) for part in parts)


def _code(line: str) -> str:
    """Backticks within it cannot end it: the ones around it are more in a row."""
    fence = "`" * (max((len(run) for run in re.findall(r"`+", line)), default=0) + 1)
    padding = " " if "`" in line else ""
    return f"{fence}{padding}{line}{padding}{fence}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
