"""Hash ranges: where a topic lies, which bundle holds it, and where a bundle is cut. Pure functions, no state.

Measured on Pulsar 4.0.7: the position is the CRC-32 of the full name; a bundle includes its lower bound and not its
upper one, the last bundle of a namespace excepted.
"""

import zlib
from bisect import bisect_right
from itertools import pairwise

LAST = 0xFFFFFFFF
"""The upper bound of every namespace's hash range."""


def position(topic: str) -> int:
    """The place of a full topic name (``persistent://tenant/ns/name``) in its namespace's hash range."""
    return zlib.crc32(topic.encode())


def even_boundaries(bundles: int) -> tuple[int, ...]:
    """The ``bundles + 1`` boundaries that a new namespace gets: equal steps, rounded down, and the last position."""
    step = (LAST + 1) // bundles
    return (*(step * index for index in range(bundles)), LAST)


def hexed(bound: int) -> str:
    """A boundary as the API writes it: ``0x0abc1234``."""
    return f"0x{bound:08x}"


def bundle_name(lower: int, upper: int) -> str:
    """``0x00000000_0x40000000``."""
    return f"{hexed(lower)}_{hexed(upper)}"


def bundle_at(boundaries: tuple[int, ...], place: int) -> str:
    """The bundle that holds a hash position."""
    index = min(bisect_right(boundaries, place) - 1, len(boundaries) - 2)
    return bundle_name(boundaries[index], boundaries[index + 1])


def bundles_of(boundaries: tuple[int, ...]) -> tuple[str, ...]:
    """Every bundle, lowest first."""
    return tuple(bundle_name(lower, upper) for lower, upper in pairwise(boundaries))


def bounds(bundle: str) -> tuple[int, int]:
    """The two ends of a bundle's name.

    Raises:
        ValueError: The name is not two hexadecimal numbers joined by an underscore, the smaller first.
    """
    lower, upper = (int(end, 16) for end in bundle.split("_"))
    if lower >= upper:
        raise ValueError(f"{bundle!r} is not a range: give the lower end first.")
    return lower, upper


def middle_of_range(lower: int, upper: int) -> int:
    """Position at which ``range_equally_divide`` cuts."""
    return lower + (upper - lower) // 2


def middle_of_topics(positions: list[int]) -> int | None:
    """Cut of ``topic_count_equally_divide``: halfway between the two topics in the middle; None below two topics.

    Half of the topics, rounded down, come to lie in the lower bundle.
    """
    if len(positions) <= 1:
        return None
    ordered = sorted(positions)
    below = ordered[max(len(ordered) // 2 - 1, 0)]
    above = ordered[len(ordered) // 2]
    return below + (above - below) // 2
