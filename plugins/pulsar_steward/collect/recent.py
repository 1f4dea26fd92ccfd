"""Count of clients that connected recently, computed cheaply from the brokers' timestamps.

A broker writes RFC 3339 with up to nine digits of a second, in its own time zone: ``2026-01-31T23:59:59.123456789Z`` or
``...+01:00`` (`DateFormatter` of Pulsar). Timestamps with the same offset sort like their times. So each offset's limit
is computed once, and the rest is text comparison: a topic may have 10,000 clients.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

_SECONDS = len("2026-01-31T23:59:59")
_WIDEST_OFFSET = timedelta(days=1)


class Recent:
    """Recognises clients that connected since a point in time.

    Attributes:
        earliest: A text that sorts before it is not recent, whatever its offset; for most clients this comparison is
            enough.

    Args:
        taken_at: Snapshot time, with its time zone.
        minutes: Length of the period before it that counts as recent.
    """

    def __init__(self, taken_at: datetime, minutes: int) -> None:
        self._since = taken_at - timedelta(minutes=minutes)
        self._utc = self._since.astimezone(UTC).isoformat()[:_SECONDS]
        self.earliest = (self._since.astimezone(UTC) - _WIDEST_OFFSET).isoformat()[:_SECONDS]
        self._limits: dict[str, str | None] = {}

    def holds(self, written: str) -> bool:
        """True if a broker's timestamp is not before the limit."""
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
