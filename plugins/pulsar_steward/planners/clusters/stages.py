"""Stages of a move that people carry out, as data: what each looks at, its state, and the calls to copy."""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pulsar_steward.facts.namespace_look import NamespaceLook

FORMAT: Literal["pulsar-steward/move-namespace"] = "pulsar-steward/move-namespace"

MAX_CALLS = 10
"""Calls of one point that are printed; the others are counted."""


class Standing(StrEnum):
    """State of a stage."""

    READY = "ready"
    NOT_YET = "not yet"
    UNKNOWN = "cannot be told"

    @property
    def rank(self) -> int:
        """Order by which the worst point of a stage is its state: not yet, then cannot be told, then ready."""
        return [Standing.NOT_YET, Standing.UNKNOWN, Standing.READY].index(self)


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a stage looks at, with calls for people to copy, and the number of further ones like them."""

    standing: Standing
    words: str
    calls: tuple[str, ...] = ()
    more_calls: int = 0


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """A stage, with all that it looks at."""

    number: int
    title: str
    standing: Standing
    points: tuple[Point, ...]


class StagedMove(msgspec.Struct, frozen=True, kw_only=True):
    """A move as it stands."""

    format: Literal["pulsar-steward/move-namespace"] = FORMAT
    version: Literal[1] = 1
    namespace: str
    source: str
    target: str
    stages: tuple[Stage, ...]

    @property
    def is_ready(self) -> bool:
        """True if every stage is."""
        return all(stage.standing is Standing.READY for stage in self.stages)


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
