"""Growth of counters since earlier snapshots, and comparison of rates of two minutes.

A stall of a minute is nothing in the total of a month, and an old one stays in the counters for ever: so their growth
is judged. A rate of the last minute may be of a hiccup: one that two consecutive snapshots show is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.checks.check import LookBack

if TYPE_CHECKING:
    from collections.abc import Sequence

WINDOW_MINUTES = 120
WINDOW = "how old an earlier snapshot may be to be compared with"
"""Default of `window_minutes` of checks that look back, and its description."""

APART_SECONDS = 120
"""Minimum interval: snapshots closer together may report the same minute."""

PERIOD = "managedLedgerStatsPeriodSeconds"
"""Setting for the period of ledgers' rates in seconds; 60 by default."""


def looking_back(sql: str, *, small: bool = False) -> LookBack:
    """A question about the earlier snapshots of a check's own window."""
    return LookBack(_window, sql, small=small)


def _window(limits: Any) -> int:
    return int(limits.window_minutes)


LOOKS = looking_back("select true as looked", small=True)
"""One row for each earlier snapshot, for the question `looks`: shows which ones were read at all."""

PREVIOUS = f"""
select max(taken_at) as taken_at from looks
where epoch(taken_at) <= $now - {APART_SECONDS}
    - coalesce((select max(try_cast(trim(value) as double)) from setting('{PERIOD}')) - 60, 0)
"""
"""Time of the newest snapshot of `LOOKS` that reports another minute."""


def of_sources(answer: str) -> str:
    """SQL for samples of an earlier shard, of the sources in an answer of this snapshot."""
    return f"(select * from metrics semi join (select source from {answer}) using (source))"


def in_time(now: str, before: str) -> str:
    """SQL for the rows of this snapshot and of earlier ones, each with `moment`, its time in seconds since the epoch.

    Args:
        now: The answers of this snapshot.
        before: Those of earlier ones.
    """
    return f"""
    select *, $now::double as moment from {now}
    union all by name
    select * exclude (taken_at), epoch(taken_at) as moment from {before}
    """


def growth(rows: str, keys: Sequence[str], counters: Sequence[str], apart_seconds: int = APART_SECONDS) -> str:
    """SQL for rows with the growth of their counters.

    Each row is compared with the newest earlier row of the same process that is old enough: `since` is its time and
    ``grown_...`` the differences. If there is none, as its counters were reset since, `since` is null and the
    differences are since the process's start. `seconds` is the length of the interval; null if it is not known.

    Args:
        rows: A table with `started`, which identifies a process, and `moment`, seconds since the epoch.
        keys: The columns that identify a row's subject; none is ever null.
        counters: The columns that only grow while the process lives; null where they are not reported.
        apart_seconds: Minimum interval.
    """
    same = " and ".join(f"now.{key} = older.{key}" for key in keys)
    no_less = " and ".join(f"coalesce(older.{name} <= now.{name}, true)" for name in counters)
    grown = ", ".join(f"now.{name} - coalesce(older.{name}, 0) as grown_{name}" for name in counters)
    parts = ", ".join(f"now.{key}" for key in keys)
    return f"""
    select now.*, older.moment as since, now.moment - coalesce(older.moment, now.started) as seconds, {grown}
    from {rows} now left join {rows} older
        on {same} and older.started = now.started and older.moment <= now.moment - {apart_seconds} and {no_less}
    qualify row_number() over (partition by {parts}, now.moment order by older.moment desc nulls last) = 1
    """
