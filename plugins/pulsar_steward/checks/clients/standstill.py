"""Duration and severity of a subscription's standstill, by its topic's statistics or by earlier snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pydantic import Field

from pulsar_steward.checks.clients.standstill_rows import AGAIN, FULL, STILL, UNACKED
from pulsar_steward.checks.earlier import APART_SECONDS, apart
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.section import Section

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.checks.check import Row
    from pulsar_steward.checks.earlier import EarlierRows


class SubscriptionStalledPolicy(Section):
    """Thresholds for subscriptions with consumers and a backlog, of which nothing is consumed."""

    minimum_due_messages: int = Field(
        1000,
        ge=1,
        description="messages that are due or held: entries times messages per entry where known, an entry being one"
        " message at least; as many fit into one client's receiver queue by default",
    )
    warning_minutes: int = Field(
        10, ge=1, description="since the last delivery or acknowledgement, where known; shorter: information"
    )
    critical_minutes: int = Field(60, ge=1, description="the same, when no pause of a healthy application explains it")
    critical_due_messages: int = Field(
        1_000_000, ge=1, description="due messages that make a standstill critical even where its age is not known"
    )
    minimum_held_messages: int = Field(
        100,
        ge=1,
        description="unacknowledged messages of one consumer that is stuck while others are not; with a smaller"
        " receiver queue one that is slow looks the same",
    )
    warning_stuck_percent: int = Field(
        50, ge=1, le=100, description="consumers of a subscription that are stuck; fewer: information for longer"
    )


@dataclass(frozen=True)
class Standstill:
    """A subscription that may stand still.

    Attributes:
        row: Its row of this snapshot.
        limits: The limits in force for it.
        recent_minutes: Minutes for which a consumer counts as just connected.
        before: Rows of earlier snapshots.
    """

    row: Row
    limits: SubscriptionStalledPolicy
    recent_minutes: int
    before: EarlierRows

    @property
    def many_entries(self) -> bool:
        """True if it has enough messages even if no entry were a batch."""
        return bool(self.row["due_entries"] >= self.limits.minimum_due_messages)

    @property
    def many(self) -> bool:
        """True if it has enough messages, as far as the size of batches is known."""
        return bool(self.row["messages"] >= self.limits.minimum_due_messages)

    @cached_property
    def alike(self) -> list[Row]:
        """Consecutive earlier snapshots with the same kind of standstill, the newest first."""
        if self._consumed_lately:
            return []
        return self.before.in_a_row(self.row, _SAME[self.row["kind"]])

    @cached_property
    def returns(self) -> list[Row]:
        """Consecutive earlier snapshots, after each of which all consumers were new and nothing was acknowledged."""
        if self._consumed_lately:
            return []
        found: list[Row] = []
        newer = later = self.row
        later_at = self.before.taken_at
        for at, older in self.before.told(self.row):
            if older is None or not _rests(older, "ack_rate") or _fell(newer, older):
                break
            if older["consumers"] > 0 and _came_anew(later, older):
                found.append(older)
                later, later_at = older, at
            elif older["consumers"] > 0 and apart(later_at, at):
                break  # closer together, two looks show the same consumers, however often these come and go
            newer = older
        return found

    @property
    def _consumed_lately(self) -> bool:
        """True if the backlog grew by less than was published since the last snapshot of another minute.

        Then something was consumed. Without this, a consumer that runs every quarter of an hour, as snapshots do, would
        always be seen with as much to do.
        """
        at, older = next(self.before.told(self.row, apart_seconds=APART_SECONDS), (None, None))
        rate, size = self.row["message_rate_in"] or 0, self.row["messages_per_entry"]
        if at is None or older is None or size is None or (self.row["expired_rate"] or 0) > 0:
            return False
        published = rate * self.before.seconds_since(at) / size
        return bool(2 * (self.row["backlog_entries"] - (older["backlog_entries"] or 0)) < published)

    @cached_property
    def since_seconds(self) -> int | None:
        """Minimum duration of the standstill: 0 if it moved in a snapshot a short while ago; None: not known."""
        if self.row["since_seconds"] is not None:
            return int(self.row["since_seconds"])
        if self.alike:
            return self.before.lasted_seconds(self.alike)
        return 0 if self.before.looked_within(self.row, 2 * self.limits.warning_minutes) else None

    @cached_property
    def severity(self) -> Severity | None:
        """Severity; None: nothing to report, or not yet."""
        if self.row["fresh"] or self.comes_back:
            return self._of_returns()
        if self.row["kind"] == FULL:
            return Severity.INFO
        if self.row["kind"] == AGAIN:
            return self._of_the_same_again()
        if self.row["kind"] == UNACKED:
            return self._of_unacknowledged()
        return self._of_still() if self.many else self._of_few()

    @property
    def comes_back(self) -> bool:
        """True if its consumers come and go, and none acknowledges anything in between."""
        if self.row["kind"] == FULL:
            return False
        return self.before.keep_on(self.returns, max(self.limits.warning_minutes, 2 * self.recent_minutes))

    def _of_returns(self) -> Severity | None:
        if self.comes_back:
            long = self.before.lasted_seconds(self.returns) >= 60 * self.limits.critical_minutes
            if self.many:
                return Severity.CRITICAL if long else Severity.WARNING
            if long:
                return Severity.WARNING
        return Severity.INFO if self.many_entries else None

    def _of_the_same_again(self) -> Severity | None:
        since = self.since_seconds
        if since is None:
            return Severity.INFO
        if since >= 60 * (self.limits.warning_minutes if self.many else self.limits.critical_minutes):
            return Severity.WARNING
        return Severity.INFO if self.many_entries or since >= 60 * self.limits.warning_minutes else None

    def _of_unacknowledged(self) -> Severity | None:
        """Severity without acknowledgements; batches take time, so for them nothing before `critical_minutes`."""
        since, told = self.since_seconds, self.row["since_seconds"] is not None
        if not self.many:
            return None
        if since is not None and since >= 60 * self.limits.critical_minutes:
            return Severity.CRITICAL if told else Severity.WARNING
        if not self.many_entries:
            return None
        return Severity.WARNING if told and (since or 0) >= 60 * self.limits.warning_minutes else Severity.INFO

    def _of_still(self) -> Severity | None:
        since = self.since_seconds
        huge = self.row["delayed_known"] and self.row["messages"] >= self.limits.critical_due_messages
        if since is None:
            if not self.many_entries:
                return Severity.INFO
            return Severity.CRITICAL if huge else Severity.WARNING
        if since >= 60 * self.limits.critical_minutes:
            return Severity.CRITICAL
        if since >= 60 * self.limits.warning_minutes:
            return Severity.CRITICAL if huge else Severity.WARNING
        return Severity.INFO if self.many_entries else None

    def _of_few(self) -> Severity | None:
        """Severity with few messages: a slow consumer with a small receiver queue looks the same for long."""
        since = self.since_seconds
        if since is None or since < 60 * self.limits.critical_minutes:
            return None
        return Severity.WARNING if self.row["all_stuck"] else Severity.INFO


def _fell(newer: Row, older: Row) -> bool:
    """True if something was consumed between two snapshots: the backlog shrank, and nothing expired."""
    expired = any((each["expired_rate"] or 0) > 0 for each in (newer, older))
    return not expired and (newer["backlog_entries"] or 0) < (older["backlog_entries"] or 0)


def _rests(row: Row, rate: str) -> bool:
    return row[rate] is not None and row[rate] <= 0


def _unacknowledged(newer: Row, older: Row) -> bool:
    return older["consumers"] > 0 and _rests(older, "ack_rate") and not _fell(newer, older)


def _still(newer: Row, older: Row) -> bool:
    return _unacknowledged(newer, older) and _rests(older, "message_rate_out")


def _again(newer: Row, older: Row) -> bool:
    return _unacknowledged(newer, older) and (older["redeliver_rate"] or 0) > 0


def _full(newer: Row, older: Row) -> bool:
    return older["consumers"] > 0 and _rests(older, "message_rate_out") and not _fell(newer, older)


def _came_anew(newer: Row, older: Row) -> bool:
    """True if each consumer of the newer snapshot connected after each of the older one, or all had just connected."""
    if newer["all_named"] and older["all_named"]:
        return bool(newer["first_connected"] > older["last_connected"])
    return bool(newer["fresh"] and older["fresh"])


_SAME: dict[str, Callable[[Row, Row], bool]] = {STILL: _still, FULL: _full, UNACKED: _unacknowledged, AGAIN: _again}
