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


def code(lines: Iterable[object]) -> str:
    """A block that is shown as it is; a fence within it cannot end it."""
    body = "\n".join(" ".join(str(line).split()) for line in lines)
    fence = "`" * max(3, max((len(run) for run in re.findall(r"`+", body)), default=0) + 1)
    return f"{fence}\n{body}\n{fence}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
