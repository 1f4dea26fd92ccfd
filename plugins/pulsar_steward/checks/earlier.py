"""Comparison with earlier snapshots: which of them count, the growth since, and how many in a row show the same.

A stall of a minute is nothing in the total of a month, and an old stall stays in the counters for ever: so the growth
of counters is judged. A rate of the last minute may come from a hiccup; a rate in two consecutive snapshots does not.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from pulsar_steward.checks.check import LookBack
from pulsar_steward.model.section import Section, number
from pulsar_steward.model.units import counted, seconds_in_words, time_in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.checks.check import AboutSnapshot, CheckContext, Earlier, QueryRows, Row

WINDOW_MINUTES = 120
WINDOW = "how old an earlier snapshot may be to be compared with"
"""Default of `window_minutes` of checks that look back, and its description."""

APART_SECONDS = 120
"""Minimum interval in seconds: snapshots closer together may report the same minute."""

PERIOD = "managedLedgerStatsPeriodSeconds"
"""Setting for the period of ledger rates, in seconds; 60 by default."""

MIN_EARLIER = 2
"""Minimum number of earlier snapshots with just connected clients; with this one that makes three."""


class ComparingPolicy(Section):
    """Thresholds of a check that compares with earlier snapshots."""

    window_minutes: int = number(WINDOW_MINUTES, WINDOW)


def window_minutes(limits: Any) -> int:
    """Window of a check with a limit of this name."""
    return int(limits.window_minutes)


def since_words(row: Row) -> str:
    """Begin of the time that a row's growth (`growth`) is of, after the word since."""
    if row["since"] is None:
        return "its start"
    return f"the snapshot {seconds_in_words(row['seconds'], rounded=True)} before"


def wider(minutes: int) -> int:
    """Window for a limit of so many minutes; half as long again, as snapshots are not taken on the minute."""
    return minutes * 3 // 2


def looking_back(sql: str, *, small: bool = False) -> LookBack:
    """A query of the earlier snapshots within a check's `window_minutes`."""
    return LookBack(window_minutes, sql, small=small)


LOOKS = looking_back("select true as looked", small=True)
"""One row for each earlier snapshot, for the query `looks`: shows which snapshots were read at all."""

_PREVIOUS = f"""
    select max(taken_at) as taken_at from looks
    where epoch(taken_at) <= $now - {APART_SECONDS}
        - coalesce((select max(try_cast(trim(value) as double)) from setting('{PERIOD}')) - 60, 0)
"""


def of_previous(selected: str) -> str:
    """SQL for the rows of a look-back in the previous snapshot: the newest of `LOOKS` of another minute."""
    return f"(from {selected} semi join ({_PREVIOUS}) using (taken_at))"


def of_sources(selected: str) -> str:
    """SQL for samples of an earlier shard, of the sources in a result of this snapshot."""
    return f"(select * from metrics semi join (select source from {selected}) using (source))"


def in_time(now: str, before: str) -> str:
    """SQL for the rows of this and of earlier snapshots; their `moment` is the time in seconds since the epoch.

    Args:
        now: Name of the result for this snapshot.
        before: Name of the result for earlier snapshots.
    """
    return f"""
    select *, $now::double as moment from {now}
    union all by name
    select * exclude (taken_at), epoch(taken_at) as moment from {before}
    """


def growth(rows: str, keys: Sequence[str], counters: Sequence[str], apart_seconds: int = APART_SECONDS) -> str:
    """SQL for rows with the growth of their counters.

    Each row is compared with the newest earlier row of the same process that is old enough: `since` is its time and
    ``grown_...`` the differences. If there is no such row (its counters were reset since), `since` is null and the
    differences count from the process's start. `seconds` is the length of the interval; null if unknown.

    Args:
        rows: A table with `started`, which identifies a process, and `moment`, seconds since the epoch.
        keys: The columns that identify a row's subject; never null.
        counters: The columns that only grow while the process lives; null if not reported.
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


def apart(newer: datetime, older: datetime, seconds: int = APART_SECONDS) -> bool:
    """True if two snapshots are so many seconds apart; by default, enough to surely report different minutes."""
    return (newer - older).total_seconds() >= seconds


def within(about: AboutSnapshot, minutes: int) -> tuple[Earlier, ...]:
    """Earlier snapshots taken at most so many minutes before this one, the newest first."""
    since = about.taken_at - timedelta(minutes=minutes)
    return tuple(each for each in about.earlier if each.taken_at >= since)


def by_time(rows: Iterable[Row]) -> dict[datetime, list[Row]]:
    """Groups rows of a look-back by the time of their snapshot."""
    found: dict[datetime, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["taken_at"]].append(row)
    return found


def too_few(found: int, needed: int, minutes: int, besides: str = "") -> str:
    """Reason why so few snapshots (this one included) prove nothing; `besides` is a further condition on them."""
    there = "there is 1" if found == 1 else f"there are {found}"
    return (
        f"Needs at least {counted(needed, 'snapshot')} within {counted(minutes, 'minute')}, this one"
        f" included{besides}; {there}."
    )


Key: TypeAlias = "tuple[str, ...]"


@dataclass(frozen=True)
class EarlierRows:
    """Rows of a look-back, by subject.

    Attributes:
        taken_at: Time of this snapshot.
        snapshots: Earlier snapshots that were read, the newest first.
        columns: Columns that identify a row's subject.
        rows: The result, by these columns and by the time of the snapshot.
    """

    taken_at: datetime
    snapshots: tuple[Earlier, ...]
    columns: tuple[str, ...]
    rows: Mapping[Key, Mapping[datetime, Row]]

    @classmethod
    def of(
        cls, selected: QueryRows, context: CheckContext[Any], minutes: Callable[[Any], int], *columns: str
    ) -> EarlierRows:
        """Groups the rows of a `LookBack` with these minutes."""
        rows: dict[Key, dict[datetime, Row]] = defaultdict(dict)
        for row in selected.rows:
            rows[tuple(row[name] for name in columns)][row["taken_at"]] = row
        return cls(context.about.taken_at, within(context.about, context.longest(minutes)), columns, rows)

    def told(
        self, row: Row, until: datetime | None = None, *, apart_seconds: int = 0
    ) -> Iterator[tuple[datetime, Row | None]]:
        """Yields, for each earlier snapshot, its row about the same subject, the newest first; None: it has none.

        A partial snapshot without a row is skipped, as the subject may not have been read.

        Args:
            row: A row of this snapshot.
            until: Later snapshots are left out.
            apart_seconds: Minimum interval to the next snapshot; a closer one is left out, as both may report the same
                minute, and no rate follows from them.
        """
        theirs = self.rows.get(tuple(row[name] for name in self.columns), {})
        newer = self.taken_at
        for each in self.snapshots:
            if (until is not None and each.taken_at > until) or not apart(newer, each.taken_at, apart_seconds):
                continue
            older = theirs.get(each.taken_at)
            if older is not None or not each.partial:
                newer = each.taken_at
                yield each.taken_at, older

    def in_a_row(
        self, row: Row, same: Callable[[Row, Row], bool], until: datetime | None = None, *, apart_seconds: int = 0
    ) -> list[Row]:
        """Rows of the consecutive snapshots right before this one that show the same, the newest first.

        Args:
            row: A row of this snapshot.
            same: True if a row and the one before it show the same.
            until: See `told`.
            apart_seconds: See `told`.
        """
        found: list[Row] = []
        newer = row
        for _, older in self.told(row, until, apart_seconds=apart_seconds):
            if older is None or not same(newer, older):
                break
            found.append(older)
            newer = older
        return found

    def looked_within(self, row: Row, minutes: int) -> bool:
        """True if a snapshot of the last so many minutes covers the row's subject, even without a row."""
        at, _ = next(self.told(row), (None, None))
        return at is not None and at >= self.ago(minutes)

    def keep_on(self, rows: Sequence[Row], minutes: int) -> bool:
        """True if rows of `in_a_row` are too many, over too long, to be explained by a single start or move."""
        return len(rows) >= MIN_EARLIER and self.lasted_seconds(rows) >= 60 * minutes

    def lasted_seconds(self, rows: Sequence[Row]) -> int:
        """Seconds from the oldest of the rows of `in_a_row` (at least one) until this snapshot."""
        return self.seconds_since(rows[-1]["taken_at"])

    def seconds_since(self, moment: datetime) -> int:
        """Seconds from then until this snapshot."""
        return int((self.taken_at - moment).total_seconds())

    def ago(self, minutes: int) -> datetime:
        """Time so many minutes before this snapshot."""
        return self.taken_at - timedelta(minutes=minutes)


def rests(row: Row, rate: str) -> bool:
    """True if a rate is known to be 0; False if it is unknown, as of a broker that reports NaN."""
    return row[rate] is not None and row[rate] <= 0


def may_expire(row: Row) -> bool:
    """True if messages expire, or their rate is unknown: then a smaller backlog is no sign of consumption."""
    return not rests(row, "expired_rate")


def each_since(rows: Sequence[Row]) -> str:
    """Phrase for the earlier snapshots that show the same, from rows of `EarlierRows.in_a_row`."""
    since = time_in_words(rows[-1]["taken_at"])
    return f"in the snapshot of {since}" if len(rows) == 1 else f"in each of {len(rows):,} snapshots since {since}"
