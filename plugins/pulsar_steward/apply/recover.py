"""Recovery after a crash: results of calls without an outcome are read from the cluster, never guessed."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from pulsar_steward.apply.clearance import can_leave_until
from pulsar_steward.apply.context import Result
from pulsar_steward.apply.perform import unexpected, wait_for
from pulsar_steward.changes import kind_of
from pulsar_steward.errors import AdminError, LedgerError
from pulsar_steward.ledger.rows import Decision, Outcome, interrupted

if TYPE_CHECKING:
    from pulsar_steward.apply.context import ApplyContext
    from pulsar_steward.changes.kind import Observation
    from pulsar_steward.ledger.rows import Intent

log = logging.getLogger(__name__)

_MARGIN = timedelta(seconds=1)


def what_became_of(context: ApplyContext, intent: Intent) -> Result | None:
    """Result of a call that was cut short; None: it had no effect and cannot have one any more, so it may be repeated.

    A change that has begun is completed (a bundle without an owner is loaded); no new change is begun.
    """
    log.warning("%s: a call may have been made at %s: looking", intent.step_id, intent.at)
    # Until then a process that was held up may still send it, and a broker may still be working on it.
    over = can_leave_until(intent.at, context)

    def can_no_longer_happen(observation: Observation) -> bool:
        return observation.untouched and context.clock() > over

    patience = max(context.policy.apply.proof_timeout_seconds, (over + _MARGIN - context.clock()).total_seconds())
    kind = kind_of(intent.change)
    try:
        before = kind.recorded(intent.before)
        observation = wait_for(context, kind, before, enough=can_no_longer_happen, seconds=patience)
    except LedgerError:
        raise
    except Exception as error:
        log.exception("unexpected, looking for what became of a call")
        return Result(outcome=Outcome.UNKNOWN, reason=f"interrupted; {unexpected(error)}")
    if isinstance(observation, AdminError):
        return Result(outcome=Outcome.UNKNOWN, reason=f"interrupted, and the cluster could not be read: {observation}")
    if not observation.there and can_no_longer_happen(observation):
        return None
    return _interrupted(observation, "no further call, as it is not known whether this one had an effect")


def _interrupted(observation: Observation, why_no_further_call: str) -> Result:
    """Result of a call that was cut short, from the state of the cluster; no further call follows."""
    said = f"interrupted; {observation.words}"
    if not observation.there:
        return Result(outcome=Outcome.UNKNOWN, reason=f"{said}; {why_no_further_call}", values=observation.values)
    return Result(outcome=Outcome.DONE, reason=said, values=observation.values)


def record_refusal(context: ApplyContext, plan_id: str, batch_id: str, reason: str) -> None:
    """Records a refusal for every step of an approval that does not open the gate.

    A step that a crash interrupted gets its result from the present state of the cluster instead, without a call,
    whatever the last answer is. A rejection needs no further record.
    """
    answers = {a.answer_id: a for a in context.ledger.answers(plan_id, batch_id) if a.run == context.run}
    outcomes = [outcome for outcome in context.ledger.outcomes(plan_id, batch_id) if outcome.run == context.run]
    intents = [intent for intent in context.ledger.intents(plan_id, batch_id) if intent.answer_id in answers]
    begun = {intent.step_id: intent for intent in interrupted(intents, outcomes)}
    last = answers[max(answers)] if answers else None
    approved = last.step_ids if last and last.decision is Decision.APPROVED else ()
    for step_id in sorted({*begun, *(set(approved) - {outcome.step_id for outcome in outcomes})}):
        intent = begun.get(step_id)
        result = _seen(context, intent, reason) if intent else Result(outcome=Outcome.REFUSED, reason=reason)
        context.recorded(plan_id, batch_id, step_id, result, intent.intent_id if intent else None)


def _seen(context: ApplyContext, intent: Intent, reason: str) -> Result:
    try:
        observation = kind_of(intent.change).observe(context.reader)
    except AdminError as error:
        words = f"interrupted, and the cluster could not be read: {error}; no further call: {reason}"
        return Result(outcome=Outcome.UNKNOWN, reason=words)
    return _interrupted(observation, f"no further call: {reason}")
