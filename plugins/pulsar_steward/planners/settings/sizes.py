"""Sizes of quotas, with the computation as text that an approver can check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.setting import BacklogQuota
from pulsar_steward.model.units import HOUR, MIB, bytes_in_words, counted
from pulsar_steward.planners.settings.facts import TopicSettings

if TYPE_CHECKING:
    from pulsar_steward.planners.settings.facts import NamespaceFact
    from pulsar_steward.policy.remedies import BacklogQuotaRemedy


class SizeSum(msgspec.Struct, frozen=True):
    """A size, and its computation as text."""

    bytes: int
    words: str


class ProposedQuota(msgspec.Struct, frozen=True):
    """A quota with its computation as text; or no quota, and the reason."""

    quota: BacklogQuota | None
    words: str


def needed(fact: NamespaceFact | TopicSettings, remedy: BacklogQuotaRemedy) -> SizeSum:
    """Room that a topic's backlog needs: for an outage of its consumers, and for more than the largest backlog seen."""
    outage = int(fact.busiest_bytes_per_second * remedy.survive_outage_hours * HOUR)
    peak = fact.peak * (100 + remedy.peak_headroom_percent) // 100
    snapshots = fact.snapshots if isinstance(fact, TopicSettings) else len(fact.looks)
    who = "its busiest partition" if isinstance(fact, TopicSettings) else "the busiest topic"
    least = remedy.minimum_megabytes * MIB
    largest = max(outage, peak, least)
    whole = -(-largest // MIB) * MIB
    words = (
        f"the largest of {bytes_in_words(int(fact.busiest_bytes_per_second))}/s of {who} for"
        f" {remedy.survive_outage_hours} h = {bytes_in_words(outage)}, the largest backlog seen in"
        f" {counted(snapshots, 'snapshot')} {bytes_in_words(fact.peak)} + {remedy.peak_headroom_percent} % ="
        f" {bytes_in_words(peak)}, and at least {bytes_in_words(least)}"
    )
    return SizeSum(whole, words)


def below(limit: int, margin_percent: int) -> int:
    """The largest value that leaves the margin below a limit."""
    return limit * (100 - margin_percent) // 100


def above(value: int, margin_percent: int) -> int:
    """The smallest limit at which a value leaves the margin free, rounded up."""
    return -(-value * 100 // (100 - margin_percent))
