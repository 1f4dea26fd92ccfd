"""Comparison of a subscription, topic or consumer with earlier snapshots: how many consecutive ones are alike."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

from pulsar_steward.checks.words import utc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.checks.check import About, Answer, Earlier, Row

MIN_EARLIER = 2
"""Earlier snapshots in which clients had just connected as well; with this one that makes three."""

Key: TypeAlias = "tuple[str, ...]"


@dataclass(frozen=True)
class EarlierRows:
    """Rows of a look-back, by subject.

    Attributes:
        taken_at: Time of this snapshot.
        snapshots: Earlier snapshots that were read, the newest first.
        columns: Columns that identify a row's subject.
        rows: The answer, by these columns and by the time of the snapshot.
    """

    taken_at: datetime
    snapshots: tuple[Earlier, ...]
    columns: tuple[str, ...]
    rows: Mapping[Key, Mapping[datetime, Row]]

    @classmethod
    def of(cls, answer: Answer, about: About, minutes: int, *columns: str) -> EarlierRows:
        """Groups the answer to a look-back of so many minutes."""
        since = about.taken_at - timedelta(minutes=minutes)
        rows: dict[Key, dict[datetime, Row]] = defaultdict(dict)
        for row in answer.rows:
            rows[tuple(row[name] for name in columns)][row["taken_at"]] = row
        snapshots = tuple(each for each in about.earlier if each.taken_at >= since)
        return cls(about.taken_at, snapshots, columns, rows)

    def told(self, row: Row, until: datetime | None = None) -> Iterator[tuple[datetime, Row | None]]:
        """Yields the row of each earlier snapshot about a row's subject, the newest first; None: it has none.

        A partial snapshot without a row is skipped, as the subject may not have been read.

        Args:
            row: A row of this snapshot.
            until: Later snapshots are left out.
        """
        theirs = self.rows.get(tuple(row[name] for name in self.columns), {})
        for each in self.snapshots:
            older = theirs.get(each.taken_at)
            if (older is not None or not each.partial) and (until is None or each.taken_at <= until):
                yield each.taken_at, older

    def in_a_row(self, row: Row, same: Callable[[Row, Row], bool], until: datetime | None = None) -> list[Row]:
        """Rows of the consecutive snapshots right before this one that show the same, the newest first.

        Args:
            row: A row of this snapshot.
            same: True if a row and the one before it show the same.
            until: See `told`.
        """
        found: list[Row] = []
        newer = row
        for _, older in self.told(row, until):
            if older is None or not same(newer, older):
                break
            found.append(older)
            newer = older
        return found

    def keep_on(self, rows: Sequence[Row], minutes: int) -> bool:
        """True if rows of `in_a_row` are so many, over so long, that neither one start nor one move explains them."""
        return len(rows) >= MIN_EARLIER and self.seconds_since(rows[-1]["taken_at"]) >= 60 * minutes

    def seconds_since(self, moment: datetime) -> int:
        """Seconds from then until this snapshot."""
        return int((self.taken_at - moment).total_seconds())


def each_since(rows: list[Row]) -> str:
    """Phrase for the earlier snapshots that show the same, from rows of `EarlierRows.in_a_row`."""
    since = utc(rows[-1]["taken_at"])
    return f"in the snapshot of {since}" if len(rows) == 1 else f"in each of {len(rows)} snapshots since {since}"
