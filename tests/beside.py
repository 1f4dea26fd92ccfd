"""Yardstick for a test's seconds: a measure taken beside them, as machines differ and are busy."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TICK_S = 0.05


def yardstick() -> float:
    """Processor seconds that this Python takes now for a fixed piece of work, about a tenth of a second long."""
    began = time.process_time()
    rows = [{"topic": f"persistent://tenant/name/topic-{number}", "rate": number / 7} for number in range(20_000)]
    for _ in range(10):
        rows = sorted(msgspec.json.decode(msgspec.json.encode(rows)), key=lambda row: (row["rate"], row["topic"]))
    return time.process_time() - began


@contextmanager
def lateness() -> Iterator[Callable[[], float]]:
    """Gives how late this machine woke a thread that slept, at worst since the block began, in seconds."""
    over, worst = threading.Event(), [0.0]

    def watch() -> None:
        while not over.is_set():
            began = time.monotonic()
            time.sleep(TICK_S)
            worst[0] = max(worst[0], time.monotonic() - began - TICK_S)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield lambda: worst[0]
    finally:
        over.set()
        watcher.join()
