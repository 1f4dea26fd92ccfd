"""Report text about a growing backlog."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pulsar_steward.checks.backlog.culprits import slowest_words
from pulsar_steward.checks.backlog.growing_sums import FLOOR_BYTES
from pulsar_steward.checks.backlog.quota_words import consequence, delayed_words, in_brackets
from pulsar_steward.model.units import DAY, MIB, bytes_in_words, counted, seconds_in_words, time_in_words

if TYPE_CHECKING:
    from pulsar_steward.checks.backlog.growth import BacklogSum, Growth

_CENTURY = 36_525 * DAY


def evidence(growth: Growth) -> str:
    """Evidence: start, rate and expected end of the growth."""
    row, left = growth.row, growth.seconds_left
    if growth.together is not None:
        return f"{_growth_words(growth, _whose(growth.together))}; {_of_sum(growth.together)}"
    end = _until_retention(growth) if left is None else _until_quota(growth, left)
    return f"{_growth_words(growth, 'the backlog has')}; {end}{delayed_words(row)}{slowest_words(row)}"


def figures(growth: Growth) -> dict[str, int]:
    """Figures of the evidence."""
    rise, left = growth.rise, growth.seconds_left
    found = {
        "backlog_bytes": rise.now_bytes,
        "growth_bytes_per_second": int(growth.rate),
        "growth_seconds": int((rise.now_at - rise.low_at).total_seconds()),
        "low_backlog_bytes": rise.low_bytes,
        "rising_steps": rise.rising,
        "snapshots": rise.snapshots,
    }
    if left is not None:
        found |= {"limit_bytes": growth.row["limit_bytes"], "seconds_to_quota": round(left)}
    if growth.together is not None:
        found["topics"] = growth.together.topics
    return found


def _growth_words(growth: Growth, whose: str) -> str:
    rise = growth.rise
    return (
        f"Since {time_in_words(rise.low_at)} {whose} grown from {bytes_in_words(rise.low_bytes, rounded=True)} to"
        f" {bytes_in_words(rise.now_bytes, rounded=True)}, in {rise.rising} of {counted(rise.snapshots - 1, 'step')}"
        f" between snapshots, by {bytes_in_words(growth.rate, rounded=True)}/s at least"
    )


def _whose(together: BacklogSum) -> str:
    members = "partitions of this topic" if together.of_partitions else "topics of this namespace"
    return f"the backlogs of {together.topics:,} {members} together have"


def _of_sum(together: BacklogSum) -> str:
    return (
        f"no size quota of the namespace bounds them. Of each, what is beyond"
        f" {bytes_in_words(FLOOR_BYTES, rounded=True)} is counted; the largest is {together.largest['topic']} with"
        f" {bytes_in_words(together.largest['bytes'], rounded=True)}."
    )


def _until_quota(growth: Growth, left: float) -> str:
    row = growth.row
    return (
        f"so it reaches the size quota of {bytes_in_words(row['limit_bytes'], rounded=True)} {_ahead(growth, left)};"
        f" then{in_brackets(row['bytes_policy'])} {consequence(row['bytes_policy'])}."
    )


def _until_retention(growth: Growth) -> str:
    row, now = growth.row, growth.rise.now_bytes
    seconds = row["limit_seconds"] or 0
    age = f", only an age quota of {seconds_in_words(seconds, rounded=True)}" if seconds > 0 else ""
    words = f"no size quota is in force{age}"
    retained = (row["retention_megabytes"] or 0) * MIB
    if retained <= 0:
        return f"{words}, and no retained size to compare with."
    if retained <= now:
        return f"{words}, and it is over the {bytes_in_words(retained, rounded=True)} that are retained already."
    left = (retained - now) / growth.rate
    return (
        f"{words}; it outgrows the {bytes_in_words(retained, rounded=True)} that are retained {_ahead(growth, left)}."
    )


def _ahead(growth: Growth, seconds: float) -> str:
    """Time of an event and the time until then; no date if that is more than a century."""
    at = f"at {time_in_words(growth.rise.now_at + timedelta(seconds=seconds))}, " if seconds < _CENTURY else ""
    return f"{at}in {seconds_in_words(seconds, rounded=True)}"
