"""Where words go: the report to standard output, everything about the looking itself to standard error."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.text import Text

from pulsar_steward.outside_text import shown, shown_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STANDARD_OUTPUT = "-"
"""What stands for it where a file is asked for."""

Say = Callable[[str], None]
"""Tells how far it is."""

_LOGGED = re.compile(
    r"\S+ \S+ (?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (?:steward_spark|pulsar_steward\.collect)\.\w+ (.*)"
)


def tell(words: object, *, err: bool = False) -> None:
    """Prints one line, as `shown` has it.

    Args:
        words: What is said, as it came.
        err: To standard error, in place of standard output.
    """
    typer.echo(shown(words), err=err)


def tell_exactly(document: bytes) -> None:
    """Prints JSON whose very bytes count; in a terminal, where a person reads it, with what cannot be seen escaped."""
    typer.echo(shown_json(document) if sys.stdout.isatty() else document)


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
        yield lambda words: console.print(Text(shown(words)), soft_wrap=True)
        return
    with console.status("starting") as status:
        yield lambda words: status.update(Text(shown(words), overflow="ellipsis", no_wrap=True))


def progress_in(line: str) -> str | None:
    """What a line of a job's log says of how far it is; None where it says nothing of that."""
    said = _LOGGED.match(line)
    return said[1] if said else None
