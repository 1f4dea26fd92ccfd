"""A size quota of its own for a topic that retains more than its namespace, and needs more than that one's quota."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.numbering import batch_id, step_id
from pulsar_steward.model.plan import Batch
from pulsar_steward.model.setting import BacklogQuota, Retention, SettingName, in_words
from pulsar_steward.model.step import ChangeSetting, Step, Touched
from pulsar_steward.model.units import bytes_in_words
from pulsar_steward.planners.planning_facts import Proposal
from pulsar_steward.planners.settings.sizes import MEBIBYTE, below, needed, snapshots_in_words
from pulsar_steward.planners.settings.targets import may_need_more
from pulsar_steward.planners.snapshot_facts import guarded

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.planning_facts import PlanningFacts
    from pulsar_steward.planners.settings.facts import TopicFact
    from pulsar_steward.policy.remedies import BacklogQuotaRemedy

KIND = "backlog_quota"


class _Answer(msgspec.Struct, frozen=True):
    """A quota for a topic and its sum in words, or without a quota why there is none."""

    quota: BacklogQuota | None
    words: str


def propose_own_quotas(planning: PlanningFacts, taken: Collection[str]) -> Proposal:
    """A batch for each namespace with such topics; topics that retain no more than their namespace get nothing.

    Args:
        planning: The snapshot.
        taken: Namespaces whose own settings change in the same plan: their topics wait for the next one.
    """
    notes, steps = [], defaultdict[str, list[Step]](list)
    cases = _cases(planning)
    facts = {fact.topic: fact for fact in planning.topics}
    for topic in sorted(cases):
        fact = facts[topic]
        answer = None if fact.namespace in taken else _answer(fact, planning.policy.backlog_quota_remedy)
        if answer is None:
            continue
        if answer.quota is None:
            notes.append(f"{topic}: no quota of its own is proposed: {answer.words}.")
            continue
        step = _step(planning, fact, answer.quota, answer.words, len(steps[fact.namespace]) + 1)
        if vetoes := [f"{each.guard}: {each.reason}" for each in step.guards if not each.passed]:
            notes.append(f"{topic}: no quota of its own is proposed: {'; '.join(vetoes)}.")
        else:
            steps[fact.namespace].append(step)
    batches = tuple(_batch(namespace, tuple(ours), cases) for namespace, ours in sorted(steps.items()) if ours)
    return Proposal(batches=batches, notes=tuple(notes))


def _cases(planning: PlanningFacts) -> dict[str, list[Finding]]:
    """What was found for long enough, by topic (of a partitioned one, not by partition)."""
    cases = defaultdict[str, list["Finding"]](list)
    if planning.unread:
        return cases
    topic_of = {fact.subject: fact.topic for fact in planning.topics}
    for finding in planning.findings:
        standing = finding.snapshots_in_a_row >= planning.policy.plan.standing_snapshots
        if may_need_more(finding) and standing and finding.subject in topic_of:
            cases[topic_of[finding.subject]].append(finding)
    return cases


def _answer(fact: TopicFact, remedy: BacklogQuotaRemedy) -> _Answer | None:
    """None: it has a quota of its own, retains no more than its namespace, or needs no more than its quota."""
    common, kept = fact.inherited.get(SettingName.SIZE_QUOTA), fact.own.get(SettingName.RETENTION)
    if SettingName.SIZE_QUOTA in fact.own or not isinstance(common, BacklogQuota) or not isinstance(kept, Retention):
        return None
    need = needed(fact, remedy)
    if common.limit_bytes < 0 or need.bytes <= common.limit_bytes or not _retains_more(fact, kept):
        return None
    words = f"it needs {need.words}; its namespace's quota is {bytes_in_words(common.limit_bytes)}"
    limit, room = need.bytes, kept.megabytes * MEBIBYTE
    if kept.megabytes > 0 and limit > (most := below(room, remedy.retention_margin_percent)):
        words += (
            f", and its own retention of {bytes_in_words(room)} less {remedy.retention_margin_percent} % leaves"
            f" {bytes_in_words(most)}"
        )
        if most <= common.limit_bytes or fact.peak * (100 + remedy.peak_headroom_percent) // 100 > most:
            return _Answer(None, f"{words}: raise that by hand first")
        limit = most
    return _Answer(msgspec.structs.replace(common, limit_bytes=limit), words)


def _retains_more(fact: TopicFact, own: Retention) -> bool:
    """In size: what bounds a size quota."""
    common = fact.inherited.get(SettingName.RETENTION)
    if not isinstance(common, Retention):
        return True  # nothing set retains nothing
    return common.megabytes >= 0 and (own.megabytes < 0 or own.megabytes > common.megabytes)


def _step(planning: PlanningFacts, fact: TopicFact, quota: BacklogQuota, why: str, number: int) -> Step:
    change = ChangeSetting(
        namespace=fact.namespace, topic=fact.topic, name=SettingName.SIZE_QUOTA, before=None, after=quota
    )
    step = Step(
        step_id=step_id(batch_id(1), number),
        change=change,
        why=why,
        effect=(
            f"the {change.name} of {change.holder} is {in_words(change.name, quota)}; its largest backlog in"
            f" {snapshots_in_words(fact.snapshots)} was {bytes_in_words(fact.peak)}"
        ),
        touched=Touched(producers=0, consumers=0, topics=1, coordinators=0),
        undo=change.inverse,
        undo_note=f"Remove it again: {bytes_in_words(_common(fact))} of its namespace are in force then.",
    )
    return guarded(step, planning, place_in_run=number, holder=fact)


def _common(fact: TopicFact) -> int:
    quota = fact.inherited.get(SettingName.SIZE_QUOTA)
    return quota.limit_bytes if isinstance(quota, BacklogQuota) else -1


def _batch(namespace: str, steps: tuple[Step, ...], cases: dict[str, list[Finding]]) -> Batch:
    topics: Iterable[str] = (step.change.topic or "" for step in steps if isinstance(step.change, ChangeSetting))
    return Batch(
        batch_id=batch_id(1),
        kind=KIND,
        title=f"{namespace}: size quotas of their own for {len(steps)} topics",
        findings=tuple(finding for topic in topics for finding in cases[topic]),
        steps=steps,
    )
