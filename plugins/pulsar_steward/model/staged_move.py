"""A move of a namespace that people carry out, as data: its stages, what each looks at, and the calls to copy."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

import msgspec

FORMAT: Literal["pulsar-steward/move-namespace"] = "pulsar-steward/move-namespace"


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
    """A move as it stands.

    Attributes:
        source_seen: Time of the snapshot of the source that tells it; None: the look was live.
        target_seen: Likewise of the target.
    """

    format: Literal["pulsar-steward/move-namespace"] = FORMAT
    version: Literal[1] = 1
    namespace: str
    source: str
    target: str
    stages: tuple[Stage, ...]
    source_seen: datetime | None = None
    target_seen: datetime | None = None

    @property
    def is_ready(self) -> bool:
        """True if every stage is."""
        return all(stage.standing is Standing.READY for stage in self.stages)
