"""One batch a namespace: the settings that its findings ask for, in an order that the broker accepts."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.guard.evaluate import evaluate
from pulsar_steward.guard.view import SettingView
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.numbering import batch_id, step_id
from pulsar_steward.model.plan import Batch
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName, bytes_in_words, in_words
from pulsar_steward.model.step import ChangeSetting, Step, Touched
from pulsar_steward.planners.scene import Proposal
from pulsar_steward.planners.settings.facts import MOST_BACKLOGS
from pulsar_steward.planners.settings.order import in_order
from pulsar_steward.planners.settings.sizes import snapshots_in_words
from pulsar_steward.planners.settings.topics import propose_for_topics
from pulsar_steward.planners.settings.wanted import ANSWERED, is_of_topic, namespace_of, wanted
from pulsar_steward.planners.viewing import view_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.model.finding import Finding
    from pulsar_steward.planners.scene import Scene
    from pulsar_steward.planners.settings.facts import NamespaceFact
    from pulsar_steward.planners.settings.wanted import Wanted

QUOTA_KIND = "backlog_quota"
RETENTION_KIND = "retention"


def propose(scene: Scene) -> Proposal:
    """A batch for each namespace whose quotas, retention or time to live are wrong; none from a partial snapshot."""
    found = _findings(scene)
    if found and scene.unread:
        partial = f"Settings: nothing is proposed, as the snapshot is partial without {', '.join(scene.unread)}."
        return Proposal(notes=(partial,))
    facts = {fact.namespace: fact for fact in scene.namespaces}
    needed = scene.policy.plan.standing_snapshots
    of_topics = [each for findings in found.values() for each in findings if is_of_topic(each)]
    proposals = [
        _of_namespace(scene, facts.get(name), name, findings)
        for name, findings in sorted(found.items())
        if not all(is_of_topic(finding) for finding in findings)
    ]
    taken = {step.change.namespace for each in proposals for batch in each.batches for step in batch.steps}
    standing = [finding for finding in of_topics if finding.snapshots_in_a_row >= needed]
    proposals.append(propose_for_topics(scene, standing, taken))
    return Proposal(
        batches=tuple(batch for each in proposals for batch in each.batches),
        notes=tuple(note for each in proposals for note in each.notes),
    )


def _findings(scene: Scene) -> dict[str, tuple[Finding, ...]]:
    """Findings that can be answered, by namespace."""
    by_namespace: dict[str, list[Finding]] = defaultdict(list)
    for finding in scene.findings:
        if finding.check_id in ANSWERED and finding.severity.rank >= Severity.WARNING.rank:
            by_namespace[namespace_of(finding)].append(finding)
    return {name: tuple(findings) for name, findings in by_namespace.items()}


def _of_namespace(scene: Scene, fact: NamespaceFact | None, name: str, findings: tuple[Finding, ...]) -> Proposal:
    if fact is None:
        return Proposal(notes=(f"{name}: nothing is proposed, as its settings are not in the snapshot.",))
    needed = scene.policy.plan.standing_snapshots
    standing = tuple(finding for finding in findings if finding.snapshots_in_a_row >= needed)
    if not standing:
        young = (
            f"{name}: nothing is proposed yet, as its findings have not stood for {needed} snapshots in a row"
            " (plan.standing_snapshots)."
        )
        return Proposal(notes=(young,))
    decided = wanted(fact, frozenset(finding.check_id for finding in standing), scene.defaults, scene.policy)
    notes = tuple(f"{name}: {note}." for note in decided.notes)
    steps = tuple(_steps(scene, fact, decided))
    if not steps:
        return Proposal(notes=notes or (f"{name}: nothing is proposed, as no setting would be better.",))
    # What is left of a batch without one of its steps is not what was worked out: none of it is proposed then.
    if vetoes := [f"{each.guard}: {each.reason}" for step in steps for each in step.guards if not each.passed]:
        return Proposal(notes=(*notes, f"{name}: nothing is proposed: {'; '.join(dict.fromkeys(vetoes))}."))
    names = {step.change.name for step in steps if isinstance(step.change, ChangeSetting)}
    kind = RETENTION_KIND if names & {SettingName.RETENTION, SettingName.TTL} else QUOTA_KIND
    batch = Batch(batch_id=batch_id(1), kind=kind, title=_title(name, steps), findings=standing, steps=steps)
    return Proposal(batches=(batch,), notes=notes)


def _title(namespace: str, steps: Sequence[Step]) -> str:
    changes = [step.change for step in steps if isinstance(step.change, ChangeSetting)]
    return f"{namespace}: " + ", ".join(f"{change.name} to {in_words(change.name, change.after)}" for change in changes)


def _steps(scene: Scene, fact: NamespaceFact, decided: Wanted) -> Iterator[Step]:
    changes = in_order(
        ChangeSetting(namespace=fact.namespace, name=name, before=fact.own.get(name), after=value)
        for name, value in decided.target.items()
        if name in decided.why and fact.own.get(name) != value
    )
    earlier: tuple[str, ...] = ()
    for number, change in enumerate(changes, start=1):
        name = step_id(batch_id(1), number)
        step = Step(
            step_id=name,
            change=change,
            why=decided.why[change.name],
            effect=effect(fact, change),
            touched=Touched(producers=0, consumers=0, topics=fact.looks[0].topics, coordinators=0),
            undo=change.inverse,
            undo_note=f"Set it back: {in_words(change.name, change.before)}.",
            after=earlier,
        )
        view = view_of(scene, place_in_run=number, setting=_setting(scene, change, fact))
        yield msgspec.structs.replace(step, guards=evaluate(step, view))
        if change.name is not SettingName.TTL:
            earlier = (*earlier, name)


def effect(fact: NamespaceFact, change: ChangeSetting) -> str:
    """What the cluster will show, and what the change would have done in the last snapshots."""
    words = f"the {change.name} of {change.holder} is {in_words(change.name, change.after)}"
    if not isinstance(change.after, BacklogQuota) or change.name is not SettingName.SIZE_QUOTA:
        return words
    limit = change.after.limit_bytes
    over = max(look.over(limit) for look in fact.looks)
    many = f"{over:,} or more" if over == MOST_BACKLOGS else f"{over:,}"
    topics = max(look.topics for look in fact.looks)
    last = "snapshot" if len(fact.looks) == 1 else snapshots_in_words(len(fact.looks))
    words += f"; of {topics:,} topics, {many} would have been over it in the last {last}"
    if change.after.policy is QuotaPolicy.EVICT:
        return f"{words}, and {bytes_in_words(max(look.evicted(limit) for look in fact.looks))} evicted"
    stopped = "held" if change.after.policy is QuotaPolicy.HOLD else "refused"
    return f"{words}, and {max(look.held(limit) for look in fact.looks):,} producers {stopped}"


def _setting(scene: Scene, change: ChangeSetting, fact: NamespaceFact) -> SettingView:
    return SettingView(
        now=change.before,
        largest_backlog_bytes=fact.looks[0].peak,
        quotas_are_checked=scene.quotas_are_checked,
        clocks_differ_milliseconds=scene.clocks_differ_milliseconds,
        delayed_messages=fact.delayed_messages,
    )
