"""Planner: sets the isolation policy of a group of brokers, then moves bundles (docs/remediations/broker-groups.md)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes.isolation import STAYS, by_hand
from pulsar_steward.checks.placement.broker_groups import CHECK as BROKER_GROUPS
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.isolation import policies_in_words
from pulsar_steward.model.plan import BROKER_DRAIN, BROKER_GROUP, Batch
from pulsar_steward.model.step import SetIsolation, Step, Touched, UnloadBundle
from pulsar_steward.model.units import counted, named
from pulsar_steward.planners.base import Planner, Proposal, enumerated, placements, reasons_against
from pulsar_steward.planners.bundles.assignment import Room
from pulsar_steward.planners.bundles.relocation import Reasons, Relocation, coordinators_held
from pulsar_steward.planners.snapshot_facts import guarded
from pulsar_steward.policy.never_asked import never_asked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.facts.isolation import Isolation
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.bundles.facts import LeavingFacts, PlacedBundle
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.policy.schema import WantedGroup

UNIT = "bundles"
AFTER_DRAINING = "it is looked at by a later plan, as this one drains a broker"
NO_WAY_BACK = "A rollback takes the policy back and moves nothing, so that this move cannot be undone by it."


def propose(planning: PlanningFacts, goal: str, findings: tuple[Finding, ...]) -> Proposal:
    """One batch: the policy where it differs from the wanted one, then the moves of bundles outside of the group."""
    group = planning.policy.brokers.group(goal)
    now, facts = planning.isolation, planning.bundles.groups
    if group is None or facts is None:
        return Proposal()
    if isinstance(now, Unknown):
        return _none(goal, now.reason)
    present = now.policies.get(group.name)
    claimed = now.claimed(group.isolation, present)
    if why := _obstacle(planning, claimed):
        return _none(goal, why)
    steps: list[Step] = []
    if not group.isolation.is_as(present):
        change = SetIsolation(
            pulsar_cluster=planning.pulsar_cluster.name, policy=goal, before=present, after=group.isolation
        )
        steps.append(guarded(_step(change, now, group), planning))
        if against := reasons_against(*steps):
            return _none(goal, against)
        now = now.after(change)
    return _with_moves(planning, group, now, facts, (steps, findings))


def _obstacle(planning: PlanningFacts, claimed: Sequence[str]) -> str | None:
    """Reason why nothing is proposed for namespaces, besides guards; None: there is none."""
    if BROKER_DRAIN in planning.proposed:
        return AFTER_DRAINING
    if taken := sorted(planning.claimed.intersection(claimed)):
        return f"this plan moves or splits bundles of {named(taken)}"
    left_out = [name for name in claimed if never_asked((BROKER_GROUP,), name, planning.policy)]
    return f"the policy says never to ask about {named(left_out)} (approval.never_ask)" if left_out else None


def _with_moves(
    planning: PlanningFacts,
    group: WantedGroup,
    now: Isolation,
    facts: LeavingFacts,
    begun: tuple[list[Step], tuple[Finding, ...]],
) -> Proposal:
    """The batch with the moves of all bundles outside, or of the first ones; no batch if one has no room."""
    steps, findings = begun
    theirs = [stay for stay in facts.leaving.values() if group.isolation.claims(stay.namespace)]
    allowed = {stay.namespace: now.allowed(stay.namespace) for stay in theirs}
    restricted = {name: tuple(sorted(may)) for name, may in allowed.items() if may is not None}
    room = Room(msgspec.structs.replace(facts, allowed=restricted), coordinators_held(planning), planning.policy)
    search = Relocation(planning, room)
    search.make(planning.moves, facts)
    outside = search.in_order(stay for stay in theirs if _is_outside(stay, allowed))
    most = planning.policy.broker_group_remedy.most_moves
    for stay in outside[:most]:
        if move := search.placed(stay, _reasons(group), steps):
            back = f"{move.undo_note} {NO_WAY_BACK}"
            steps.append(msgspec.structs.replace(move, undo=None, undo_note=back, group=group.name))
    if search.nowhere:
        return _none(group.name, f"no broker of the group has room for {enumerated(search.nowhere)}")
    notes = [*search.vetoed.notes(f"bundles outside of the group {group.name}")]
    if (rest := len(outside) - most) > 0:
        notes.append(_later(group, rest))
    if not steps:
        return Proposal(notes=tuple(notes))
    moves = [step.change for step in steps if isinstance(step.change, UnloadBundle)]
    before = Counter(dict.fromkeys(now.loads, 0))
    before.update(stay.owner for stay in theirs)
    after = Counter(before)
    after.subtract(move.source for move in moves)
    after.update(move.target for move in moves)
    batch = Batch(
        kind=BROKER_GROUP,
        title=_title(group, policy=len(moves) < len(steps), moves=len(moves)),
        findings=findings,
        steps=tuple(steps),
        unit=UNIT,
        before=placements(before),
        after=placements(after),
    )
    return Proposal(batches=(batch,), notes=tuple(notes))


def _is_outside(stay: PlacedBundle, allowed: dict[str, frozenset[str] | None]) -> bool:
    may = allowed[stay.namespace]
    return may is not None and stay.owner not in may


def _step(change: SetIsolation, now: Isolation, group: WantedGroup) -> Step:
    running, claimed = sorted(group.isolation.primaries(now.loads)), now.claimed(change.after)
    before, after = policies_in_words(change.before, change.after)
    return Step(
        change=change,
        why=f"the isolation policy {change.policy} is {before}, and {after} is wanted (policy key brokers.groups)",
        effect=(
            f"bundles of {counted(len(claimed), 'namespace')} ({named(claimed)}) that are loaded from then on go to"
            f" {counted(len(running), 'broker')}"
            f" ({named(running)}); nothing is unloaded, {STAYS}"
        ),
        touched=Touched(producers=0, consumers=0, topics=0, coordinators=0),
        undo=change.inverse,
        undo_note=by_hand(change),
    )


def _reasons(group: WantedGroup) -> Reasons:
    return Reasons(
        why=f"{{source}} is no broker of the group {group.name}, and a policy moves nothing by itself",
        nowhere="no broker of the group takes it",
        back="back to {source} by hand, once the policy is taken back",
    )


def _title(group: WantedGroup, *, policy: bool, moves: int) -> str:
    bundles = f"move {counted(moves, 'bundle')} to its brokers"
    if not policy:
        return f"Group {group.name}: {bundles}"
    return f"Group {group.name}: set its isolation policy" + (f", then {bundles}" if moves else "")


def _later(group: WantedGroup, rest: int) -> str:
    come = counted(rest, "bundle comes", "bundles come")
    return f"Group {group.name}: {come} with later plans (broker_group_remedy.most_moves)."


def _none(goal: str, why: str) -> Proposal:
    return Proposal(notes=(f"Group {goal}: nothing is proposed: {why}.",))


PLANNER = Planner(
    kinds=(BROKER_GROUP,),
    answers=frozenset({BROKER_GROUPS.check_id}),
    goal=lambda finding: finding.subject,
    propose=propose,
    partial_note="Groups of brokers: nothing is proposed, as the snapshot is partial without {missing}.",
)
