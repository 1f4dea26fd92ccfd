"""Record of the brokers whose responses are pending, for messages about slow ones."""

from __future__ import annotations

import time
from contextlib import contextmanager
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
