"""Planner of namespaces' persistence: how often cursors are written, and over how many bookies new ledgers are spread.

Both are off by default: no figure shows how many messages consumers can bear to get again, nor why somebody asked for
more bookies (docs/remediations/persistence.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.clients.cursors import ACK_STATE_OFTEN, ACK_STATE_SELDOM
from pulsar_steward.checks.resources.bookies import ENSEMBLE_TOO_LARGE
from pulsar_steward.model.setting import Persistence, SettingName, writes_in_words
from pulsar_steward.model.units import bytes_in_words, counted, seconds_in_words
from pulsar_steward.planners.base import Planner, Proposal
from pulsar_steward.planners.settings.namespaces import PARTIAL, PERSISTENCE_KIND, batches_of, facts_by_name, obstacle
from pulsar_steward.planners.settings.targets import TargetSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.policy.remedies import PersistenceRemedy

Decided = tuple[Persistence, str] | str | None
"""The policy with one part changed, and the reason; or why it is not changed; None: no finding is about that part."""


def propose(planning: PlanningFacts, goal: str, findings: tuple[Finding, ...]) -> Proposal:
    """A batch of one step for a namespace, the goal, as Pulsar keeps all of it in one policy."""
    fact, remedy = facts_by_name(planning)[goal], planning.policy.persistence_remedy
    now = {**planning.defaults, **fact.own}
    value = now.get(SettingName.PERSISTENCE)
    if not isinstance(value, Persistence):
        return Proposal(notes=(_not_proposed(goal, "brokers do not tell which E, Qw, Qa and rate apply"),))
    why, notes = list[str](), list[str]()
    found = {finding.check_id: finding for finding in findings}
    for decide in (_rate, _ensemble):
        match decide(value, found, remedy):
            case str() as reason:
                notes.append(_not_proposed(goal, reason))
            case (changed, reason):
                value = changed
                why.append(reason)
    if not why:
        return Proposal(notes=tuple(notes))
    target = TargetSettings(now)
    target.put(SettingName.PERSISTENCE, value, "; ".join(why))
    made = batches_of(planning, fact, target, findings)
    return Proposal(batches=made.batches, notes=(*notes, *made.notes))


def _not_proposed(goal: str, reason: str) -> str:
    return f"{goal}: no other persistence is proposed, as {reason}."


def _rate(now: Persistence, found: Mapping[str, Finding], remedy: PersistenceRemedy) -> Decided:
    """The rate of writing cursors: raised to what brokers do by default, or lowered."""
    seldom, often = found.get(ACK_STATE_SELDOM.check_id), found.get(ACK_STATE_OFTEN.check_id)
    if seldom is None and often is None:
        return None
    if not remedy.propose_rate:
        return "the policy says so of how often cursors are written (policy key persistence_remedy.propose_rate)"
    if now.writes_per_second < 0 or (seldom is not None and often is not None):
        both = "its cursors are written too often for bookies, and too seldom for consumers"
        below = "a rate below 0 is no limit on some versions, and the brokers' default on others"
        return f"{below if now.writes_per_second < 0 else both}: decide by hand"
    words = f"its cursors are written {writes_in_words(now.writes_per_second)}"
    seconds = remedy.seldom_seconds if seldom is not None else remedy.often_seconds
    limited = now.writes_per_second > 0
    if seldom is None and limited and now.writes_per_second <= 1 / seconds:
        return f"{words} already: it needs fewer cursors, or fewer ack holes"
    if seldom is not None and not (limited and now.writes_per_second < 1 / seconds):
        return f"{words} already, and once in {seconds_in_words(seconds)} would be no oftener (seldom_seconds)"
    if seldom is not None:
        again = counted(seldom.figures.get("messages", 0), "message")
        words += f", so that up to {again} come again where its brokers die"
    elif often is not None:
        words += (
            f"{_written(often)}. Where a broker dies, what was acknowledged in the last {seconds_in_words(seconds)}"
            " comes again"
        )
    return msgspec.structs.replace(now, rate=repr(1 / seconds)), words


def _written(often: Finding) -> str:
    """What is written of cursors, as far as it is known."""
    writes, states = (often.figures.get(name) for name in ("cursor_writes_per_second", "state_bytes_per_second"))
    percent = often.figures.get("percent")
    words = (
        ""
        if writes is None or percent is None
        else (f" at most, {counted(writes, 'time')} a second in all: {percent} % of what is written to bookies")
    )
    if not states:
        return words
    return f"{words}; large ack states are written whole each time, about {bytes_in_words(states)} a second"


def _ensemble(now: Persistence, found: Mapping[str, Finding], remedy: PersistenceRemedy) -> Decided:
    """E lowered to Qw, which keeps as many copies of each entry."""
    finding = found.get(ENSEMBLE_TOO_LARGE.check_id)
    if finding is None:
        return None
    if not remedy.propose_ensemble:
        return "the policy says so of how many bookies ledgers take (policy key persistence_remedy.propose_ensemble)"
    bookies = finding.figures.get("bookies", 0)
    if now.write_quorum > bookies:
        return f"Qw is {now.write_quorum}, and there are {counted(bookies, 'bookie')}: fewer copies are for people"
    words = (
        f"new ledgers need {now.ensemble} bookies, and there are {bookies}: on {now.write_quorum} each entry has as"
        " many copies as before, and a ledger has no more bookies than copies"
    )
    return msgspec.structs.replace(now, ensemble=now.write_quorum), words


PERSISTENCE = Planner(
    kinds=(PERSISTENCE_KIND,),
    answers=frozenset(check.check_id for check in (ACK_STATE_SELDOM, ACK_STATE_OFTEN, ENSEMBLE_TOO_LARGE)),
    # A finding without a namespace is about the brokers' default, for which they have to restart.
    goal=lambda finding: finding.subject if "/" in finding.subject else None,
    propose=propose,
    obstacle=obstacle,
    partial_note=PARTIAL,
)
