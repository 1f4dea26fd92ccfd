"""Subscriptions that nobody uses: of each topic here one that a run may delete, and one that has to stay."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from lab.faults.clients.publishing import publish
from lab.faults.real.ground import connected
from lab.faults.real.operator import operator_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.cluster import Lab

ABANDONED, KEPT = "abandoned", "kept"
HELD = 5
"""Entries of each."""
HELD_BYTES = HELD * 1024
"""More than they take up."""


class IdleSubscriptions:
    """Both of each of these topics, made at once.

    Args:
        lab: The cluster.
        topics: Full names, of topics without partitions that exist.
    """

    def __init__(self, lab: Lab, topics: Sequence[str]) -> None:
        self._lab = lab
        self._topics = topics
        with closing(connected(lab)) as client:
            for topic in topics:
                operator_of(lab).create_subscription(topic, KEPT)
                publish(client.create_producer(topic, batching_enabled=False), HELD)
        self.replenish()

    def entries(self) -> dict[tuple[str, str], int]:
        """Entries by topic and subscription, as the topics' owners tell them."""
        operator = operator_of(self._lab)
        return {
            (topic, name): shown["msgBacklog"]
            for topic in self._topics
            for name, shown in operator.statistics(topic)["subscriptions"].items()
        }

    def alter(self, topic: str, *, anew: bool) -> None:
        """Makes the one that may be deleted anew, or resets it; its entries are the same afterwards."""
        operator = operator_of(self._lab)
        if anew:
            operator.delete_subscription(topic, ABANDONED)
            self.replenish()
        else:
            operator.reset_subscription(topic, ABANDONED)

    def replenish(self) -> None:
        """Makes those anew that were deleted, with the same entries, as the ones that stay keep them."""
        there = self.entries()
        for topic in self._topics:
            if (topic, ABANDONED) not in there:
                operator_of(self._lab).create_subscription(topic, ABANDONED, from_first=True)
