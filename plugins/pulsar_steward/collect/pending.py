"""Record of the brokers whose responses are pending, for messages about slow ones."""

from __future__ import annotations

import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class PendingBrokers:
    """Brokers with a pending request; several threads may use it."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._done = 0
        self._lock = Lock()

    @contextmanager
    def on(self, broker: str) -> Iterator[None]:
        """Records the broker as pending while the block runs."""
        with self._lock:
            self._since[broker] = time.monotonic()
        try:
            yield
        finally:
            with self._lock:
                del self._since[broker]

    def has_answered(self) -> None:
        """Counts one more broker as read, or given up."""
        with self._lock:
            self._done += 1

    @property
    def done(self) -> int:
        """Number of brokers that were read, or given up."""
        return self._done

    def slowest(self) -> tuple[str, float] | None:
        """Broker whose response has been pending for longest, and for how many seconds; None if there is none."""
        with self._lock:
            if not self._since:
                return None
            broker, since = min(self._since.items(), key=lambda pair: (pair[1], pair[0]))
            return broker, time.monotonic() - since


# A broker writes RFC 3339 with up to nine digits of a second, in its own time zone:
# ``2026-01-31T23:59:59.123456789Z`` or ``...+01:00`` (`DateFormatter` of Pulsar). Timestamps with the same offset
# sort like their times. So each offset's limit is computed once, and the rest is text comparison: a topic may have
# 10,000 clients.


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
