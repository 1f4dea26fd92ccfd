"""Which brokers are waited for, so that somebody can be told which one is slow."""

from __future__ import annotations

import time
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Waiting:
    """Brokers that were asked and have not answered yet; several threads may use it."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._done = 0
        self._lock = Lock()

    @contextmanager
    def on(self, broker: str) -> Iterator[None]:
        """While the block runs, the broker is waited for."""
        with self._lock:
            self._since[broker] = time.monotonic()
        try:
            yield
        finally:
            with self._lock:
                del self._since[broker]

    def has_answered(self) -> None:
        """One more broker has been read, or given up."""
        with self._lock:
            self._done += 1

    @property
    def done(self) -> int:
        """Brokers that were read, or given up."""
        return self._done

    def slowest(self) -> tuple[str, float] | None:
        """Who has been waited for longest, and for how many seconds; None where nobody is."""
        with self._lock:
            if not self._since:
                return None
            broker, since = min(self._since.items(), key=lambda pair: (pair[1], pair[0]))
            return broker, time.monotonic() - since
