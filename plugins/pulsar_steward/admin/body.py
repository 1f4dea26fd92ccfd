"""The body of an answer: in memory as a rule, and in a temporary file that is mapped where it is a large one.

The statistics of a broker hold about 1.6 KB a topic, and one broker may own a million. What is mapped the kernel takes
back whenever memory runs short; what was read into memory it cannot.
"""

from __future__ import annotations

import mmap
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Body = bytes | mmap.mmap

IN_MEMORY_BYTES = 32 << 20
"""Of a body that is held in memory: twice what a broker with ten thousand topics tells of them."""


def gathered(pieces: Iterable[bytes], most: int = IN_MEMORY_BYTES) -> Body:
    """The pieces as one body.

    Args:
        pieces: As they come.
        most: Bytes up to which it stays in memory.
    """
    held: list[bytes] = []
    size, rest = 0, iter(pieces)
    for piece in rest:
        held.append(piece)
        size += len(piece)
        if size > most:
            return _mapped(held, rest)
    return b"".join(held)


def _mapped(held: list[bytes], rest: Iterable[bytes]) -> mmap.mmap:
    """The file is gone from its folder from the start, and from the disk once nobody reads the map any more."""
    with TemporaryFile(prefix="steward-") as file:
        file.writelines(held)
        held.clear()
        file.writelines(rest)
        file.flush()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
