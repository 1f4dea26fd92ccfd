"""Measurements made several times, so that one slow moment of the machine is not taken for the program's."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.bench.figures import Figures

T = TypeVar("T")


def median(measure: Callable[[], T], figures: Callable[[T], Figures], times: int) -> T:
    """Measures several times, and returns the one whose seconds are in the middle.

    Args:
        measure: Measures once.
        figures: The figures of what it returns.
        times: How many.
    """
    return sorted((measure() for _ in range(times)), key=lambda each: figures(each).seconds)[times // 2]
