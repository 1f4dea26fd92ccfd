"""Times since when the topics of a bundle have a client: after a move, each topic's is when it was served again."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pulsar_steward.model.bundles import most_of

if TYPE_CHECKING:
    from collections.abc import Iterable


class FirstClients:
    """Connection times of each topic's first client, by bundle, as brokers write them."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str], list[str]] = defaultdict(list)

    def add(self, bundle: tuple[str, str], times: Iterable[str]) -> None:
        """Adds topics of a bundle, given as `ClientFigures.first_connected`.

        Texts of one time zone sort as their times do. A broker writes all in its own zone; where that changed its
        offset, the order is wrong for those clients alone that connected within the hour of the change.

        Args:
            bundle: Namespace and range.
            times: Connection time of each topic's first client.
        """
        self._times[bundle].extend(times)

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
