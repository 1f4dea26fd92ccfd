"""Times since when the topics of a bundle have a client: after a move, each topic's is when it was served again."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pulsar_steward.model.bundles import most_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsar_steward.admin.statistics import TopicStatistics

_LAST = "~"
"""Sorts after every time."""


class FirstClients:
    """Connection times of each topic's first client, by bundle, as brokers write them."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str], list[str]] = defaultdict(list)

    def add(self, bundle: tuple[str, str], topics: Iterable[TopicStatistics]) -> None:
        """Adds topics of a bundle; those without a client, or of an unknown time, have none.

        Texts of one time zone sort as their times do. A broker writes all in its own zone; where that changed its
        offset, the order is wrong for those clients alone that connected within the hour of the change.

        Args:
            bundle: Namespace and range.
            topics: The topics.
        """
        times = self._times[bundle]
        # Comparisons, as a call for each client of a million topics would be seen in the time that collecting takes.
        for topic in topics:
            first = _LAST
            for producer in topic.publishers:
                if producer.connected_since < first:  # noqa: PLR1730 - as said
                    first = producer.connected_since
            for subscription in topic.subscriptions.values():
                for consumer in subscription.consumers:
                    if consumer.connected_since < first:  # noqa: PLR1730 - as said
                        first = consumer.connected_since
            if first and first is not _LAST:
                times.append(first)

    def of(self, bundle: tuple[str, str]) -> tuple[int, datetime | None, datetime | None]:
        """Number of topics with a client; when the first of them had one, and when nine in ten had; None: unknown."""
        times = sorted(self._times.get(bundle, ()))
        if not times:
            return 0, None, None
        return len(times), _time(times[0]), _time(times[most_of(len(times)) - 1])


def _time(written: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
