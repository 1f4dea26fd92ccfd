"""What a check is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.model.catalog import CheckInfo
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.policy.schema import Policy
    from steward_spark.frames import Frames


MOST_FINDINGS = 100
"""Findings of one check that are listed: a cluster of a million partitions may have as many troubles of one kind."""


@dataclass(frozen=True)
class Judgement:
    """What a check says of a snapshot.

    Attributes:
        findings: The troubles that it found, the worst ones; at most `MOST_FINDINGS`.
        more: How many further ones there are, that are not listed.
        quiet: Where there are none, what it looked at, in a sentence.
        cannot_tell: Why the check cannot judge this cluster at all; None where it can.
    """

    findings: tuple[Finding, ...] = ()
    more: int = 0
    quiet: str = "Nothing was found."
    cannot_tell: str | None = None


@dataclass(frozen=True)
class Check:
    """A check: its words, and how it judges a snapshot."""

    info: CheckInfo
    judge: Callable[[Frames, Policy], Judgement]
