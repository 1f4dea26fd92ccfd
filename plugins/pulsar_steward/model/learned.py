"""The rate at which topics were served again after a broker had gone."""

from __future__ import annotations

from datetime import datetime

import msgspec

from pulsar_steward.model.units import counted, time_in_words

TIMES_AS_LARGE = 10
"""A load that is so many times as large as what was seen, or larger, is not estimated by it: of a short failover, much
is clients' waiting, which does not grow with the number of topics."""


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """Topics that were served again after a broker had gone.

    Attributes:
        lost: The broker.
        at: When the first of them was.
        topics: Number of topics.
        seconds: From the first to the last of them, rounded up.
        brokers: Number of brokers that took them over.
    """

    lost: str
    at: datetime
    topics: int
    seconds: int
    brokers: int

    @property
    def per_second(self) -> float:
        """Topics per second, of all these brokers."""
        return self.topics / self.seconds

    @property
    def of_one(self) -> float:
        """Topics per second of each of them."""
        return self.per_second / self.brokers

    def serves_for(self, topics: int) -> bool:
        """True if the loss of so many topics may be estimated by this."""
        return topics < TIMES_AS_LARGE * self.topics

    @property
    def words(self) -> str:
        """The loss that was seen, as a sentence."""
        return (
            f"The rate was learned from when {self.lost} went away, {time_in_words(self.at)}:"
            f" {counted(self.brokers, 'broker')} served {counted(self.topics, 'topic')} again in {self.seconds:,} s."
        )
