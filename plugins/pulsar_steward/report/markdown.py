"""Small Markdown: names of tenants and topics come from outside, and must stay names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")


def text(words: object) -> str:
    """Words with nothing in them that Markdown would take for its own, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(str(words).split()))


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
    return "\n".join(f"- {_code(' '.join(str(line).split()))}" for line in lines)


def _code(line: str) -> str:
    """Backticks within it cannot end it: the ones around it are more in a row."""
    fence = "`" * (max((len(run) for run in re.findall(r"`+", line)), default=0) + 1)
    padding = " " if "`" in line else ""
    return f"{fence}{padding}{line}{padding}{fence}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
