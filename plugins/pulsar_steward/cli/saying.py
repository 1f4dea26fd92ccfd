"""Where words go: the report to standard output, everything about the looking itself to standard error."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from pulsar_steward.report.checkup.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STANDARD_OUTPUT = "-"
"""What stands for it where a file is asked for."""

Say = Callable[[str], None]
"""Tells how far it is."""

_LOGGED = re.compile(
    r"\S+ \S+ (?:DEBUG|INFO|WARNING|ERROR|CRITICAL) steward_spark\.(?:collecting|progress|gather) (.*)"
)


def out() -> Console:
    """Standard output; colour only where it is a terminal and NO_COLOR is not set."""
    return Console(highlight=False)


def print_lines(lines: Iterable[Text], console: Console | None = None) -> None:
    """Prints lines that are as long as they are meant to be."""
    console = console or out()
    for line in lines:
        console.print(line, soft_wrap=True)


def width() -> int:
    """Columns to write in: the terminal's, or 80."""
    return out().width


@contextmanager
def progress() -> Iterator[Say]:
    """Tells how far the looking is: behind a spinner in a terminal, in plain lines elsewhere."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield lambda words: console.print(Text(plain(words)), soft_wrap=True)
        return
    with console.status("starting") as status:
        yield lambda words: status.update(Text(plain(words), overflow="ellipsis", no_wrap=True))


def progress_in(line: str) -> str | None:
    """What a line of a job's log says of how far it is; None where it says nothing of that."""
    said = _LOGGED.match(line)
    return said[1] if said else None
