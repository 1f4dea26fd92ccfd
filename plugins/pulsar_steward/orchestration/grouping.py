"""Grouping of a plan's batches into questions of the policy's size, without a clock or a ledger.

An open question keeps its size: if all its parts are proposed unchanged, the same group is formed again. So nobody is
asked again because another namespace joined. Only parts that are in no open question are grouped anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pulsar_steward.changes import kind_of
from pulsar_steward.ledger.batch_record import BatchState
from pulsar_steward.model.loss import Loss
from pulsar_steward.model.plan import goal_of, namespaces_of, numbered, share_goal
from pulsar_steward.model.setting import SettingName
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.model.units import counted
from pulsar_steward.orchestration.contents import Contents, silence_of
from pulsar_steward.orchestration.publish import SnapshotView
from pulsar_steward.policy.approval import ALWAYS_ALONE, DecideBy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.model.step import Step
    from pulsar_steward.orchestration.asked import AskedBatch, RejectedBatch, SilencedGoal
    from pulsar_steward.policy.schema import Policy


def grouped(
    plan: Plan,
    view: SnapshotView,
    standing: Sequence[AskedBatch],
    lately: Sequence[RejectedBatch],
    silenced: Sequence[SilencedGoal],
    policy: Policy,
) -> Plan:
    """The plan with its batches grouped into questions and numbered anew, in the order of each group's first part.

    Args:
        plan: A plan from the planners: a batch for each namespace and kind, or for a goal of the whole cluster.
        view: Completeness of its snapshot.
        standing: The cluster's questions that have not ended, oldest first.
        lately: Batches rejected so recently that they are not asked about again yet.
        silenced: Goals that somebody snoozed or answered with "never"; they are grouped with nothing else.
        policy: Its rules for groups, and the maximum number of steps.
    """
    alone, free = _claimed(plan, view, standing, lately, silenced)
    for number in list(free):
        if _is_alone(plan.batches[number], policy):
            alone.append((number,))
            free.remove(number)
    groups = sorted((*alone, *_anew(plan.batches, free, policy)), key=min)
    batches = [_one_of([plan.batches[number] for number in group]) for group in groups]
    return msgspec.structs.replace(plan, batches=numbered(batches))


def _claimed(
    plan: Plan,
    view: SnapshotView,
    standing: Sequence[AskedBatch],
    lately: Sequence[RejectedBatch],
    silenced: Sequence[SilencedGoal],
) -> tuple[list[tuple[int, ...]], list[int]]:
    """Groups that are fixed already, and all other batches; a batch is given by its place in the plan."""
    contents = Contents(plan)
    free = dict(enumerate(contents.of_plan))
    groups: list[tuple[int, ...]] = []
    answerable = [question for question in standing if question.is_answerable]
    for question in answerable:
        places = {part.content: place for place, part in free.items()}
        asked = {part.content: part for part in contents.of_question(question)}
        known = [places[content] for content in asked if content in places]
        if known and len(known) == len(asked) and all(free[n].asks_as(asked[free[n].content]) for n in known):
            groups.append(tuple(known))
            free = {place: part for place, part in free.items() if place not in set(known)}
    in_use = [question.goal for question in standing if question.state is BatchState.CHANGING]
    covered = [contents.covered_by(question) for question in answerable if view is SnapshotView.PARTIAL]
    for place, part in list(free.items()):
        held = any(share_goal(goal_of(part.batch), goal) for goal in in_use)
        stands = any(part.content in contents_there for contents_there in covered)
        silence, _ = silence_of(part.batch, silenced)
        if held or stands or silence or contents.rejection_of([part], lately):
            groups.append((place,))
            del free[place]
    return groups, list(free)


def _is_alone(batch: Batch, policy: Policy) -> bool:
    """True for a batch that is never grouped with others."""
    is_about_one = len(namespaces_of(batch)) == 1 and not {batch.kind, *batch.kinds}.intersection(ALWAYS_ALONE)
    return not is_about_one or policy.approval.size_for(batch.kind) is DecideBy.NAMESPACE


class _Together(NamedTuple):
    """Properties that are equal for all batches of one group.

    Attributes:
        kind: Their kind; the policy's rules on who may answer, and how many people, are by kind.
        tenant: Their tenant; empty where the policy asks about a whole kind.
        loses: True if they delete messages. So people have to tick a loss only where there is one.
        final: True if they cannot be undone.
        by_age: True if they set an age quota. A backlog's age is known only right before the call, and there one
            guard's veto stops the whole batch.
    """

    kind: str
    tenant: str
    loses: bool
    final: bool
    by_age: bool

    @classmethod
    def of(cls, batch: Batch, policy: Policy) -> _Together:
        """Properties of a batch of one namespace."""
        (namespace,) = namespaces_of(batch)
        by_tenant = policy.approval.size_for(batch.kind) is DecideBy.TENANT
        changes = [step.change for step in batch.steps]
        return cls(
            kind=batch.kind,
            tenant=namespace.partition("/")[0] if by_tenant else "",
            loses=any(kind_of(step.change).loses_messages or isinstance(step.loss, Loss) for step in batch.steps),
            final=any(step.undo is None for step in batch.steps),
            by_age=any(isinstance(each, ChangeSetting) and each.name is SettingName.AGE_QUOTA for each in changes),
        )


def _anew(batches: Sequence[Batch], places: Iterable[int], policy: Policy) -> Iterator[tuple[int, ...]]:
    """New groups of batches that are in no question, in the plan's order, most urgent first; cut between namespaces."""
    together: dict[_Together, dict[str, list[int]]] = {}
    for place in places:
        by_namespace = together.setdefault(_Together.of(batches[place], policy), {})
        by_namespace.setdefault(namespaces_of(batches[place])[0], []).append(place)
    most = min(policy.approval.most_steps, policy.guards.most_changes_per_run)
    sizes = {place: len(batch.steps) for place, batch in enumerate(batches)}
    for by_namespace in together.values():
        yield from _cut(by_namespace.values(), sizes, most)


def _cut(namespaces: Iterable[Sequence[int]], sizes: Mapping[int, int], most: int) -> Iterator[tuple[int, ...]]:
    """Groups of at most `most` steps; a namespace with more steps is cut between its batches."""
    group: list[int] = []
    for places in namespaces:
        fits = sum(sizes[place] for place in places) <= most
        for piece in (places,) if fits else ((place,) for place in places):
            if group and sum(sizes[place] for place in (*group, *piece)) > most:
                yield tuple(group)
                group = []
            group.extend(piece)
    if group:
        yield tuple(group)


def _one_of(parts: Sequence[Batch]) -> Batch:
    """One batch with the steps of all parts, to be numbered anew; a single part is returned unchanged."""
    if len(parts) == 1:
        return parts[0]
    steps = tuple(step for part in parts for step in part.steps)
    findings = {msgspec.json.encode(finding): finding for part in parts for finding in part.findings}
    return msgspec.structs.replace(
        parts[0],
        title=_title(steps),
        findings=tuple(findings.values()),
        steps=steps,
        parts=tuple(len(part.steps) for part in parts),
        unlisted=sum(part.unlisted for part in parts if isinstance(part.unlisted, int)) or msgspec.UNSET,
    )


def _title(steps: Sequence[Step]) -> str:
    """Title of a group, from its steps alone: a question that is formed again keeps its title."""
    changes = [step.change for step in steps]
    first, *others = dict.fromkeys(change.namespace for change in changes)
    tenants = {name.partition("/")[0] for name in (first, *others)}
    of = f" of tenant {min(tenants)}" if len(tenants) == 1 else f", of {counted(len(tenants), 'tenant')}"
    whose = f"{first} and {counted(len(others), 'more namespace')}{of}" if others else first
    what = dict.fromkeys(each.name.value if isinstance(each, ChangeSetting) else "bundles" for each in changes)
    return f"{whose}: {', '.join(what)} ({counted(len(steps), 'step')})"
