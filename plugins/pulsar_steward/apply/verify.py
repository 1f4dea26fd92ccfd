"""Proof of a whole batch: the state of the brokers at its end, read anew."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pulsar_steward.apply.health import Level, recorded_level
from pulsar_steward.apply.perform import looked_beside
from pulsar_steward.changes import kind_of
from pulsar_steward.errors import AdminError
from pulsar_steward.ledger.rows import Decision, Outcome, Proof
from pulsar_steward.model.bundles import TC_NAMESPACE, coordinators_in
from pulsar_steward.model.isolation import AllowedBrokers
from pulsar_steward.model.plan import BROKER_GROUP
from pulsar_steward.model.step import SetIsolation, SplitBundle, UnloadBundle
from pulsar_steward.model.units import counted, named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pulsar_steward.apply.context import ReadContext
    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.changes.kind import Beside
    from pulsar_steward.ledger.rows import StepOutcome
    from pulsar_steward.model.plan import Batch

log = logging.getLogger(__name__)


def verify(context: ReadContext, plan_id: str, batch_id: str) -> Proof:
    """Reads the result of a run's batch back from the brokers, records it, and returns it.

    A batch is proved if every approved step is done and the brokers still show it. Without an approval, the proof says
    that nothing was done.

    Raises:
        LedgerError: If the ledger cannot be used.
    """
    batch = context.ledger.plan(plan_id).batch(batch_id)
    recorded = context.ledger.batch(plan_id, batch_id).of_run(context.run)
    outcomes, answer = recorded.outcomes, recorded.answer
    approved = answer.step_ids if answer and answer.decision is Decision.APPROVED else ()
    known = {outcome.step_id for outcome in outcomes}
    faults, shown = _faults(context.reader, batch, outcomes)
    if batch.kind == BROKER_GROUP and outcomes and (outside := _outside(context.reader, batch)):
        faults.append(outside)
    besides = tuple(_beside(context, plan_id, batch))
    told = "; ".join(faults)  # what was lost at once stopped the batch, with the same words
    faults += [
        f"{step_id}{' drifted' if each.lost else ''}: {each.words}"
        for step_id, each in besides
        if each.lost is not False and each.words not in told
    ]
    faults += [f"{step_id}: approved, and no outcome is recorded" for step_id in approved if step_id not in known]
    placement, unread = _placement(context.reader, batch)
    proof = Proof(
        plan_id=plan_id,
        batch_id=batch_id,
        run=context.run,
        at=context.clock(),
        proved=bool(outcomes) and not faults,
        reason="; ".join(
            [_reason(outcomes, faults), *unread, *(each.words for _, each in besides if each.lost is False)]
        ),
        shown={"steps": shown, "placement": placement},
    )
    context.journal.proof(proof)
    return proof


def _reason(outcomes: Sequence[StepOutcome], faults: Sequence[str]) -> str:
    if faults:
        return "; ".join(faults)
    if not outcomes:
        return "nothing was done: there is no approved step"
    return f"all {counted(len(outcomes), 'approved step is', 'approved steps are')} done, and the brokers show them"


def _faults(reader: LiveReader, batch: Batch, outcomes: Sequence[StepOutcome]) -> tuple[list[str], dict[str, str]]:
    faults, shown = [], {}
    for outcome in outcomes:
        if outcome.outcome is not Outcome.DONE:
            faults.append(f"{outcome.step_id} {outcome.outcome}: {outcome.reason}")
            continue
        if recorded_level(outcome) is Level.WORSE:
            faults.append(f"{outcome.step_id} was done, and stopped the batch: {outcome.reason}")
        words, there = _shown(reader, batch, outcome.step_id, outcomes)
        shown[outcome.step_id] = words
        if not there:
            faults.append(f"{outcome.step_id} was done, but now: {words}")
    return faults, shown


def _shown(reader: LiveReader, batch: Batch, step_id: str, outcomes: Sequence[StepOutcome]) -> tuple[str, bool]:
    done = {outcome.step_id for outcome in outcomes if outcome.outcome is Outcome.DONE}
    change = batch.step(step_id).change
    # Moves into a group leave its policy as it is.
    moves_on = not isinstance(change, SetIsolation)
    later = [each.change for each in batch.steps if moves_on and step_id in each.after and each.step_id in done]
    moved_on = {each.bundle for each in later if isinstance(each, SplitBundle | UnloadBundle)}
    rest = [half for half in change.halves if half not in moved_on] if isinstance(change, SplitBundle) else []
    if later and not rest:
        return "later steps moved on from it", True
    try:
        observation = kind_of(change).observe(reader)
    except AdminError as error:
        return f"cannot be read: {error}", False
    if later and isinstance(change, SplitBundle):
        there = all(observation.values["owners"].get(half) == change.owner for half in rest)
        return f"later steps moved on from a half; {observation.words}", there
    return observation.words, observation.there


def _beside(context: ReadContext, plan_id: str, batch: Batch) -> Iterator[tuple[str, Beside]]:
    """Whatever else is not as it was right before the first call of a step, with the step."""
    first = {each.step_id: each for each in reversed(context.ledger.intents(plan_id, batch.batch_id))}
    for step_id in sorted(first):
        found = looked_beside(batch.step(step_id).change, first[step_id].before, context.reader)
        yield from ((step_id, each) for each in found)


def _outside(reader: LiveReader, batch: Batch) -> str | None:
    """Fault if more bundles of a group's namespaces are outside of the group than the plan leaves there.

    A bundle without a topic is no fault: nobody is connected through it, and it is loaded within the group.
    """
    changes = [step.change for step in batch.steps]
    groups = [each.after for each in changes if isinstance(each, SetIsolation) and each.after is not None]
    moved = {each.namespace for each in changes if isinstance(each, UnloadBundle)}
    outside, within = [], set[str]()
    try:
        brokers = reader.brokers()
        allowed_brokers = AllowedBrokers(reader.isolation_policies(), brokers)
        for broker in brokers:
            for name in reader.owned_by(broker):
                namespace, _, bundle = name.rpartition("/")
                if namespace not in moved and not any(group.claims(namespace) for group in groups):
                    continue
                allowed = allowed_brokers.of(namespace)
                within.update(brokers if allowed is None else allowed)
                if allowed is not None and broker not in allowed and reader.topic_in(namespace, bundle) is not None:
                    outside.append(f"{broker} owns {name}")
    except AdminError as error:
        return f"which bundles are within the group cannot be read: {error}"
    planned = sum(place.count for place in batch.after if place.broker not in within)
    if len(outside) <= planned:
        return None
    many = counted(len(outside), "bundle is", "bundles are")
    return f"{many} outside of the group, and not {planned:,}: {named(outside)}"


def _placement(reader: LiveReader, batch: Batch) -> tuple[dict[str, Any], list[str]]:
    """Present bundles and coordinators by broker, and the reason if they cannot be read at all.

    A single broker that cannot be read has its reason in their place.
    """
    disturbed = (kind_of(step.change).disturbs for step in batch.steps)
    namespaces = {bundle.namespace for bundle in disturbed if bundle is not None}
    if not namespaces:
        return {}, []
    try:
        coordinators = reader.coordinators() if namespaces == {TC_NAMESPACE} else 0
        brokers = reader.brokers()
    except AdminError as error:
        return {}, [f"the placement cannot be read: {error}"]
    placed: dict[str, Any] = {}
    for broker in brokers:
        try:
            owned = reader.owned_by(broker)
        except AdminError as error:
            placed[broker] = {"unread": str(error)}
            continue
        counts: Mapping[str, int] = {
            "bundles": sum(bundle.rpartition("/")[0] in namespaces for bundle in owned),
            **({"coordinators": coordinators_in(owned, coordinators)} if coordinators else {}),
        }
        placed[broker] = dict(counts)
    return placed, []
