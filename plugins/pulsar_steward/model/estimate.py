"""Estimates of how long something takes: parts one after the other, and workers side by side."""

from __future__ import annotations

import math


def rate_side_by_side(rate_of_one: float, workers: float, rate_of_all: float) -> float:
    """Things per second of workers side by side, which share something that allows `rate_of_all` at most."""
    return min(rate_of_one * workers, rate_of_all)


def total_seconds(*parts: float) -> int:
    """Sum of parts that follow one another, in seconds, rounded up."""
    return math.ceil(sum(parts))
