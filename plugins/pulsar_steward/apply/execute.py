"""Carries out one approved batch: gate, lease, guards, intent, call, proof, outcome; a step at a time, in order.

Before anything is called, the guards look at every step that does not wait for another; one objection stops the whole
batch there and then. Later, whatever is not `done` stops the rest.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from pulsar_steward.apply.changes import kind_of
from pulsar_steward.apply.gate import ask_for_permit, require_valid
from pulsar_steward.apply.lease import held_lease
from pulsar_steward.apply.pace import keep_pace
from pulsar_steward.apply.perform import Result, perform, result_of, wait_for
from pulsar_steward.errors import AdminError, LeaseLost, Refused
from pulsar_steward.guard.evaluate import objection_to
from pulsar_steward.ledger.rows import Decision, Outcome, StepOutcome
from pulsar_steward.ledger.write import IntendedCall
from pulsar_steward.model.step import UnloadBundle

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from pulsar_steward.apply.bench import Bench
    from pulsar_steward.apply.changes.kind import Sight
    from pulsar_steward.apply.gate import Permit
    from pulsar_steward.apply.lease import HeldLease
    from pulsar_steward.ledger.rows import Intent
    from pulsar_steward.model.step import Change, Step

log = logging.getLogger(__name__)


def carry_out(bench: Bench, plan_id: str, batch_id: str) -> tuple[StepOutcome, ...]:
    """Makes the approved changes of a batch, and returns what each came to.

    Called again by the same run, it first reads what a crash left behind and goes on from there.

    Raises:
        Refused: If nothing was approved, or it no longer stands; nothing was called.
        LeaseLost: If another writer holds the cluster; nothing was called.
        LedgerError: If the ledger cannot be used: nothing more is called.
    """
    permit = _permit(bench, plan_id, batch_id)
    policy = bench.policy.apply
    with held_lease(bench.ledger_writer, permit.plan.cluster, bench.run, policy, bench.clock) as lease:
        permit = _permit(bench, plan_id, batch_id)  # waiting for the lease may have taken long
        if not bench.journal.use(permit, bench.run, bench.clock()):
            raise Refused("the approval was used by another run at the same moment")
        return _BatchRun(bench, permit, lease).outcomes()


def _permit(bench: Bench, plan_id: str, batch_id: str) -> Permit:
    try:
        return ask_for_permit(bench.ledger, plan_id, batch_id, bench.run, bench.clock())
    except Refused as refusal:
        _record_refusal(bench, plan_id, batch_id, str(refusal))
        raise


def _record_refusal(bench: Bench, plan_id: str, batch_id: str, reason: str) -> None:
    """An approval that does not open the gate leaves a row for every step; a rejection is recorded as it is.

    A step that a crash interrupted is not merely refused: what the cluster shows of it now is said, without a call.
    """
    approved = [answer for answer in bench.ledger.answers(plan_id, batch_id) if answer.run == bench.run][-1:]
    if not approved or approved[0].decision is not Decision.APPROVED:
        return
    outcomes = [outcome for outcome in bench.ledger.outcomes(plan_id, batch_id) if outcome.run == bench.run]
    finished = {outcome.intent_id for outcome in outcomes}
    begun = {
        intent.step_id: intent
        for intent in bench.ledger.intents(plan_id, batch_id)
        if intent.intent_id not in finished and intent.answer_id == approved[0].answer_id
    }
    for step_id in sorted(set(approved[0].step_ids) - {outcome.step_id for outcome in outcomes}):
        intent = begun.get(step_id)
        result = _seen(bench, intent, reason) if intent else Result(outcome=Outcome.REFUSED, reason=reason)
        bench.journal.outcome(
            StepOutcome(
                plan_id=plan_id,
                batch_id=batch_id,
                step_id=step_id,
                intent_id=intent.intent_id if intent else None,
                run=bench.run,
                at=bench.clock(),
                outcome=result.outcome,
                reason=result.reason,
                proof=result.values,
            )
        )


def _seen(bench: Bench, intent: Intent, reason: str) -> Result:
    try:
        sight = kind_of(intent.change).sight(bench.look)
    except AdminError as error:
        words = f"interrupted, and the cluster could not be read: {error}; no further call: {reason}"
        return Result(outcome=Outcome.UNKNOWN, reason=words)
    outcome = Outcome.DONE if sight.there else Outcome.UNKNOWN
    return Result(outcome=outcome, reason=f"interrupted; {sight.words}; no further call: {reason}", values=sight.values)


class _BatchRun:
    """One batch on its way, under a permit and a lease."""

    def __init__(self, bench: Bench, permit: Permit, lease: HeldLease) -> None:
        self._bench = bench
        self._permit = permit
        self._lease = lease
        plan_id, batch_id = permit.plan.plan_id, permit.batch_id
        self._recorded = {
            outcome.step_id: outcome for outcome in bench.ledger.outcomes(plan_id, batch_id) if outcome.run == bench.run
        }
        self._intents = bench.ledger.intents(plan_id, batch_id)

    def outcomes(self) -> tuple[StepOutcome, ...]:
        """Carries the steps out, and returns what each came to, in order."""
        self._refuse_if_tried_before()
        self._recover()
        self._look_at_all_first()
        for number, step in enumerate(self._permit.steps, start=1):
            if step.step_id in self._recorded:
                continue
            if stopper := self._stopper():
                self._record(step, self._not_tried(stopper))
                continue
            log.info("step %d of %d: %s: %s", number, len(self._permit.steps), step.step_id, step.effect)
            self._carry_out(step)
        return tuple(self._recorded[step.step_id] for step in self._permit.steps)

    def _refuse_if_tried_before(self) -> None:
        if any(intent.answer_id != self._permit.answer.answer_id for intent in self._intents):
            raise Refused(
                f"batch {self._permit.batch_id} was tried before, under another approval: the plan no longer describes"
                " the cluster; observe again"
            )

    def _recover(self) -> None:
        """Finds out what became of calls whose outcome a crash kept from being recorded."""
        finished = {outcome.intent_id for outcome in self._recorded.values()}
        latest = {intent.step_id: intent for intent in self._intents}
        for intent in latest.values():
            if intent.intent_id in finished:
                continue
            step = self._permit.plan.batch(self._permit.batch_id).step(intent.step_id)
            log.warning("%s: a call may have been made at %s: looking", intent.step_id, intent.at)
            sight = wait_for(self._bench, kind_of(intent.change), intent.before, self._can_no_longer_happen(intent))
            if isinstance(sight, AdminError) or not sight.untouched or sight.there:
                self._record(step, result_of(sight, None), intent.intent_id)

    def _can_no_longer_happen(self, intent: Intent) -> Callable[[Sight], bool]:
        limit = timedelta(seconds=self._bench.policy.admin.read_timeout_seconds)

        def settled(sight: Sight) -> bool:
            return sight.untouched and self._bench.clock() > intent.at + limit

        return settled

    def _look_at_all_first(self) -> None:
        chosen = {step.step_id for step in self._permit.steps}
        waiting = [step for step in self._permit.steps if step.step_id not in self._recorded]
        if self._recorded:
            return
        results = {}
        for step in waiting:
            missing = [earlier for earlier in step.after if earlier not in chosen]
            if missing:
                reason = f"it needs {', '.join(missing)}, which was not approved"
                results[step.step_id] = Result(outcome=Outcome.REFUSED, reason=reason)
            elif not step.after and (objection := self._objection(step)):
                results[step.step_id] = objection
        for step in waiting if results else ():
            self._record(step, results.get(step.step_id) or self._not_tried(min(results)))

    def _objection(self, step: Step) -> Result | None:
        try:
            now = self._bench.clock()
            view = self._bench.look.view(step.change, self._bench.policy, now, self._moved_at(step, now))
        except AdminError as error:
            return Result(outcome=Outcome.REFUSED, reason=f"the cluster could not be looked at first: {error}")
        objection = objection_to(step, view)
        return None if objection is None else Result(outcome=Outcome(objection[0].value), reason=objection[1])

    def _moved_at(self, step: Step, now: datetime) -> datetime | None:
        """When the bundle was last moved; this very step's own earlier try, known to have had no effect, is none."""
        cooldown = timedelta(minutes=self._bench.policy.tc_skew.cooldown_minutes)
        moves = self._bench.ledger.moves_since(self._permit.plan.cluster, now - cooldown)
        moved_at = moves.get(f"{step.change.namespace}/{step.change.bundle}")
        own = {intent.at for intent in self._intents if intent.step_id == step.step_id}
        return None if moved_at in own else moved_at

    def _carry_out(self, step: Step) -> None:
        bench, plan = self._bench, self._permit.plan
        kind = kind_of(step.change)
        try:
            clients = bench.look.clients(_present_owner(step.change), step.change.namespace, step.change.bundle)
            keep_pace(bench.ledger, plan.cluster, clients, bench.policy.apply, bench.clock)
            require_valid(bench.ledger, self._permit, bench.run, bench.clock())
            if objection := self._objection(step):
                self._record(step, objection)
                return
            before = kind.before(bench.look)
            intended = IntendedCall(
                plan=plan,
                batch_id=self._permit.batch_id,
                step=step,
                answer_id=self._permit.answer.answer_id,
                before=before,
                clients=clients,
            )
            intent_id = bench.ledger_writer.record_intent(intended, self._lease.current, bench.clock())
        except (AdminError, LeaseLost, Refused) as error:
            self._record(step, Result(outcome=Outcome.REFUSED, reason=str(error)))
            return
        self._record(step, perform(bench, kind, before), intent_id)

    def _stopper(self) -> str | None:
        return next((name for name, row in self._recorded.items() if row.outcome is not Outcome.DONE), None)

    @staticmethod
    def _not_tried(stopper: str) -> Result:
        return Result(outcome=Outcome.REFUSED, reason=f"not tried: {stopper} stopped the batch")

    def _record(self, step: Step, result: Result, intent_id: int | None = None) -> None:
        outcome = StepOutcome(
            plan_id=self._permit.plan.plan_id,
            batch_id=self._permit.batch_id,
            step_id=step.step_id,
            intent_id=intent_id,
            run=self._bench.run,
            at=self._bench.clock(),
            outcome=result.outcome,
            reason=result.reason,
            proof=result.values,
        )
        self._bench.journal.outcome(outcome)
        self._recorded[step.step_id] = outcome


def _present_owner(change: Change) -> str:
    return change.source if isinstance(change, UnloadBundle) else change.owner
