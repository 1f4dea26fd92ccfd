"""Work on a thread beside a block, whose failure is not lost."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator


@contextlib.contextmanager
def alongside(work: Callable[[], None], over: threading.Event) -> Iterator[None]:
    """Works beside a block, and sets `over` when the block ends; raises what the work raised, however early it did."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix=work.__name__) as thread:
        ended = thread.submit(work)
        try:
            yield
        finally:
            over.set()
        ended.result()
