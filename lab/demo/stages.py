"""Output of the demo: stages with their seconds, and counts as bars."""

import contextlib
import time
from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.table import Table

WIDTH = 40
"""Characters of the longest bar."""


class Stages:
    """Prints each stage when it begins, and its seconds when it is over."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._began = time.monotonic()

    @contextlib.contextmanager
    def stage(self, what: str) -> Iterator[None]:
        """A stage for the length of a ``with`` block; in a terminal it shows that something goes on."""
        began = time.monotonic()
        with self._console.status(f"{what} …") if self._console.is_terminal else contextlib.nullcontext():
            yield
        self._console.print(f"[green]✓[/] {what} [dim]{time.monotonic() - began:5.1f} s[/]")

    def say(self, text: str) -> None:
        """A line as it is."""
        self._console.print(text, markup=False)

    def failed(self, text: str) -> None:
        """Prints an error."""
        self._console.print(f"[red]✗[/] {self.seconds:.0f} s:", end=" ")
        self._console.print(text, markup=False)

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    def counts(self, title: str, counts: Mapping[str, int]) -> None:
        """Prints counts as bars; the longest is as wide as fits."""
        table = Table(title=title, title_justify="left", box=None, show_header=False)
        most = max(counts.values(), default=0)
        for name, count in sorted(counts.items()):
            table.add_row(f"  {name}", f"{count:>5,}", "█" * (count if most <= WIDTH else count * WIDTH // most))
        self._console.print(table)
