"""A planner: the checks whose findings it handles, and its function from findings to batches for approval."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.plan import Batch, Placement
from pulsar_steward.model.step import SetIsolation, UnloadBundle
from pulsar_steward.planners.planning_facts import PlanningFacts
from pulsar_steward.planners.snapshot_facts import vetoes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pulsar_steward.facts.isolation import Isolation
    from pulsar_steward.model.step import Change, GuardResult, Step

MAX_NAMED = 5
"""Number of names that a note lists one by one; there may be thousands."""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """Batches of one planner, and notes on why there are no more."""

    batches: tuple[Batch, ...] = ()
    notes: tuple[str, ...] = ()


def joined(proposals: Iterable[Proposal]) -> Proposal:
    """One proposal with the batches and notes of several, in their order."""
    every = tuple(proposals)
    return Proposal(
        batches=tuple(batch for each in every for batch in each.batches),
        notes=tuple(note for each in every for note in each.notes),
    )


def told_of(planning: PlanningFacts, proposal: Proposal) -> PlanningFacts:
    """The facts with the proposals so far, and the broker groups that these make; silenced ones are left out."""
    asked = [batch for batch in proposal.batches if batch.changes not in planning.unasked]
    changes = [change for batch in asked for change in batch.changes]
    return msgspec.structs.replace(
        planning,
        proposed=planning.proposed.union(kind for batch in asked for kind in batch.kinds),
        moves=(*planning.moves, *(change for change in changes if isinstance(change, UnloadBundle))),
        isolation=_divided(planning, changes),
    )


def _divided(planning: PlanningFacts, changes: Iterable[Change]) -> Isolation | Unknown:
    """The groups of brokers, and what brokers carry, once changes are made."""
    isolation = planning.isolation
    for change in changes:
        if isinstance(isolation, Unknown):
            break
        if isinstance(change, SetIsolation):
            isolation = isolation.after(change)
        elif isinstance(change, UnloadBundle) and (stay := planning.bundles.placed(change.namespace, change.bundle)):
            isolation = isolation.moved(change, stay.now.topics, stay.now.bytes)
    return isolation


def all_unread(planning: PlanningFacts) -> tuple[str, ...]:
    """Everything that the snapshot lacks."""
    return planning.unread


def no_obstacle(_: PlanningFacts, __: str) -> str | None:
    """Returns None for every goal."""
    return None


class Planner(msgspec.Struct, frozen=True, kw_only=True):
    """Handles the findings of some checks, goal by goal; a goal is a namespace, or something in the whole cluster.

    `proposal` applies the rules of all planners before it calls `propose`, and writes a note for each refusal. Findings
    below a warning are ignored. Nothing is proposed from a snapshot that lacks data the planner needs. Nothing is
    proposed for findings that have not lasted for `plan.standing_snapshots`.

    Attributes:
        kinds: Kinds of its batches, of `pulsar_steward.model.plan.KINDS`.
        answers: Ids of the checks whose findings it handles.
        goal: Function from a finding to its goal: a namespace, or the same name for all; None: not for this planner.
        propose: Function from the facts, a goal and its lasting findings (one or more) to batches and notes. It is
            pure: the same facts give the same proposal.
        missing: Function from the facts to needed data that was not read; by default all data that was not read.
        obstacle: Function to a note on why nothing can be proposed for a goal, however long its findings have lasted.
        explained: Goals that get notes even without findings.
        partial_note: Text for a partial snapshot, with ``{missing}`` (the first few) or ``{all_missing}``; empty: none.
        young_note: Text for findings that have not lasted long enough, with ``{goal}``, ``{stood}`` and ``{needed}``,
            both numbers of snapshots; empty: none.
    """

    kinds: tuple[str, ...]
    answers: frozenset[str]
    goal: Callable[[Finding], str | None]
    propose: Callable[[PlanningFacts, str, tuple[Finding, ...]], Proposal]
    missing: Callable[[PlanningFacts], tuple[str, ...]] = all_unread
    obstacle: Callable[[PlanningFacts, str], str | None] = no_obstacle
    explained: tuple[str, ...] = ()
    partial_note: str
    young_note: str = (
        "{goal}: nothing is proposed yet, as its findings have not stood for {needed} snapshots in a row"
        " (plan.standing_snapshots)."
    )

    def answered(self, findings: Iterable[Finding]) -> dict[str, tuple[Finding, ...]]:
        """The findings that it handles, by goal, in order of the goals' names."""
        by_goal: defaultdict[str, list[Finding]] = defaultdict(list)
        for finding in findings:
            if finding.check_id not in self.answers or finding.severity.rank < Severity.WARNING.rank:
                continue
            if (goal := self.goal(finding)) is not None:
                by_goal[goal].append(finding)
        return {goal: tuple(by_goal[goal]) for goal in sorted(by_goal)}

    def proposal(self, planning: PlanningFacts) -> Proposal:
        """Batches for all goals, or the notes on why there are none."""
        found: dict[str, tuple[Finding, ...]] = dict.fromkeys(self.explained, ())
        found |= self.answered(planning.findings)
        if found and (missing := self.missing(planning)):
            return _noted(self.partial_note, missing=enumerated(missing), all_missing=", ".join(missing))
        proposals: list[Proposal] = []
        for goal, about in found.items():
            proposals.append(self._of_goal(planning, goal, about))
            planning = told_of(planning, proposals[-1])
        return joined(proposals)

    def _of_goal(self, planning: PlanningFacts, goal: str, findings: tuple[Finding, ...]) -> Proposal:
        if note := self.obstacle(planning, goal):
            return Proposal(notes=(note,))
        if not findings:
            return Proposal()
        needed = planning.policy.plan.standing_snapshots
        standing = tuple(finding for finding in findings if finding.snapshots_in_a_row >= needed)
        if not standing:
            stood = max(finding.snapshots_in_a_row for finding in findings)
            return _noted(self.young_note, goal=goal, stood=stood, needed=needed)
        return self.propose(planning, goal, standing)


def _noted(template: str, **values: object) -> Proposal:
    return Proposal(notes=(template.format(**values),) if template else ())


class Vetoed:
    """Vetoed changes, by guard, for notes that name them."""

    def __init__(self) -> None:
        self._named: defaultdict[str, list[str]] = defaultdict(list)

    def holds(self, against: Sequence[GuardResult], name: str) -> bool:
        """True if there are vetoes against a change, which is then noted under this name."""
        for veto in against:
            self._named[veto.guard].append(f"{name} ({veto.reason})")
        return bool(against)

    def notes(self, keeps: str) -> Iterator[str]:
        """A note for each guard: ``Guard cooldown keeps ...: a (moved at ...), b (...) and 3 more.``."""
        for guard, named in sorted(self._named.items()):
            yield f"Guard {guard} keeps {keeps}: {enumerated(named)}."


def reasons_against(*steps: Step) -> str:
    """All vetoes of these steps, each once, as `reasons`; empty: all guards let them pass."""
    return reasons(veto for step in steps for veto in vetoes(step))


def reasons(against: Iterable[GuardResult]) -> str:
    """Vetoes, each once, as ``guard: reason; guard: reason``."""
    return "; ".join(dict.fromkeys(f"{veto.guard}: {veto.reason}" for veto in against))


def enumerated(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def placements(counts: Mapping[str, int]) -> tuple[Placement, ...]:
    """Numbers by broker, in the form that a batch records, in order of broker."""
    return tuple(Placement(broker, count) for broker, count in sorted(counts.items()))
