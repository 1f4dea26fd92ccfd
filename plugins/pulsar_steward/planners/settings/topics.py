"""Planners of topics' own size quotas: lower ones below their retention, and new ones if they retain more."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.checks.backlog.quota_settings import QUOTA_OVER_RETENTION
from pulsar_steward.model.plan import Batch
from pulsar_steward.model.setting import BacklogQuota, Retention, SettingName, in_words
from pulsar_steward.model.step import ChangeSetting, GuardedChange, Step, Touched
from pulsar_steward.model.units import MIB, bytes_in_words, counted
from pulsar_steward.planners.base import Planner, Proposal, enumerated, reasons, reasons_against
from pulsar_steward.planners.settings.namespaces import PARTIAL, QUOTA_KIND
from pulsar_steward.planners.settings.sizes import INFLOW_UNKNOWN, ProposedQuota, below, needed
from pulsar_steward.planners.settings.targets import OF_FULL_TOPICS, is_of_topic
from pulsar_steward.planners.snapshot_facts import guarded, objections

if TYPE_CHECKING:
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.planners.settings.facts import TopicSettings
    from pulsar_steward.policy.remedies import BacklogQuotaRemedy

TOUCHED = Touched(producers=0, consumers=0, topics=1, coordinators=0)


def propose_topic_quotas(planning: PlanningFacts, _: str, findings: tuple[Finding, ...]) -> Proposal:
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
        kept = [each for each in known if each[0].topic not in more]
        of_topic = {fact.topic: fact for fact, _ in kept}  # partitions of one topic have one setting
        changes = [(fact, change) for _, fact in sorted(of_topic.items()) if (change := _change(fact, planning))]
        steps = [_quota_step(planning, *each, number) for number, each in enumerate(changes, start=1)]
        batches.append(
            Batch(
                kind=QUOTA_KIND,
                title=f"{name}: size quotas of {counted(len(steps), 'topic')} below their retention",
                findings=tuple(finding for _, finding in kept),
                steps=tuple(steps),
            )
        )
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


def _quota_step(planning: PlanningFacts, fact: TopicSettings, change: ChangeSetting, number: int) -> Step:
    margin = planning.policy.backlog_quota_remedy.retention_margin_percent
    step = Step(
        change=change,
        why=(
            f"its quota of {in_words(change.name, change.before)} is not below its retention, of which {margin} % are"
            f" to be left; its largest backlog was {bytes_in_words(fact.peak)}"
        ),
        effect=(
            f"the {change.name} of {change.holder} is {in_words(change.name, change.after)}"
            f"{fact.filling.in_words(change.after)}"
        ),
        touched=TOUCHED,
        undo=change.inverse,
        undo_note=f"Set it back: {in_words(change.name, change.before)}.",
    )
    return guarded(step, planning, place_in_run=number, holder=fact)


TOPIC_QUOTAS = Planner(
    kinds=(QUOTA_KIND,),
    answers=frozenset({QUOTA_OVER_RETENTION.check_id}),
    goal=lambda finding: "topics" if is_of_topic(finding) else None,
    propose=propose_topic_quotas,
    partial_note=PARTIAL,
    young_note="",
)


def propose_own_quotas(planning: PlanningFacts, _: str, findings: tuple[Finding, ...]) -> Proposal:
    """A batch for each namespace with such topics; topics that retain no more than their namespace get no quota.

    Topics of namespaces whose own settings change in the same plan wait for the next one.
    """
    notes: list[str] = []
    steps: defaultdict[str, dict[str, Step]] = defaultdict(dict)
    facts = {fact.topic: fact for fact in planning.topics}
    topic_of = {fact.subject: fact.topic for fact in planning.topics}  # the partitioned topic of a partition
    cases: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.subject in topic_of:
            cases[topic_of[finding.subject]].append(finding)
    for topic in sorted(cases):
        fact = facts[topic]
        answer = _answer(fact, planning.policy.backlog_quota_remedy)
        if answer is None or fact.namespace in planning.claimed_settings:
            continue
        if answer.quota is None:
            notes.append(f"{topic}: no quota of its own is proposed: {answer.words}.")
            continue
        step = _step(planning, fact, answer.quota, answer.words, len(steps[fact.namespace]) + 1)
        if against := reasons_against(step):
            notes.append(f"{topic}: no quota of its own is proposed: {against}.")
        else:
            steps[fact.namespace][topic] = step
    batches = tuple(
        Batch(
            kind=QUOTA_KIND,
            title=f"{namespace}: size quotas of their own for {counted(len(ours), 'topic')}",
            findings=tuple(finding for topic in ours for finding in cases[topic]),
            steps=tuple(ours.values()),
        )
        for namespace, ours in sorted(steps.items())
        if ours
    )
    return Proposal(batches=batches, notes=tuple(notes))


def _answer(fact: TopicSettings, remedy: BacklogQuotaRemedy) -> ProposedQuota | None:
    """The proposed quota; None: it already has its own, retains no more than its namespace, or its quota is enough."""
    common, kept = fact.inherited.get(SettingName.SIZE_QUOTA), fact.own.get(SettingName.RETENTION)
    if SettingName.SIZE_QUOTA in fact.own or not isinstance(common, BacklogQuota) or not isinstance(kept, Retention):
        return None
    need = needed(fact, remedy)
    if need is None:
        return ProposedQuota(None, INFLOW_UNKNOWN)
    if common.limit_bytes < 0 or need.bytes <= common.limit_bytes or not retains_more(fact, kept):
        return None
    words = f"it needs {need.words}; its namespace's quota is {bytes_in_words(common.limit_bytes)}"
    limit, room = need.bytes, kept.megabytes * MIB
    if kept.megabytes > 0 and limit > (most := below(room, remedy.retention_margin_percent)):
        words += (
            f", and its own retention of {bytes_in_words(room)} less {remedy.retention_margin_percent} % leaves"
            f" {bytes_in_words(most)}"
        )
        if most <= common.limit_bytes or fact.peak * (100 + remedy.peak_headroom_percent) // 100 > most:
            return ProposedQuota(None, f"{words}: raise that by hand first")
        limit = most
    return ProposedQuota(msgspec.structs.replace(common, limit_bytes=limit), words)


def retains_more(fact: TopicSettings, own: Retention) -> bool:
    """True if a topic retains more bytes than its namespace; the retention's size bounds a size quota."""
    common = fact.inherited.get(SettingName.RETENTION)
    if not isinstance(common, Retention):
        return True  # an unset retention retains nothing
    return common.megabytes >= 0 and (own.megabytes < 0 or own.megabytes > common.megabytes)


def _step(planning: PlanningFacts, fact: TopicSettings, quota: BacklogQuota, why: str, number: int) -> Step:
    common = fact.inherited.get(SettingName.SIZE_QUOTA)
    in_force = common.limit_bytes if isinstance(common, BacklogQuota) else -1
    change = ChangeSetting(
        namespace=fact.namespace,
        topic=fact.topic,
        name=SettingName.SIZE_QUOTA,
        before=None,
        after=quota,
        inherited=common,
    )
    step = Step(
        change=change,
        why=why,
        effect=(
            f"the {change.name} of {change.holder} is {in_words(change.name, quota)}; its largest backlog in"
            f" {counted(fact.snapshots, 'snapshot')} was {bytes_in_words(fact.peak)}{fact.filling.in_words(quota)}"
        ),
        touched=TOUCHED,
        undo=change.inverse,
        undo_note=f"Remove it again: {bytes_in_words(in_force)} of its namespace are in force then.",
    )
    return guarded(step, planning, place_in_run=number, holder=fact)


OWN_QUOTAS = Planner(
    kinds=(QUOTA_KIND,),
    answers=OF_FULL_TOPICS,
    goal=lambda _: "topics",
    propose=propose_own_quotas,
    partial_note="",  # topics near a quota are reported by their own checks
    young_note="",
)
