"""Output of the long benchmarks: lines with the time of day, and the versions of what took part."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console


def sayer(console: Console) -> Callable[[str], None]:
    """Prints a line as it is, behind the time."""

    def say(line: str) -> None:
        console.print(f"{datetime.now(UTC):%H:%M:%S} {line}", soft_wrap=True, markup=False, highlight=False)

    return say


def versions(**others: str) -> dict[str, str]:
    """Steward's, those of others that took part, and Python's."""
    return {"Pulsar Steward": version("pulsar-steward"), **others, "Python": platform.python_version()}
