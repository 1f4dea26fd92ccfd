"""Beginning and duration of an approved batch: by the maintenance windows and by the pace."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pulsar_steward.checks.delayed.failover import LostLoad, RemainingBrokers, estimated
from pulsar_steward.guard.window_times import closing, next_opening, windows_for
from pulsar_steward.model.step import UnloadBundle
from pulsar_steward.model.units import counted, seconds_in_words, time_in_words
from pulsar_steward.policy.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from pulsar_steward.ledger.moves import MoveTimes
    from pulsar_steward.model.learned import Learned
    from pulsar_steward.model.plan import Batch
    from pulsar_steward.policy.schema import Policy


def least_time(batch: Batch, policy: Policy) -> timedelta:
    """Shortest time that a batch takes, by the policy's pace alone; each step's proof comes on top."""
    pace = Pace(changes=policy.apply.bundle_moves_per_minute, clients=policy.apply.reconnecting_clients_per_minute)
    return pace.least([step.touched.clients for step in batch.steps])


def when(
    batch: Batch,
    policy: Policy,
    valid_minutes: int,
    now: datetime,
    learned: Learned | None = None,
    moved: MoveTimes | None = None,
) -> Iterator[str]:
    """Sentences on when a batch would begin, were it approved now, and when it would end.

    Args:
        batch: The batch.
        policy: The policy, with its windows and its pace.
        valid_minutes: Time for which an approval counts.
        now: Current time.
        learned: How quickly topics were served again, as of the batch's plan.
        moved: How long earlier moves in the cluster took.
    """
    windows, takes = windows_for(batch, policy), least_time(batch, policy)
    opens, begins = next_opening(windows, now), now
    if opens is None:
        closes = closing(windows, now)
        until = f": a maintenance window is open until {time_in_words(closes)}" if closes else ""
        yield f"It begins when you approve it{until}."
    elif opens <= now + timedelta(minutes=policy.approval.wait_for_window_minutes):
        begins, closes = opens, closing(windows, opens)
        yield (
            "No maintenance window is open (guards.windows). Once approved, it waits for the one that opens at"
            f" {time_in_words(opens)}; everything is looked at again then, and the {valid_minutes:,} min that your"
            " approval counts begin there."
        )
    else:
        yield (
            f"No maintenance window is open, and the next one opens at {time_in_words(opens)}: later than"
            " approval.wait_for_window_minutes lets it wait, so that an approval given now would be refused."
        )
        return
    yield _takes(takes, begins, closes, begins + timedelta(minutes=valid_minutes))
    yield from _as_before(batch, moved)
    yield from gone_for(batch, policy, learned)


def _takes(takes: timedelta, begins: datetime, closes: datetime | None, counts_until: datetime) -> str:
    if not takes:
        return "The pace does not hold it up: how long it takes is how long the brokers take to show each step."
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


def _as_before(batch: Batch, moved: MoveTimes | None) -> Iterator[str]:
    """Sentence on how long the batch's moves take, if they take as long as earlier ones did."""
    moves = sum(isinstance(step.change, UnloadBundle) for step in batch.steps)
    if moved is None or not moves:
        return
    in_all = seconds_in_words(moves * moved.middle, rounded=True)
    yield (
        f"By the ledger, the newest {counted(moved.moves, 'move')} in this cluster"
        f" ({counted(moved.days, 'day')} at most) took {moved.middle:,.1f} s in the middle, and nine in ten of them"
        f" {moved.nine_in_ten:,.1f} s at most, from the call until the new owner was seen; at that, the"
        f" {counted(moves, 'move')} of this batch take about {in_all}, the pace's waits apart."
    )


def gone_for(batch: Batch, policy: Policy, learned: Learned | None = None) -> Iterator[str]:
    """Sentence on how long moved topics are gone, by the formula and the rates of the check `failover-time`.

    A move is the orderly end of one bundle at its owner: nobody waits for a session, and one broker takes it over.
    """
    moved = [step.touched.topics for step in batch.steps if isinstance(step.change, UnloadBundle)]
    if not any(moved):
        return
    most = max(moved)
    load = LostLoad(lost="", bundles=1, topics=most, delayed=0, most_delayed=0)
    estimate = estimated(load, RemainingBrokers(1), 0.0, policy.failover_time, learned)
    rates = "the rates of the policy's section failover_time"
    if estimate.learned:
        lost, at = estimate.learned.lost, time_in_words(estimate.learned.at)
        rates = f"what was seen when {lost} went away, {at}"
    gone = seconds_in_words(estimate.seconds, rounded=True)
    yield (
        f"It moves {counted(sum(moved), 'topic')}, one bundle after the other; those of the fullest,"
        f" {counted(most, 'topic')}, are gone for about {gone}, an estimate by {rates}, without delayed messages"
        " that are read again."
    )
