"""Planner: lowers topics' own size quotas below their retention; other topics are under their namespace's quota."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.backlog.quota_settings import QUOTA_OVER_RETENTION
from pulsar_steward.model.plan import Batch
from pulsar_steward.model.setting import BacklogQuota, Retention, SettingName, in_words
from pulsar_steward.model.step import ChangeSetting, GuardedChange, Step, Touched
from pulsar_steward.model.units import MIB, bytes_in_words, counted
from pulsar_steward.planners.base import Planner, Proposal, enumerated, reasons
from pulsar_steward.planners.settings.namespaces import PARTIAL, QUOTA_KIND
from pulsar_steward.planners.settings.sizes import below
from pulsar_steward.planners.settings.targets import is_of_topic
from pulsar_steward.planners.snapshot_facts import guarded, objections

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.planners.settings.facts import TopicSettings

TOUCHED = Touched(producers=0, consumers=0, topics=1, coordinators=0)


def propose(planning: PlanningFacts, _: str, findings: tuple[Finding, ...]) -> Proposal:
    """A batch for each namespace with such topics, unless its own settings change in the same plan."""
    facts = {fact.subject: fact for fact in planning.topics}
    by_namespace: dict[str, list[tuple[TopicSettings, Finding]]] = defaultdict(list)
    notes = []
    for finding in findings:
        fact = facts.get(finding.subject)
        if fact is None:
            notes.append(f"{finding.subject}: nothing is proposed, as what is set on it is not in the snapshot.")
        elif fact.namespace in planning.claimed_settings:
            notes.append(
                f"{finding.subject}: nothing is proposed yet, as the settings of {fact.namespace} change first."
            )
        elif words := _objection(fact, planning):
            notes.append(f"{finding.subject}: nothing is proposed: {words}.")
        else:
            by_namespace[fact.namespace].append((fact, finding))
    batches = []
    most = planning.policy.guards.most_changes_per_run
    for name, known in sorted(by_namespace.items()):
        topics = sorted({fact.topic for fact, _ in known})
        if more := topics[most:]:
            notes.append(
                f"{name}: {enumerated(more)} come with later plans, as one changes {most:,} at most (policy key"
                " guards.most_changes_per_run)."
            )
        batches.append(_batch(planning, name, [each for each in known if each[0].topic not in more]))
    return Proposal(batches=tuple(batches), notes=tuple(notes))


def _objection(fact: TopicSettings, planning: PlanningFacts) -> str | None:
    """The reason why a topic's quota is not lowered."""
    change = _change(fact, planning)
    if change is None:
        return "its own retention, or the size quota of its namespace, is to be looked at by hand"
    headroom = planning.policy.backlog_quota_remedy.peak_headroom_percent
    if isinstance(change.after, BacklogQuota) and fact.peak * (100 + headroom) // 100 > change.after.limit_bytes:
        return (
            f"its largest backlog of {bytes_in_words(fact.peak)} needs more than its retention leaves: raise the"
            " retention by hand"
        )
    return reasons(objections(GuardedChange(change=change, touched=TOUCHED), planning, holder=fact)) or None


def _change(fact: TopicSettings, planning: PlanningFacts) -> ChangeSetting | None:
    """The change that lowers a topic's quota; None: it has none, or it is already below the retention."""
    quota, kept = fact.own.get(SettingName.SIZE_QUOTA), {**fact.inherited, **fact.own}.get(SettingName.RETENTION)
    if not isinstance(quota, BacklogQuota) or not isinstance(kept, Retention) or kept.megabytes <= 0:
        return None
    most = below(kept.megabytes * MIB, planning.policy.backlog_quota_remedy.retention_margin_percent)
    if quota.limit_bytes <= most:
        return None
    return ChangeSetting(
        namespace=fact.namespace,
        topic=fact.topic,
        name=SettingName.SIZE_QUOTA,
        before=quota,
        after=msgspec.structs.replace(quota, limit_bytes=most),
    )


def _batch(planning: PlanningFacts, namespace: str, known: Sequence[tuple[TopicSettings, Finding]]) -> Batch:
    of_topic = {fact.topic: fact for fact, _ in known}  # partitions of one topic have one setting
    changes = [(fact, change) for _, fact in sorted(of_topic.items()) if (change := _change(fact, planning))]
    steps = tuple(_step(planning, fact, change, number) for number, (fact, change) in enumerate(changes, start=1))
    return Batch(
        kind=QUOTA_KIND,
        title=f"{namespace}: size quotas of {counted(len(steps), 'topic')} below their retention",
        findings=tuple(finding for _, finding in known),
        steps=steps,
    )


def _step(planning: PlanningFacts, fact: TopicSettings, change: ChangeSetting, number: int) -> Step:
    margin = planning.policy.backlog_quota_remedy.retention_margin_percent
    step = Step(
        change=change,
        why=(
            f"its quota of {in_words(change.name, change.before)} is not below its retention, of which {margin} % are"
            f" to be left; its largest backlog was {bytes_in_words(fact.peak)}"
        ),
        effect=f"the {change.name} of {change.holder} is {in_words(change.name, change.after)}",
        touched=TOUCHED,
        undo=change.inverse,
        undo_note=f"Set it back: {in_words(change.name, change.before)}.",
    )
    return guarded(step, planning, place_in_run=number, holder=fact)


PLANNER = Planner(
    kinds=(QUOTA_KIND,),
    answers=frozenset({QUOTA_OVER_RETENTION.check_id}),
    goal=lambda finding: "topics" if is_of_topic(finding) else None,
    propose=propose,
    partial_note=PARTIAL,
    young_note="",
)
