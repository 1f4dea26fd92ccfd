"""Report text about a growing backlog."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pulsar_steward.checks.backlog.culprits import slowest_words
from pulsar_steward.checks.backlog.growing_sums import FLOOR_BYTES
from pulsar_steward.checks.backlog.quota_words import consequence, delayed_words
from pulsar_steward.checks.words import duration, size, utc

if TYPE_CHECKING:
    from pulsar_steward.checks.backlog.growing_sums import Sum
    from pulsar_steward.checks.backlog.growth import Growth

_CENTURY = 36_525 * 86_400
_MIB = 1024**2


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
        f"Since {utc(rise.low_at)} {whose} grown from {size(rise.low_bytes)} to {size(rise.now_bytes)},"
        f" in {rise.rising} of {rise.snapshots - 1} steps between snapshots, by {size(growth.rate)}/s at least"
    )


def _whose(together: Sum) -> str:
    members = "partitions of this topic" if together.of_partitions else "topics of this namespace"
    return f"the backlogs of {together.topics:,} {members} together have"


def _of_sum(together: Sum) -> str:
    return (
        f"no size quota of the namespace bounds them. Of each, what is beyond {size(FLOOR_BYTES)} is counted; the"
        f" largest is {together.largest['topic']} with {size(together.largest['bytes'])}."
    )


def _until_quota(growth: Growth, left: float) -> str:
    row = growth.row
    return (
        f"so it reaches the size quota of {size(row['limit_bytes'])} {_ahead(growth, left)};"
        f" then ({row['bytes_policy'] or 'policy not read'}) {consequence(row['bytes_policy'])}."
    )


def _until_retention(growth: Growth) -> str:
    row, now = growth.row, growth.rise.now_bytes
    age = f", only an age quota of {duration(row['limit_seconds'])}" if (row["limit_seconds"] or 0) > 0 else ""
    words = f"no size quota is in force{age}"
    retained = (row["retention_megabytes"] or 0) * _MIB
    if retained <= 0:
        return f"{words}, and no retained size to compare with."
    if retained <= now:
        return f"{words}, and it is over the {size(retained)} that are retained already."
    left = (retained - now) / growth.rate
    return f"{words}; it outgrows the {size(retained)} that are retained {_ahead(growth, left)}."


def _ahead(growth: Growth, seconds: float) -> str:
    """Time of an event and the time until then; no date if that is more than a century."""
    at = f"at {utc(growth.rise.now_at + timedelta(seconds=seconds))}, " if seconds < _CENTURY else ""
    return f"{at}in {duration(seconds)}"
