"""Begin and duration of an approved batch, by the maintenance windows and the pace."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from pulsar_steward.checks.delayed.failover_time import LostLoad, RemainingBrokers, estimated
from pulsar_steward.guards.window_times import closing, good_until, next_opening, windows_for
from pulsar_steward.model.step import UnloadBundle
from pulsar_steward.model.units import counted, seconds_in_words, time_in_words
from pulsar_steward.policy.recorded import Pace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from pulsar_steward.ledger.past import MoveTimes
    from pulsar_steward.model.plan import Batch
    from pulsar_steward.policy.approval import Terms
    from pulsar_steward.policy.schema import Policy


def least_time(batch: Batch, policy: Policy) -> timedelta:
    """Minimum duration of a batch by the policy's pace alone; the proof of each step is additional."""
    pace = Pace(changes=policy.apply.bundle_moves_per_minute, clients=policy.apply.reconnecting_clients_per_minute)
    return pace.least([step.touched.clients for step in batch.steps])


class Begin(NamedTuple):
    """Begin of a batch that is approved now.

    Attributes:
        at: Now, or the next opening of a maintenance window.
        approve_from: Earliest time at which an approval lasts until then; None: one that is given now does.
    """

    at: datetime
    approve_from: datetime | None = None

    def in_brief(self, now: datetime) -> str:
        """Sentence on maintenance windows that defer or prevent it; empty: none does."""
        at = time_in_words(self.at)
        if self.approve_from is not None:
            return f"Approve after {time_in_words(self.approve_from)}, not now: the maintenance window opens {at}."
        return f"Begins when the maintenance window opens, {at}." if self.at > now else ""


def begin_of(batch: Batch, policy: Policy, terms: Terms, now: datetime) -> Begin:
    """Begin of a batch if it were approved now."""
    opens, waits, most = (
        next_opening(windows_for(batch, policy), now),
        timedelta(minutes=policy.approval.wait_for_window_minutes),
        None if terms.most_minutes is None else timedelta(minutes=terms.most_minutes),
    )
    if opens is None:
        return Begin(now)
    if opens <= now + waits and (most is None or opens < now + most):
        return Begin(opens)
    return Begin(opens, opens - (waits if most is None else min(most, waits)))


def when(batch: Batch, policy: Policy, terms: Terms, now: datetime, moved: MoveTimes | None = None) -> Iterator[str]:
    """Sentences on the begin and end of a batch if it were approved now."""
    windows, takes = windows_for(batch, policy), least_time(batch, policy)
    begin = begin_of(batch, policy, terms, now)
    most = terms.most_minutes
    if begin.approve_from is not None:
        reason = (
            f"approval.wait_for_window_minutes lets an approval wait {policy.approval.wait_for_window_minutes:,} min"
        )
        if most is not None and begin.at >= now + timedelta(minutes=most):
            reason = f"at this risk an approval counts {counted(most // 60, 'hour')} from your answer at most"
        yield f"{begin.in_brief(now)} An approval given now would be refused: {reason}."
        return
    closes = closing(windows, begin.at)
    if begin.at == now:
        until = f": a maintenance window is open until {time_in_words(closes)}" if closes else ""
        yield f"It begins when you approve it{until}."
    else:
        bounded = f", and end {counted(most // 60, 'hour')} after your answer at the latest" if most is not None else ""
        yield (
            f"{begin.in_brief(now)} Everything is looked at again then, and the {terms.valid_minutes:,} min that your"
            f" approval counts begin there{bounded}."
        )
    counts_until = good_until(now, terms.valid_minutes, policy.approval.wait_for_window_minutes, windows, most)
    yield _takes(takes, begin.at, closes, counts_until)
    moves = sum(isinstance(step.change, UnloadBundle) for step in batch.steps)
    if moved is not None and moves:  # if they take as long as earlier ones
        in_all = seconds_in_words(moves * moved.middle, rounded=True)
        yield (
            f"By the ledger, the newest {counted(moved.moves, 'move')} in this cluster"
            f" ({counted(moved.days, 'day')} at most) took {moved.middle:,.1f} s in the middle, and nine in ten of"
            f" them {moved.nine_in_ten:,.1f} s at most, from the call until the new owner was seen; at that, the"
            f" {counted(moves, 'move')} of this batch take about {in_all}, the pace's waits apart."
        )
    yield from gone_for(batch, policy)


def _takes(takes: timedelta, begins: datetime, closes: datetime | None, counts_until: datetime) -> str:
    if not takes:
        return "No rate limit applies: it takes as long as brokers need to show each step."
    ends = begins + takes
    words = f"By the pace it takes {seconds_in_words(takes.total_seconds(), rounded=True)} at least"
    words += f", so it ends at {time_in_words(ends)} at the earliest"
    if closes is not None and ends > closes:
        return f"{words}, which is after the window has closed: what is left by then is refused."
    if ends > counts_until:
        return (
            f"{words}, and your approval counts until {time_in_words(counts_until)}: what is left by then is refused."
        )
    return f"{words}."


def gone_for(batch: Batch, policy: Policy) -> Iterator[str]:
    """Sentence on the time without service for moved topics."""
    seconds = seconds_without_service(batch, policy)
    if seconds is None:
        return
    moved = _moved(batch)
    yield (
        f"It moves {counted(sum(moved), 'topic')}, one bundle after the other; those of the fullest,"
        f" {counted(max(moved), 'topic')}, are gone for about {seconds_in_words(seconds, rounded=True)}, an estimate by"
        " the rates of the policy's section failover_time, without delayed messages that are read again."
    )


def seconds_without_service(batch: Batch, policy: Policy) -> float | None:
    """Time in seconds for which the topics of the fullest moved bundle are not served; None: none is moved.

    By the formula and rates of the check `failover-time`. In a move, one bundle ends orderly at its owner: there is no
    wait for a session, and one broker takes it over.
    """
    moved = _moved(batch)
    if not any(moved):
        return None
    load = LostLoad(lost="", bundles=1, topics=max(moved), delayed=0, most_delayed=0)
    return estimated(load, RemainingBrokers(1), 0.0, policy.failover_time).seconds


def _moved(batch: Batch) -> list[int]:
    """Topics of each bundle that is moved."""
    return [step.touched.topics for step in batch.steps if isinstance(step.change, UnloadBundle)]
