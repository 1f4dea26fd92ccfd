"""Totals of a bundle's topics, or of a broker's bundles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class BundleSum(msgspec.Struct):
    """Totals that grow while a broker's statistics are read; rates are per second, sizes are bytes."""

    topics: int = 0
    producers: int = 0
    consumers: int = 0
    rate_in: float = 0.0
    rate_out: float = 0.0
    throughput_in: float = 0.0
    throughput_out: float = 0.0
    backlog: int = 0

    @classmethod
    def of(cls, sums: Iterable[BundleSum]) -> BundleSum:
        """Total of several sums."""
        columns = zip(*(msgspec.structs.astuple(each) for each in sums), strict=True)
        return cls(*(sum(column) for column in columns))

    @property
    def rates(self) -> tuple[float, float, float, float]:
        """Messages in and out, bytes in and out, per second."""
        return self.rate_in, self.rate_out, self.throughput_in, self.throughput_out

    def add(self, topics: int, *columns: Sequence[float]) -> None:
        """Adds topics, given as columns: producers, consumers, rates and throughputs in and out, backlog bytes."""
        producers, consumers, rate_in, rate_out, throughput_in, throughput_out, backlog = map(sum, columns)
        self.topics += topics
        self.producers += int(producers)
        self.consumers += int(consumers)
        self.rate_in += rate_in
        self.rate_out += rate_out
        self.throughput_in += throughput_in
        self.throughput_out += throughput_out
        self.backlog += int(backlog)
