"""Planner: gives topics their own size quotas, if they retain more than their namespace and need more room."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.plan import Batch
from pulsar_steward.model.setting import BacklogQuota, Retention, SettingName, in_words
from pulsar_steward.model.step import ChangeSetting, Step, Touched
from pulsar_steward.model.units import MIB, bytes_in_words, counted
from pulsar_steward.planners.base import Planner, Proposal, reasons_against
from pulsar_steward.planners.settings.namespaces import QUOTA_KIND
from pulsar_steward.planners.settings.sizes import ProposedQuota, below, needed
from pulsar_steward.planners.settings.targets import OF_FULL_TOPICS
from pulsar_steward.planners.snapshot_facts import guarded

if TYPE_CHECKING:
    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.planners.settings.facts import TopicSettings
    from pulsar_steward.policy.remedies import BacklogQuotaRemedy


def propose(planning: PlanningFacts, _: str, findings: tuple[Finding, ...]) -> Proposal:
    """A batch for each namespace with such topics; topics that retain no more than their namespace get no quota.

    Topics of namespaces whose own settings change in the same plan wait for the next one.
    """
    notes: list[str] = []
    steps: defaultdict[str, dict[str, Step]] = defaultdict(dict)
    facts = {fact.topic: fact for fact in planning.topics}
    cases = _cases(planning, findings)
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


def _cases(planning: PlanningFacts, findings: tuple[Finding, ...]) -> dict[str, list[Finding]]:
    """The findings by topic (partitioned topic, not partition), for topics with settings of their own."""
    cases: defaultdict[str, list[Finding]] = defaultdict(list)
    topic_of = {fact.subject: fact.topic for fact in planning.topics}
    for finding in findings:
        if finding.subject in topic_of:
            cases[topic_of[finding.subject]].append(finding)
    return cases


def _answer(fact: TopicSettings, remedy: BacklogQuotaRemedy) -> ProposedQuota | None:
    """The proposed quota; None: it already has its own, retains no more than its namespace, or its quota is enough."""
    common, kept = fact.inherited.get(SettingName.SIZE_QUOTA), fact.own.get(SettingName.RETENTION)
    if SettingName.SIZE_QUOTA in fact.own or not isinstance(common, BacklogQuota) or not isinstance(kept, Retention):
        return None
    need = needed(fact, remedy)
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
    change = ChangeSetting(
        namespace=fact.namespace,
        topic=fact.topic,
        name=SettingName.SIZE_QUOTA,
        before=None,
        after=quota,
        inherited=fact.inherited.get(SettingName.SIZE_QUOTA),
    )
    step = Step(
        change=change,
        why=why,
        effect=(
            f"the {change.name} of {change.holder} is {in_words(change.name, quota)}; its largest backlog in"
            f" {counted(fact.snapshots, 'snapshot')} was {bytes_in_words(fact.peak)}"
        ),
        touched=Touched(producers=0, consumers=0, topics=1, coordinators=0),
        undo=change.inverse,
        undo_note=f"Remove it again: {bytes_in_words(_common(fact))} of its namespace are in force then.",
    )
    return guarded(step, planning, place_in_run=number, holder=fact)


def _common(fact: TopicSettings) -> int:
    quota = fact.inherited.get(SettingName.SIZE_QUOTA)
    return quota.limit_bytes if isinstance(quota, BacklogQuota) else -1


PLANNER = Planner(
    kinds=(QUOTA_KIND,),
    answers=OF_FULL_TOPICS,
    goal=lambda _: "topics",
    propose=propose,
    partial_note="",  # topics near a quota are reported by their own checks
    young_note="",
)
