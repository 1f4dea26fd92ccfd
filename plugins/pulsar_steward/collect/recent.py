"""Which clients connected a short while ago, told from the text that brokers write, and cheaply.

A broker writes RFC 3339 with up to nine digits of a second, in its own time zone: ``2026-01-31T23:59:59.123456789Z`` or
``...+01:00`` (`DateFormatter` of Pulsar). Texts of one offset sort as their times do, so each offset's limit is
worked out once and all else is comparing text: a topic may have 10,000 clients.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

_SECONDS = len("2026-01-31T23:59:59")


class Client(Protocol):
    """What has a time at which it connected, as brokers write it; empty: unknown."""

    @property
    def connected_since(self) -> str: ...  # noqa: D102 - as the class says


class Recent:
    """Tells which clients connected since a point in time.

    Args:
        taken_at: When the snapshot was taken, with its time zone.
        minutes: How far back counts.
    """

    def __init__(self, taken_at: datetime, minutes: int) -> None:
        self._since = taken_at - timedelta(minutes=minutes)
        self._utc = self._since.astimezone(UTC).isoformat()[:_SECONDS]
        self._limits: dict[str, str | None] = {}

    def among(self, clients: Iterable[Client]) -> int:
        """How many connected not before the limit; a text that is no time is not recent."""
        count = 0
        for client in clients:
            if self.holds(client.connected_since):
                count += 1
        return count

    def holds(self, written: str) -> bool:
        """Whether a time, as a broker writes it, is not before the limit."""
        if written[-1:] == "Z":
            return written >= self._utc
        offset = written[-6:]
        if offset not in self._limits:
            self._limits[offset] = self._limit(offset)
        limit = self._limits[offset]
        return limit is not None and written >= limit

    def _limit(self, offset: str) -> str | None:
        try:
            zone = datetime.fromisoformat(f"2000-01-01T00:00:00{offset}").tzinfo or timezone(timedelta())
        except ValueError:
            return None
        return self._since.astimezone(zone).replace(tzinfo=UTC).isoformat()[:_SECONDS]
