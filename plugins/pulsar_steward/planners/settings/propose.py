"""The settings that a namespace's findings ask for, in an order that brokers accept: a batch, and one for age."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.finding import Severity
from pulsar_steward.model.numbering import batch_id, step_id
from pulsar_steward.model.plan import Batch
from pulsar_steward.model.setting import SettingName, in_words
from pulsar_steward.model.step import ChangeSetting, Step, Touched
from pulsar_steward.planners.planning_facts import Proposal
from pulsar_steward.planners.settings.effects import effect, loss, undo_note
from pulsar_steward.planners.settings.order import in_order
from pulsar_steward.planners.settings.own_quota import propose_own_quotas
from pulsar_steward.planners.settings.targets import ANSWERED, is_of_topic, namespace_of, target_settings
from pulsar_steward.planners.settings.topics import propose_for_topics
from pulsar_steward.planners.snapshot_facts import guarded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.planners.settings.facts import NamespaceFact
    from pulsar_steward.planners.settings.targets import TargetSettings

QUOTA_KIND = "backlog_quota"
RETENTION_KIND = "retention"


def propose(planning: PlanningFacts) -> Proposal:
    """A batch for each namespace whose quotas, retention or time to live are wrong; none from a partial snapshot."""
    found = _findings(planning)
    if found and planning.unread:
        partial = f"Settings: nothing is proposed, as the snapshot is partial without {', '.join(planning.unread)}."
        return Proposal(notes=(partial,))
    facts = {fact.namespace: fact for fact in planning.namespaces}
    needed = planning.policy.plan.standing_snapshots
    of_topics = [each for findings in found.values() for each in findings if is_of_topic(each)]
    proposals = [
        _of_namespace(planning, facts.get(name), name, findings)
        for name, findings in sorted(found.items())
        if not all(is_of_topic(finding) for finding in findings)
    ]
    taken = {step.change.namespace for each in proposals for batch in each.batches for step in batch.steps}
    standing = [finding for finding in of_topics if finding.snapshots_in_a_row >= needed]
    proposals.append(propose_for_topics(planning, standing, taken))
    proposals.append(propose_own_quotas(planning, taken))
    return Proposal(
        batches=tuple(batch for each in proposals for batch in each.batches),
        notes=tuple(note for each in proposals for note in each.notes),
    )


def _findings(planning: PlanningFacts) -> dict[str, tuple[Finding, ...]]:
    """Findings that can be answered, by namespace."""
    by_namespace: dict[str, list[Finding]] = defaultdict(list)
    for finding in planning.findings:
        if finding.check_id in ANSWERED and finding.severity.rank >= Severity.WARNING.rank:
            by_namespace[namespace_of(finding)].append(finding)
    return {name: tuple(findings) for name, findings in by_namespace.items()}


def _of_namespace(
    planning: PlanningFacts, fact: NamespaceFact | None, name: str, findings: tuple[Finding, ...]
) -> Proposal:
    if fact is None:
        return Proposal(notes=(f"{name}: nothing is proposed, as its settings are not in the snapshot.",))
    needed = planning.policy.plan.standing_snapshots
    standing = tuple(finding for finding in findings if finding.snapshots_in_a_row >= needed)
    if not standing:
        young = (
            f"{name}: nothing is proposed yet, as its findings have not stood for {needed} snapshots in a row"
            " (plan.standing_snapshots)."
        )
        return Proposal(notes=(young,))
    decided = target_settings(
        fact, frozenset(finding.check_id for finding in standing), planning.defaults, planning.policy
    )
    notes = tuple(f"{name}: {note}." for note in decided.notes)
    first, at_last = (tuple(_steps(planning, fact, decided, names)) for names in (_TOGETHER, _APART))
    if not first and not at_last:
        return Proposal(notes=notes or (f"{name}: nothing is proposed, as no setting would be better.",))
    batches = []
    for steps in (first, at_last):
        # What is left of a batch without one of its steps is not what was worked out: none of it is proposed then.
        if vetoes := [f"{each.guard}: {each.reason}" for step in steps for each in step.guards if not each.passed]:
            notes = (*notes, f"{name}: {_none(steps)} is proposed: {'; '.join(dict.fromkeys(vetoes))}.")
            break
        if steps:
            batches.append(_batch(name, steps, standing))
    return Proposal(batches=tuple(batches), notes=notes)


_APART = frozenset({SettingName.AGE_QUOTA})
"""Settings with a batch of their own: how old a backlog is will be known only right before the call, one guard's veto
stops a whole batch, and the others are not to wait for this one."""

_TOGETHER = frozenset(SettingName) - _APART


def _none(steps: Sequence[Step]) -> str:
    names = {step.change.name for step in steps if isinstance(step.change, ChangeSetting)}
    return "no age quota" if names == _APART else "nothing"


def _batch(name: str, steps: tuple[Step, ...], findings: tuple[Finding, ...]) -> Batch:
    names = {step.change.name for step in steps if isinstance(step.change, ChangeSetting)}
    kind = RETENTION_KIND if names & {SettingName.RETENTION, SettingName.TTL} else QUOTA_KIND
    return Batch(batch_id=batch_id(1), kind=kind, title=_title(name, steps), findings=findings, steps=steps)


def _title(namespace: str, steps: Sequence[Step]) -> str:
    changes = [step.change for step in steps if isinstance(step.change, ChangeSetting)]
    return f"{namespace}: " + ", ".join(f"{change.name} to {in_words(change.name, change.after)}" for change in changes)


def _steps(
    planning: PlanningFacts, fact: NamespaceFact, decided: TargetSettings, names: frozenset[SettingName]
) -> Iterator[Step]:
    changes = in_order(
        ChangeSetting(namespace=fact.namespace, name=name, before=fact.own.get(name), after=value)
        for name, value in decided.target.items()
        if name in names and name in decided.why and fact.own.get(name) != value
    )
    earlier: tuple[str, ...] = ()
    for number, change in enumerate(changes, start=1):
        name = step_id(batch_id(1), number)
        lost = loss(fact, change)
        step = Step(
            step_id=name,
            change=change,
            why=decided.why[change.name],
            effect=effect(fact, change),
            touched=Touched(producers=0, consumers=0, topics=fact.looks[0].topics, coordinators=0),
            undo=change.inverse,
            undo_note=undo_note(change),
            after=earlier,
            loss=lost if lost is not None and lost.bytes else msgspec.UNSET,
        )
        kept = decided.target.get(SettingName.RETENTION)
        yield guarded(step, planning, place_in_run=number, holder=fact, retention=kept)
        if change.name is not SettingName.TTL:
            earlier = (*earlier, name)
