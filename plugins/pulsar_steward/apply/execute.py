"""Carries out one approved batch, step by step in order: gate, lease, guards, intent, call, proof, outcome.

Before the first call, the guards check every step; one objection stops the whole batch. Of a step that waits for
another one, only the guards are asked that can judge it already. After that, the first step that is not `done` stops
the rest.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.apply.clearance import Clearance
from pulsar_steward.apply.context import Result
from pulsar_steward.apply.gate import ask_for_permit
from pulsar_steward.apply.health import Level, Watch, recorded_level
from pulsar_steward.apply.lease import held_lease
from pulsar_steward.apply.live_cluster import LiveCluster
from pulsar_steward.apply.pace import keep_pace, slowed
from pulsar_steward.apply.perform import looked_beside, perform
from pulsar_steward.apply.precheck import Looked, look_ahead, look_before
from pulsar_steward.apply.recover import record_refusal, what_became_of
from pulsar_steward.changes import kind_of
from pulsar_steward.errors import AdminError, LeaseLost, LedgerError, Refused
from pulsar_steward.ledger.rows import NOT_TRIED, Outcome, StepOutcome, interrupted
from pulsar_steward.ledger.write import IntendedCall
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.apply.context import ApplyContext
    from pulsar_steward.apply.gate import Permit
    from pulsar_steward.apply.lease import HeldLease
    from pulsar_steward.changes.kind import Before
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.ledger.rows import Intent
    from pulsar_steward.model.step import Step

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
"""Maximum number of calls for one step, including calls that a crash cut short.

A move is repeated if another broker, or the former owner, took the bundle before the target broker did.
"""


def carry_out(context: ApplyContext, plan_id: str, batch_id: str) -> tuple[StepOutcome, ...]:
    """Makes the approved changes of a batch, and returns the outcome of each.

    A second call by the same run continues after a crash: it first reads the result of interrupted calls.

    Raises:
        Refused: If there is no approval, or it is no longer valid; no call was made.
        LeaseLost: If another writer holds the cluster, and no call was made; or another worker of this run took over
            and recorded the outcomes.
        LedgerError: If the ledger cannot be used; no further call is made.
    """
    try:
        permit = _permit(context, plan_id, batch_id)
        cluster, policy = permit.grant.cluster, context.policy.apply
        context = replace(context, switch=context.switch.of(cluster))
        context.switch.require_going()
        rest = context.switch.rest
        beside = context.policy.logical_clusters.beside(context.ledger.known(cluster).names)
        if permit.plan.batch(batch_id).is_rollback:  # to wait would leave harm in place; others wait for it
            beside = frozenset()
        with held_lease(context.ledger_writer, cluster, context.run, policy, context.clock, rest, beside) as lease:
            # Checked again, as the wait for the lease may have been long.
            permit = _permit(context, plan_id, batch_id)
            _claim(context, permit)
            return _BatchRun(context, permit, lease).outcomes()
    except Refused as refusal:
        record_refusal(context, plan_id, batch_id, str(refusal))
        raise


def _permit(context: ApplyContext, plan_id: str, batch_id: str) -> Permit:
    permit = ask_for_permit(
        context.ledger, plan_id, batch_id, context.run, context.clock(), context.policy, noted=context.noted
    )
    if permit.plan.cluster != context.cluster:
        raise Refused(f"plan {plan_id} is for cluster {permit.plan.cluster!r}, not {context.cluster!r}")
    context.reader.require_single_brokers()
    context.require_observed_cluster()
    return permit


def _claim(context: ApplyContext, permit: Permit) -> None:
    if not context.journal.use(permit, context.run, context.clock()):
        raise Refused("the approval was used by another run at the same moment")


@dataclass(frozen=True)
class _Begun:
    """Step with a recorded intent; its watch began before its first call."""

    intent_id: int
    before: Before
    watch: Watch | None
    clearance: Clearance


class _BatchRun:
    """One batch while it is carried out, under a permit and a lease."""

    def __init__(self, context: ApplyContext, permit: Permit, lease: HeldLease) -> None:
        self._context = context
        self._permit = permit
        self._lease = lease
        plan_id, batch_id = permit.plan.plan_id, permit.batch_id
        self._cluster = LiveCluster(context.reader, context.policy, context.ledger, permit.plan, batch_id)
        self._recorded = {
            outcome.step_id: outcome
            for outcome in context.ledger.outcomes(plan_id, batch_id)
            if outcome.run == context.run
        }
        self._intents = context.ledger.intents(plan_id, batch_id)

    def outcomes(self) -> tuple[StepOutcome, ...]:
        """Carries the steps out, and returns their outcomes in order."""
        self._refuse_if_tried_before()
        self._refuse_left_out()
        self._recover()
        self._await_proofs()
        self._look_at_all_first()
        for number, step in enumerate(self._permit.steps, start=1):
            if step.step_id in self._recorded:
                continue
            if stopper := self._stopper():
                self._record(step, self._not_tried(stopper))
                continue
            if harm := self._harm():
                self._record(step, Result(outcome=Outcome.REFUSED, reason=f"the batch stopped itself: {harm}"))
                continue
            log.info("step %d of %d: %s: %s", number, len(self._permit.steps), step.step_id, step.effect)
            self._carry_out(step)
        batch = self._permit.plan.batch(self._permit.batch_id)
        return tuple(self._recorded[step.step_id] for step in batch.steps if step.step_id in self._recorded)

    @property
    def _ended(self) -> dict[str, StepOutcome]:
        """Outcomes so far by step id, without the steps that were left out."""
        return {name: row for name, row in self._recorded.items() if name not in self._permit.left_out}

    def _refuse_left_out(self) -> None:
        """Records a refusal for steps that a person rejected or silenced elsewhere; the other steps go on."""
        batch = self._permit.plan.batch(self._permit.batch_id)
        for step_id, no in self._permit.left_out.items():
            if step_id not in self._recorded:
                self._record(batch.step(step_id), Result(outcome=Outcome.REFUSED, reason=no))

    def _refuse_if_tried_before(self) -> None:
        if any(intent.answer_id != self._permit.grant.answer_id for intent in self._intents):
            raise Refused(
                f"batch {self._permit.batch_id} was tried before, under another approval: the plan no longer describes"
                " the cluster; observe again"
            )

    def _recover(self) -> None:
        batch = self._permit.plan.batch(self._permit.batch_id)
        for intent in interrupted(self._intents, self._recorded.values()):
            if result := what_became_of(self._context, intent) or _tried_enough(intent):
                step = batch.step(intent.step_id)
                self._record(step, self._looked_beside(step, intent.before, result), intent.intent_id)

    def _await_proofs(self) -> None:
        """Waits for the pending proof of an earlier batch, at most `apply.proof_wait_seconds`."""
        plan, batch_id = self._permit.plan, self._permit.batch_id
        ledger, seen_at = self._context.ledger, self._context.ledger.questions.seen_at(plan, batch_id)
        until = time.monotonic() + self._context.policy.apply.proof_wait_seconds
        past = ledger.past(plan.named_cluster)
        while unproved := past.unproved_since(seen_at, (plan.plan_id, batch_id)):
            if self._ended or not unproved.pending or time.monotonic() >= until:
                return
            log.info("waiting: %s", unproved.words)
            self._context.switch.rest(1)

    def _look_at_all_first(self) -> None:
        if self._ended:
            return
        results: dict[str, Result] = {}
        before_it: set[str] = set()
        for step in self._permit.steps:
            missing = [earlier for earlier in step.after if earlier not in before_it]
            before_it.add(step.step_id)
            if missing:
                reason = f"it needs {', '.join(missing)} first, which was not approved"
                results[step.step_id] = Result(outcome=Outcome.REFUSED, reason=reason)
            elif isinstance(objection := self._first_look(step), Result):
                results[step.step_id] = objection
        for step in self._permit.steps if results else ():
            self._record(step, results.get(step.step_id) or self._not_tried(min(results)))

    def _first_look(self, step: Step) -> Before | Result | None:
        if step.after:
            return self._look(step, lambda facts: look_ahead(step, facts, self._context.policy), shared=True)
        return self._look_before(step, shared=True)

    def _look_before(self, step: Step, *, shared: bool = False) -> Before | Result:
        reader, policy = self._context.reader, self._context.policy
        return self._look(step, lambda facts: look_before(reader, step, facts, policy), shared=shared)

    def _look(self, step: Step, look: Callable[[ClusterFacts], Looked], *, shared: bool) -> Looked | Result:
        number = 1 + [each.step_id for each in self._permit.steps].index(step.step_id)
        try:
            return look(self._cluster.before(step, self._context.clock(), number, shared=shared))
        except LedgerError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever outside values do, nothing was called, and that is said
            return _nothing_called(error)

    def _carry_out(self, step: Step) -> None:
        """Makes the change; if Pulsar moves the bundle elsewhere or back, calls again, at most `MAX_ATTEMPTS` times."""
        way, last, watch, intent_id = step, None, None, None
        tried = sum(intent.step_id == step.step_id for intent in self._intents)
        for attempt in range(tried + 1, MAX_ATTEMPTS + 1):
            begun = self._begin(way, watch)
            if isinstance(begun, Result):
                self._record(step, _not_again(last, begun) if last else begun, intent_id)
                return
            intent_id, watch = begun.intent_id, begun.watch
            last = perform(self._context, kind_of(way.change), begun.before, begun.clearance)
            self._cluster.called()
            if last.continuation is None or attempt == MAX_ATTEMPTS:
                result = self._looked_beside(way, msgspec.to_builtins(begun.before), _given_up(last, attempt))
                self._record(step, self._looked_after(watch, step, result), intent_id)
                return
            log.warning("%s: %s, not as planned: moving it again from there", step.step_id, last.reason)
            way = msgspec.structs.replace(step, change=last.continuation)

    def _looked_beside(self, step: Step, before: dict[str, Any], result: Result) -> Result:
        """Result with the damage that the call did to others, or with the reason why it could not be looked for.

        Either stops the batch, as guards of the next step do not see such damage. `before` is as recorded.
        """
        found = [each for each in looked_beside(step.change, before, self._context.reader) if each.lost is not False]
        if not found:
            return result
        done = result.outcome is Outcome.DONE  # any other outcome stops the batch by itself
        values = {**result.values, "health": {"level": Level.WORSE.value}} if done else result.values
        return msgspec.structs.replace(
            result, reason="; ".join([result.reason, *(each.words for each in found)]), values=values
        )

    def _looked_after(self, watch: Watch | None, step: Step, result: Result) -> Result:
        """Result with the health after the change, by which the batch slows down or stops."""
        if watch is None or result.outcome is not Outcome.DONE:
            return result
        health = watch.ends()
        if health.level is Level.STRAINED:
            log.warning("%s: %s: the pace is halved from here", step.step_id, health.words)
        said = f"{result.reason}; {health.words}" if health.words else result.reason
        values = {**result.values, "health": health.values} if health.values else result.values
        return msgspec.structs.replace(result, reason=said, values=values)

    def _begin(self, step: Step, watch: Watch | None) -> _Begun | Result:
        """Keeps the pace, checks permit and guards, and records the intent; returns a result if the call is refused.

        A step keeps its first `watch`: after the last call, the state before the first call has to come back.
        """
        context, plan = self._context, self._permit.plan
        try:
            kind = kind_of(step.change)
            clients = kind.clients(context.reader)
            policy = slowed(context.policy.apply, 2 ** len(self._steps_seen(Level.STRAINED)))
            keep_pace(context.ledger, plan.named_cluster, clients, policy, context.clock, context.switch.rest)
            self._cluster.begin()
            self._cluster.wait_until_told(step, context.clock, context.switch.rest)
            context.ledger.require_still_untampered(self._permit.walked)
            context.ledger.require_standing(self._permit.grant, context.clock())
            before = self._look_before(step)
            if isinstance(before, Result):
                return before
            if watch is None and kind.disturbs is not None:
                watch = Watch(context.reader, kind.disturbs, context.policy.health, context.switch.rest)
            values = msgspec.to_builtins(before)
            intended = IntendedCall(
                grant=self._permit.grant, part=self._permit.part_of(step), step=step, before=values, clients=clients
            )
            # Once more, as the guards used the ledger's record of earlier changes.
            context.ledger.require_still_untampered(self._permit.walked)
            context.switch.require_going()
            clearance = Clearance(context, self._permit.grant, self._lease)
            intent_id = context.ledger_writer.record_intent(intended, self._lease.current, context.clock())
            return _Begun(intent_id=intent_id, before=before, watch=watch, clearance=clearance)
        except LedgerError:
            raise
        except (AdminError, LeaseLost, Refused) as error:
            return Result(outcome=Outcome.REFUSED, reason=str(error))
        except Exception as error:  # noqa: BLE001 - as above
            return _nothing_called(error)

    def _harm(self) -> str | None:
        """Harm of a step beyond the policy's limits; None: there is none."""
        worse = self._steps_seen(Level.WORSE)
        return f"{worse[0]}: {self._recorded[worse[0]].reason}" if worse else None

    def _steps_seen(self, level: Level) -> list[str]:
        """Steps after which the health had this level, by the ledger, so that it survives a crash."""
        return [name for name, row in self._recorded.items() if recorded_level(row) is level]

    def _stopper(self) -> str | None:
        return next((name for name, row in self._ended.items() if row.outcome is not Outcome.DONE), None)

    @staticmethod
    def _not_tried(stopper: str) -> Result:
        return Result(outcome=Outcome.REFUSED, reason=f"{NOT_TRIED}{stopper} stopped the batch")

    def _record(self, step: Step, result: Result, intent_id: int | None = None) -> None:
        plan_id, batch_id = self._permit.plan.plan_id, self._permit.batch_id
        self._recorded[step.step_id] = self._context.recorded(plan_id, batch_id, step.step_id, result, intent_id)


def _nothing_called(error: Exception) -> Result:
    """Result of a step that failed with an unexpected error before its intent was recorded."""
    log.error("unexpected, before anything was called")
    return Result(outcome=Outcome.REFUSED, reason=f"nothing was called: {type(error).__name__}: {error}")


def _not_again(last: Result, objection: Result) -> Result:
    return Result(
        outcome=Outcome.FAILED, reason=f"{last.reason}; not tried again: {objection.reason}", values=last.values
    )


def _given_up(last: Result, calls: int) -> Result:
    """The last result of a step; its reason tells if only the maximum number of calls ended it."""
    if last.continuation is None:
        return last
    return msgspec.structs.replace(last, reason=f"{last.reason}; given up after {counted(calls, 'call')}")


def _tried_enough(intent: Intent) -> Result | None:
    """Result of a step after its last permitted call was cut short without effect; None: more calls are permitted."""
    if intent.attempt < MAX_ATTEMPTS:
        return None
    reason = f"interrupted, and nothing came of it; given up after {counted(intent.attempt, 'call')}"
    return Result(outcome=Outcome.FAILED, reason=reason)
