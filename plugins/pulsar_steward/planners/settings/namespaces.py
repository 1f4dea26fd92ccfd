"""Planner: sets the quotas, retention and time to live of namespaces (docs/remediations/quotas-and-retention.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.plan import Batch
from pulsar_steward.model.setting import Retention, SettingName, in_words
from pulsar_steward.model.step import ChangeSetting, Step, Touched
from pulsar_steward.planners.base import Planner, Proposal, reasons_against
from pulsar_steward.planners.settings.facts import effect, undo_note
from pulsar_steward.planners.settings.targets import ANSWERED, is_of_topic, namespace_of, target_settings
from pulsar_steward.planners.snapshot_facts import guarded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.model.setting import Setting
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.planners.settings.facts import NamespaceFact
    from pulsar_steward.planners.settings.targets import TargetSettings


ENDLESS = float("inf")

_LAST = {SettingName.TTL: 3, SettingName.DELAYED_DELIVERY: 4}
"""Places of settings that brokers compare with nothing: a longer time to live before longer delays."""


def in_order(changes: Iterable[ChangeSetting]) -> tuple[ChangeSetting, ...]:
    """The changes of one namespace in an order that the broker accepts: a higher retention comes first.

    A retention that is lower in time or size comes last, after the quotas that have to be below it.
    """
    return tuple(sorted(changes, key=lambda change: (_place(change), change.name)))


def raises(change: ChangeSetting) -> bool:
    """True if a change of retention keeps at least as much as before, in time and in size."""
    before, after = _limits(change.before), _limits(change.after)
    return all(now >= then for now, then in zip(after, before, strict=True))


def _place(change: ChangeSetting) -> int:
    if change.name in _LAST:
        return _LAST[change.name]
    if change.name is not SettingName.RETENTION:
        return 1
    return 0 if raises(change) else 2


def _limits(value: object) -> tuple[float, float]:
    """Minutes and megabytes; an unset retention counts as no limit, as the broker then compares nothing."""
    if not isinstance(value, Retention):
        return ENDLESS, ENDLESS
    return (
        ENDLESS if value.minutes <= 0 else value.minutes,
        ENDLESS if value.megabytes <= 0 else value.megabytes,
    )


QUOTA_KIND = "backlog_quota"
RETENTION_KIND = "retention"
OF_RETENTION = frozenset({SettingName.RETENTION, SettingName.TTL, SettingName.DELAYED_DELIVERY})

PARTIAL = "Settings: nothing is proposed, as the snapshot is partial without {all_missing}."

_APART = frozenset({SettingName.AGE_QUOTA})
"""Settings with a batch of their own. The age of a backlog is known only right before the call, and one guard's veto
stops a whole batch: the other settings must not wait for this one."""

_TOGETHER = frozenset(SettingName) - _APART


def propose(planning: PlanningFacts, goal: str, findings: tuple[Finding, ...]) -> Proposal:
    """A batch for a namespace, the goal, in an order that brokers accept; and another batch for its age quota."""
    fact = facts_by_name(planning)[goal]
    checks = frozenset(finding.check_id for finding in findings)
    decided = target_settings(fact, checks, planning.defaults, planning.policy)
    notes = tuple(f"{goal}: {note}." for note in decided.notes)
    made = batches_of(planning, fact, decided, findings)
    notes = (*notes, *made.notes)
    if not made.batches and not notes:
        notes = (f"{goal}: nothing is proposed, as no setting would be better.",)
    return Proposal(batches=made.batches, notes=notes)


def batches_of(
    planning: PlanningFacts,
    fact: NamespaceFact,
    decided: TargetSettings,
    findings: tuple[Finding, ...],
    *,
    together: bool = False,
) -> Proposal:
    """Batches that give a namespace the decided settings, or a note on the guard that vetoes.

    Args:
        planning: The snapshot.
        fact: The namespace.
        decided: Its settings as they should be.
        findings: The findings that the batches resolve.
        together: True puts an age quota into one batch with the others, if the quota already in force allows it.
    """
    goal = fact.namespace
    batches: list[Batch] = []
    for names in (_TOGETHER | _APART,) if together else (_TOGETHER, _APART):
        changes = _changes(fact, decided, names, planning.defaults)
        steps = tuple(_steps(planning, fact, decided, changes))
        # A batch without one of its steps is not the computed one: none of it is proposed then.
        if against := reasons_against(*steps):
            none = "no age quota" if names == _APART else "nothing"
            return Proposal(batches=tuple(batches), notes=(f"{goal}: {none} is proposed: {against}.",))
        if steps:
            targets = (f"{each.name} to {in_words(each.name, each.after)}" for each in changes)
            retains = any(each.name in OF_RETENTION for each in changes)
            batches.append(
                Batch(
                    kind=RETENTION_KIND if retains else QUOTA_KIND,
                    title=f"{goal}: {', '.join(targets)}",
                    findings=findings,
                    steps=steps,
                )
            )
    return Proposal(batches=tuple(batches))


def facts_by_name(planning: PlanningFacts) -> dict[str, NamespaceFact]:
    """Facts of namespaces, by name; they include each goal without an `obstacle`."""
    return {fact.namespace: fact for fact in planning.namespaces}


def obstacle(planning: PlanningFacts, goal: str) -> str | None:
    """A note for a namespace with unknown settings."""
    if goal in facts_by_name(planning):
        return None
    return f"{goal}: nothing is proposed, as its settings are not in the snapshot."


def _changes(
    fact: NamespaceFact, decided: TargetSettings, names: frozenset[SettingName], defaults: Mapping[SettingName, Setting]
) -> tuple[ChangeSetting, ...]:
    """The changes of these settings, in an order that brokers accept."""
    return in_order(
        ChangeSetting(
            namespace=fact.namespace,
            name=name,
            before=fact.own.get(name),
            after=value,
            inherited=msgspec.UNSET if name in fact.own else defaults.get(name),
        )
        for name, value in decided.target.items()
        if name in names and name in decided.why and fact.own.get(name) != value
    )


def _steps(
    planning: PlanningFacts, fact: NamespaceFact, decided: TargetSettings, changes: Sequence[ChangeSetting]
) -> Iterator[Step]:
    """A step for each change, with the results of all guards."""
    kept, averts = decided.target.get(SettingName.RETENTION), decided.averted
    for number, change in enumerate(changes, start=1):
        step = Step(
            change=change,
            why=decided.why[change.name],
            effect=effect(fact, change),
            touched=Touched(producers=0, consumers=0, topics=fact.looks[0].topics, coordinators=0),
            undo=change.inverse,
            undo_note=undo_note(change),
            averts=(averts if change.name is SettingName.TTL and averts and averts.topics else msgspec.UNSET),
        )
        yield guarded(step, planning, place_in_run=number, holder=fact, retention=kept)


PLANNER = Planner(
    kinds=(QUOTA_KIND, RETENTION_KIND),
    answers=ANSWERED,
    goal=lambda finding: None if is_of_topic(finding) else namespace_of(finding),
    propose=propose,
    obstacle=obstacle,
    partial_note=PARTIAL,
)
