"""What several threads ask for and one of them makes: each thing once, while whoever else wants it waits."""

from __future__ import annotations

from threading import Lock, RLock
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")


class Once:
    """Things by key; where making one fails, the next who asks tries again."""

    def __init__(self) -> None:
        self._made: dict[Hashable, object] = {}
        self._locks: dict[Hashable, RLock] = {}
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The thing of that key, which is made when it is first asked for.

        Args:
            key: What it is; things of one key are of one type.
            make: Makes it; may ask for things of other keys, but not in a circle.
        """
        with self._lock:
            lock = self._locks.setdefault(key, RLock())
        with lock:
            if key not in self._made:
                self._made[key] = make()
            made: T = self._made[key]  # type: ignore[assignment]  # as the key says
            return made
