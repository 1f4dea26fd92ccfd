"""What earlier snapshots add to one: how counters since a process's start grew, and what a minute's rates were.

Of a month, a stall of a minute is nothing, and one that was long ago is in the counters for ever: what they grew by is
looked at. A rate of the last minute may be of a hiccup: what two snapshots in a row show is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.checks.check import LookBack

if TYPE_CHECKING:
    from collections.abc import Sequence

WINDOW_MINUTES = 120
WINDOW = "how old an earlier snapshot may be to be compared with"
"""The default of `window_minutes` of checks that look back, and what it means."""

APART_SECONDS = 120
"""Snapshots that are nearer together may tell of the same minute."""

PERIOD = "managedLedgerStatsPeriodSeconds"
"""The setting for how many seconds the rates of ledgers are of; 60 by default."""


def looking_back(sql: str, *, small: bool = False) -> LookBack:
    """A question about the earlier snapshots of a check's own window."""
    return LookBack(_window, sql, small=small)


def _window(limits: Any) -> int:
    return int(limits.window_minutes)


LOOKS = looking_back("select true as looked", small=True)
"""One row for each earlier snapshot, as the question `looks`: what it says nothing of, it says nothing of."""

PREVIOUS = f"""
select max(taken_at) as taken_at from looks
where epoch(taken_at) <= $now - {APART_SECONDS}
    - coalesce((select max(try_cast(trim(value) as double)) from setting('{PERIOD}')) - 60, 0)
"""
"""When the newest of `LOOKS` was taken that tells of another minute."""


def of_sources(answer: str) -> str:
    """The samples of an earlier shard, of the sources that this snapshot's answer names."""
    return f"(select * from metrics semi join (select source from {answer}) using (source))"


def in_time(now: str, before: str) -> str:
    """The rows of this snapshot and of earlier ones, each with `moment`, the seconds since the epoch that it is of.

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
    """A select of rows, each with what its counters grew by.

    Each is compared with the newest earlier row of the same process that is far enough back: `since` is its time and
    ``grown_...`` the differences. Where there is none, as its counters began anew since, `since` is null and the
    differences are since the process's start. `seconds` is how long that was; null where nobody knows.

    Args:
        rows: A table with `started`, which tells a process from the next one, and `moment`, seconds since the epoch.
        keys: The columns that say what a row is of; none is ever null.
        counters: The columns that only grow while the process lives; null where they are not told.
        apart_seconds: How far is far enough.
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
