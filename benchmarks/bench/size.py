"""Figures of a cluster of one size."""

from __future__ import annotations

import msgspec

from benchmarks.bench.figures import Figures
from benchmarks.bench.pages import PageFigures
from benchmarks.diagnose import DiagnoseFigures


class Size(msgspec.Struct, frozen=True):
    """Figures of a cluster of one size.

    Attributes:
        partitions: About so many.
        brokers: How many.
        collect: Collecting by Spark, to Parquet.
        embedded: The same on threads of one process.
        floor: The same documents fetched, decoded and written, and nothing else.
        one_by_one: A sample of topics asked for one by one.
        checkup: `steward checkup`, from its start to its end.
        diagnose: All checks on a snapshot of that size, which has trouble of many kinds.
        pages: Every route of the pages on that snapshot.
    """

    partitions: int
    brokers: int
    collect: Figures
    embedded: Figures
    floor: Figures
    one_by_one: Figures
    checkup: Figures
    diagnose: DiagnoseFigures
    pages: PageFigures

    @property
    def against_one_by_one(self) -> float:
        """Ratio of the seconds a topic by asking for each to those of collecting."""
        alone = self.one_by_one.seconds / self.one_by_one.count
        return alone / (self.collect.seconds / self.collect.count)
