"""Points of a move's stages, and the calls to copy."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pulsar_steward.model.staged_move import Point, Standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pulsar_steward.facts.namespace_look import NamespaceLook

MAX_CALLS = 10
"""Calls of one point that are printed; the others are counted."""


def ready(words: str, calls: Sequence[str] = ()) -> Point:
    """A point that is as it has to be."""
    return Point(standing=Standing.READY, words=words, calls=tuple(calls))


def not_yet(words: str, calls: Iterable[str] = ()) -> Point:
    """A point that is not, with calls that mend it, those of several partitions once."""
    every = tuple(dict.fromkeys(calls))
    more = max(len(every) - MAX_CALLS, 0)
    return Point(standing=Standing.NOT_YET, words=words, calls=every[:MAX_CALLS], more_calls=more)


def unknown(words: str, calls: Sequence[str] = ()) -> Point:
    """A point of which it is not known."""
    return Point(standing=Standing.UNKNOWN, words=words, calls=tuple(calls))


def call(look: NamespaceLook, *words: str) -> str:
    """A call of ``pulsar-admin`` to copy."""
    return shlex.join(["pulsar-admin", "--admin-url", look.url, *words])
