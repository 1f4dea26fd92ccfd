"""How large a quota has to be, with the sum in words that an approver can check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.units import bytes_in_words
from pulsar_steward.planners.settings.facts import TopicFact

if TYPE_CHECKING:
    from pulsar_steward.planners.settings.facts import NamespaceFact
    from pulsar_steward.policy.remedies import BacklogQuotaRemedy

MEBIBYTE = 1 << 20
HOUR = 3_600


class Sum(msgspec.Struct, frozen=True):
    """A size and how it comes about."""

    bytes: int
    words: str


def needed(fact: NamespaceFact | TopicFact, remedy: BacklogQuotaRemedy) -> Sum:
    """What a topic's backlog has to have room for: an outage of its consumers, and more than was ever seen."""
    outage = int(fact.busiest_bytes_per_second * remedy.survive_outage_hours * HOUR)
    peak = fact.peak * (100 + remedy.peak_headroom_percent) // 100
    snapshots = fact.snapshots if isinstance(fact, TopicFact) else len(fact.looks)
    who = "its busiest partition" if isinstance(fact, TopicFact) else "the busiest topic"
    least = remedy.minimum_megabytes * MEBIBYTE
    largest = max(outage, peak, least)
    whole = -(-largest // MEBIBYTE) * MEBIBYTE
    words = (
        f"the largest of {bytes_in_words(int(fact.busiest_bytes_per_second))}/s of {who} for"
        f" {remedy.survive_outage_hours} h = {bytes_in_words(outage)}, the largest backlog seen in"
        f" {snapshots_in_words(snapshots)} {bytes_in_words(fact.peak)} + {remedy.peak_headroom_percent} % ="
        f" {bytes_in_words(peak)}, and at least {bytes_in_words(least)}"
    )
    return Sum(whole, words)


def snapshots_in_words(count: int) -> str:
    """``1 snapshot``, ``3 snapshots``."""
    return f"{count:,} snapshot" if count == 1 else f"{count:,} snapshots"


def below(limit: int, margin_percent: int) -> int:
    """The most that leaves the margin below a limit."""
    return limit * (100 - margin_percent) // 100


def above(value: int, margin_percent: int) -> int:
    """The least limit of which a value leaves the margin free, rounded up."""
    return -(-value * 100 // (100 - margin_percent))
