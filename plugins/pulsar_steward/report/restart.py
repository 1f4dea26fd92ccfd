"""Verdict on the restart of a broker as text and as JSON: the verdict first, then each reason."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.model.units import counted, seconds_in_words, time_in_words
from pulsar_steward.planners.restarts.model import UNREACHABLE, RestartReason, State
from pulsar_steward.report.checkup.text import bullets, heading, wrapped
from pulsar_steward.report.overview import STALE_AT_LEAST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rich.text import Text

    from pulsar_steward.planners.restarts.model import RestartVerdict

ANSWERS = {State.STOP: "better not", State.UNKNOWN: "not known", State.NOTE: "may"}
"""A verdict in a word or two, as JSON has it."""

AHEAD_AT_MOST = timedelta(minutes=1)
"""Time by which a snapshot may be later than this machine's clock."""

TITLES = {
    State.STOP: "Against it",
    State.UNKNOWN: "Not told",
    State.NOTE: "What comes with it",
    State.SOON: "No reason to wait, but cure it before an upgrade",
}


def judged_at(verdict: RestartVerdict, now: datetime) -> RestartVerdict:
    """The verdict at a later time: an old snapshot tells nothing of now."""
    age = now - verdict.taken_at
    if -AHEAD_AT_MOST <= age <= STALE_AT_LEAST:
        return verdict
    apart = seconds_in_words(abs(age.total_seconds()), rounded=True)
    words = (
        f"The snapshot is {apart} old: take a new one."
        if age > STALE_AT_LEAST
        else f"The snapshot is of {apart} from now: compare the clocks."
    )
    old = RestartReason(subject="age", state=State.UNKNOWN, words=words, source="docs/restart.md")
    return msgspec.structs.replace(verdict, reasons=(old, *verdict.reasons))


def headline(verdict: RestartVerdict) -> str:
    """The verdict in a sentence."""
    against, untold = (len(verdict.of(each)) for each in (State.STOP, State.UNKNOWN))
    unknown = counted(untold, "thing is not told", "things are not told")
    if any(each.subject == UNREACHABLE for each in verdict.reasons):
        unknown = "it is down or cannot be reached"
    elif not against:
        unknown = f"nothing speaks against it, but {unknown}"
    if against:
        more = f"; {unknown}" if untold else ""
        return f"better not restart {verdict.broker} now, for {counted(against, 'reason')}{more}."
    if untold:
        return f"not known whether {verdict.broker} may be restarted: {unknown}."
    return f"{verdict.broker} may be restarted now."


def document(verdict: RestartVerdict) -> dict[str, Any]:
    """The verdict for programs."""
    told: dict[str, Any] = msgspec.to_builtins(verdict)
    return {"verdict": ANSWERS[verdict.state], **told}


def lines(verdict: RestartVerdict, width: int) -> Iterator[Text]:
    """The verdict for people, on at most so many columns."""
    style = {State.STOP: "critical", State.UNKNOWN: "unknown"}.get(verdict.state, "clear")
    yield from wrapped(f"RESULT: {headline(verdict)}", width, style=style)
    seen = f"As of {time_in_words(verdict.taken_at)}, snapshot {verdict.snapshot_id}."
    yield from wrapped(seen, width, style="quiet")
    for state, title in TITLES.items():
        if reasons := verdict.of(state):
            yield from heading(title)
            yield from bullets((f"{each.subject}: {each.words}" for each in reasons), width)
    checks = [each.subject for each in verdict.reasons if each.source.startswith("docs/checks/")]
    if checks:
        yield from heading("What to do")
        yield from bullets((f"`steward explain {each}`" for each in checks), width)
