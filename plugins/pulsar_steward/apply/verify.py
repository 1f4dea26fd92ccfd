"""Proof of a whole batch: what the brokers themselves show when it is over, read anew."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pulsar_steward.apply.changes import kind_of
from pulsar_steward.apply.gate import answer_of
from pulsar_steward.apply.health import Level, recorded_level
from pulsar_steward.errors import AdminError
from pulsar_steward.ledger.rows import Decision, Outcome, Proof
from pulsar_steward.model.bundles import TC_NAMESPACE, BundleRange, position_of, tc_topic
from pulsar_steward.model.step import ChangeSetting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.apply.context import LookContext
    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.ledger.rows import StepOutcome
    from pulsar_steward.model.plan import Batch

log = logging.getLogger(__name__)


def verify(context: LookContext, plan_id: str, batch_id: str) -> Proof:
    """Reads back what a run did of a batch, records it, and returns it.

    Proved is a batch of which every approved step is done and still shows. Where nothing was approved, nothing was
    done, and that is what the proof says.

    Raises:
        LedgerError: If the ledger cannot be used.
    """
    batch = context.ledger.plan(plan_id).batch(batch_id)
    outcomes = [outcome for outcome in context.ledger.outcomes(plan_id, batch_id) if outcome.run == context.run]
    answer = answer_of(context.ledger, plan_id, batch_id, context.run)
    approved = answer.step_ids if answer and answer.decision is Decision.APPROVED else ()
    known = {outcome.step_id for outcome in outcomes}
    faults, shown = _faults(context.look, batch, outcomes)
    faults += [f"{step_id}: approved, and no outcome is recorded" for step_id in approved if step_id not in known]
    placement, unread = _placement(context.look, batch)
    proof = Proof(
        plan_id=plan_id,
        batch_id=batch_id,
        run=context.run,
        at=context.clock(),
        proved=bool(outcomes) and not faults,
        reason="; ".join([_reason(outcomes, faults), *unread]),
        shown={"steps": shown, "placement": placement},
    )
    context.journal.proof(proof)
    return proof


def _reason(outcomes: Sequence[StepOutcome], faults: Sequence[str]) -> str:
    if faults:
        return "; ".join(faults)
    if not outcomes:
        return "nothing was done: there is no approved step"
    return f"all {len(outcomes)} approved steps are done, and the brokers show them"


def _faults(look: LiveReader, batch: Batch, outcomes: Sequence[StepOutcome]) -> tuple[list[str], dict[str, str]]:
    faults, shown = [], {}
    for outcome in outcomes:
        if outcome.outcome is not Outcome.DONE:
            faults.append(f"{outcome.step_id} {outcome.outcome}: {outcome.reason}")
            continue
        if recorded_level(outcome) is Level.WORSE:
            faults.append(f"{outcome.step_id} was done, and did harm: {outcome.reason}")
        words, there = _shown(look, batch, outcome.step_id, outcomes)
        shown[outcome.step_id] = words
        if not there:
            faults.append(f"{outcome.step_id} was done, but now: {words}")
    return faults, shown


def _shown(look: LiveReader, batch: Batch, step_id: str, outcomes: Sequence[StepOutcome]) -> tuple[str, bool]:
    done = {outcome.step_id for outcome in outcomes if outcome.outcome is Outcome.DONE}
    if any(step_id in later.after and later.step_id in done for later in batch.steps):
        return "later steps moved on from it", True
    try:
        sight = kind_of(batch.step(step_id).change).observe(look)
    except AdminError as error:
        return f"cannot be read: {error}", False
    return sight.words, sight.there


def _placement(look: LiveReader, batch: Batch) -> tuple[dict[str, Any], list[str]]:
    """Where what the batch balances is now, by broker, and why it is not known where it cannot be read at all.

    A single broker that cannot be read is named with the reason.
    """
    namespaces = {step.change.namespace for step in batch.steps if not isinstance(step.change, ChangeSetting)}
    if not namespaces:
        return {}, []
    try:
        coordinators = look.coordinators() if namespaces == {TC_NAMESPACE} else 0
        brokers = look.brokers()
    except AdminError as error:
        return {}, [f"the placement cannot be read: {error}"]
    placed: dict[str, Any] = {}
    for broker in brokers:
        try:
            owned = look.owned_by(broker)
        except AdminError as error:
            placed[broker] = {"unread": str(error)}
            continue
        counts: Mapping[str, int] = {
            "bundles": sum(bundle.rpartition("/")[0] in namespaces for bundle in owned),
            **({"coordinators": coordinators_in(owned, coordinators)} if coordinators else {}),
        }
        placed[broker] = dict(counts)
    return placed, []


def coordinators_in(owned: Sequence[str], coordinators: int) -> int:
    """How many of a cluster's transaction coordinators the owned bundles (``tenant/ns/range``) place."""
    ranges = [
        BundleRange.parse(bundle.rpartition("/")[2]) for bundle in owned if bundle.rpartition("/")[0] == TC_NAMESPACE
    ]
    positions = [position_of(tc_topic(number)) for number in range(coordinators)]
    return sum(any(position in bundle for bundle in ranges) for position in positions)
