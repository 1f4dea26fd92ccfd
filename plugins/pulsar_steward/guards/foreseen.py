"""Figures of a step that its approver sees and its guards compare, and whether its undo is worth a promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from pulsar_steward.changes.isolation import by_hand
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.evaluate import evaluate
from pulsar_steward.guards.in_flight import bounded, with_messages_in_flight
from pulsar_steward.model.step import GuardedChange, SetIsolation, Step

if TYPE_CHECKING:
    from pulsar_steward.facts.isolation import Isolation
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.policy.schema import Policy

Guarded = TypeVar("Guarded", bound=GuardedChange)


def foreseen(step: Guarded, facts: ClusterFacts, policy: Policy) -> Guarded:
    """The step with its loss, its messages in flight, and the reach of its isolation policy, as far as they are known.

    Raises:
        AdminError: If the live cluster cannot be read.
    """
    return _with_reach(with_messages_in_flight(bounded(step, facts), facts, policy), facts)


def _with_reach(step: Guarded, facts: ClusterFacts) -> Guarded:
    if not isinstance(step.change, SetIsolation):
        return step
    found = facts.isolation()
    return step if isinstance(found, Unknown) else msgspec.structs.replace(step, reach=found.reach(step.change))


def with_undo_judged(step: Step, facts: ClusterFacts, policy: Policy) -> Step:
    """The step of an isolation policy, without its undo where guards would refuse that once the step is done.

    Raises:
        AdminError: If the live cluster cannot be read.
        LedgerError: If the ledger cannot be read.
    """
    change, undo = step.change, step.undo
    if not isinstance(change, SetIsolation) or undo is None or isinstance(found := facts.isolation(), Unknown):
        return step
    later = cast("ClusterFacts", _Later(facts, found.after(change)))
    back = _with_reach(GuardedChange(change=undo, touched=step.touched, undoes=step.step_id), later)
    against = [f"{each.guard}: {each.reason}" for each in evaluate(back, later, policy) if not each.passed]
    if not against:
        return step
    note = f"It cannot be undone by Steward, as guards would object ({'; '.join(against)}). By hand: {by_hand(change)}"
    return msgspec.structs.replace(step, undo=None, undo_note=note)


class _Later:
    """Facts with other isolation policies."""

    def __init__(self, facts: ClusterFacts, isolation: Isolation) -> None:
        self._facts, self._isolation = facts, isolation

    def isolation(self) -> Isolation:
        return self._isolation

    def __getattr__(self, name: str) -> Any:
        return getattr(self._facts, name)
