"""The way back: a plan of inverse steps for one batch that was carried out, from the ledger and the live cluster.

It changes nothing by itself. It is recorded, asked about, carried out and proved as any other plan is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.apply.live_facts import LiveFacts
from pulsar_steward.apply.verify import coordinators_in
from pulsar_steward.apply.whole_look import WholeLook
from pulsar_steward.errors import AdminError, Refused
from pulsar_steward.guard.evaluate import evaluate
from pulsar_steward.model.bundles import TC_NAMESPACE
from pulsar_steward.model.numbering import batch_id, step_id
from pulsar_steward.model.plan import ROLLBACK, Batch, Plan
from pulsar_steward.model.setting import Setting, in_words
from pulsar_steward.model.step import Change, ChangeSetting, SplitBundle, Step, Touched, UnloadBundle

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pulsar_steward.apply.applied import Applied, DoneStep
    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.model.cluster import ClusterIdentity
    from pulsar_steward.policy.schema import Policy

ONLY_BATCH = batch_id(1)


def rollback_plan(ledger: LedgerReader, look: LiveReader, policy: Policy, applied: Applied, now: datetime) -> Plan:
    """The plan that takes a batch back, its notes saying what it cannot.

    What was done last is taken back first. What somebody changed since is left alone.

    Args:
        ledger: What was done before, for the guards.
        look: Reads the cluster.
        policy: Thresholds and limits.
        applied: The batch.
        now: The present, UTC.

    Raises:
        Refused: If nothing of it can be taken back, with every reason.
    """
    draft = Plan(
        cluster=applied.cluster,
        snapshot_id=f"{applied.cluster}-{now:%Y%m%dT%H%M%SZ}",
        taken_at=now,
        pulsar_cluster=_same_cluster(look, applied),
        policy_digest=policy.digest,
    )
    steps: dict[str, Step] = {}
    whole = WholeLook(look, policy)
    notes = list(applied.doubts)
    for done in reversed(applied.done):
        name = done.step.step_id
        try:
            step = _inverse(look, applied, done, step_id(ONLY_BATCH, len(steps) + 1))
            whole.begin()
            facts = LiveFacts(whole, ledger, draft, ONLY_BATCH, step, now, len(steps) + 1)
            steps[name] = _guarded(_in_order(step, done, steps, applied), facts, policy)
        except AdminError as error:
            notes.append(f"{name}: it stays, as the cluster cannot be read: {error}")
        except Refused as reason:
            notes.append(f"{name}: {reason}")
    if not steps:
        nothing = f"nothing of batch {applied.batch.batch_id} of plan {applied.plan_id} can be taken back"
        raise Refused("; ".join([nothing, *notes]))
    batch = Batch(batch_id=ONLY_BATCH, kind=ROLLBACK, title=_title(applied), findings=(), steps=tuple(steps.values()))
    return msgspec.structs.replace(draft, batches=(batch,), notes=tuple(notes))


def _same_cluster(look: LiveReader, applied: Applied) -> ClusterIdentity:
    """The cluster that answers, if it is the one that was changed."""
    try:
        answers = look.identity()
    except AdminError as error:
        raise Refused(f"nothing is taken back, as the cluster cannot be read: {error}") from error
    if applied.planned_for is not None and not applied.planned_for.is_same(answers):
        raise Refused(
            f"Pulsar cluster {answers} answers, and what is to be taken back was done in {applied.planned_for}"
        )
    return answers


def _title(applied: Applied) -> str:
    batch = applied.batch
    return f"Take back batch {batch.batch_id} of plan {applied.plan_id}, {applied.approval}: {batch.title}"


def _in_order(step: Step, done: DoneStep, steps: Mapping[str, Step], applied: Applied) -> Step:
    """What needed this step to be done first has to be taken back first."""
    name = done.step.step_id
    later = [each.step.step_id for each in applied.done if name in each.step.after]
    return msgspec.structs.replace(step, after=tuple(steps[each].step_id for each in reversed(later) if each in steps))


def _guarded(step: Step, facts: ClusterFacts, policy: Policy) -> Step:
    """The step with what the guards say; one that would stop the whole batch is not proposed."""
    guards = evaluate(step, facts, policy)
    if vetoes := [f"{each.guard}: {each.reason}" for each in guards if not each.passed]:
        raise Refused(f"not proposed now, as the guards object: {'; '.join(vetoes)}")
    return msgspec.structs.replace(step, guards=guards)


def _inverse(look: LiveReader, applied: Applied, done: DoneStep, name: str) -> Step:
    """The step that takes one back.

    Raises:
        Refused: If it stays as it is, with the reason.
        AdminError: If the cluster cannot be read.
    """
    if by := applied.rolled_back.get(done.step.step_id):
        raise Refused(f"taken back already, by plan {by}")
    match done.change:
        case ChangeSetting():
            return _setting_back(look, applied, done, done.change, name)
        case UnloadBundle():
            return _bundle_back(look, applied, done, done.change, name)
        case SplitBundle():
            raise Refused(
                f"the split of {done.change.namespace}/{done.change.bundle} cannot be undone: Pulsar does not join"
                " bundles again"
            )


def _setting_back(look: LiveReader, applied: Applied, done: DoneStep, made: ChangeSetting, name: str) -> Step:
    former = msgspec.convert(done.former["value"], Setting | None)
    what = f"the {made.name} of {made.holder}"
    now = look.own_setting(made)
    then, before = in_words(made.name, made.after), in_words(made.name, former)
    if now != made.after:
        did = "removed it" if made.after is None else f"set it to {then}"
        raise Refused(
            f"{what} is {in_words(made.name, now)} since somebody changed it; Steward had {did}, before it was"
            f" {before}; it is left as it is"
        )
    back = ChangeSetting(namespace=made.namespace, topic=made.topic, name=made.name, before=made.after, after=former)
    return _step(
        applied,
        done,
        back,
        step_id=name,
        why=f"changed {what} from {before} to {then}",
        effect=f"{what} is {before}, as it was before",
        touched=done.step.touched,
        undo=back.inverse,
        undo_note=f"Set it once more: {then}.",
    )


def _bundle_back(look: LiveReader, applied: Applied, done: DoneStep, made: UnloadBundle, name: str) -> Step:
    home, bundle = done.former["owner"], f"{made.namespace}/{made.bundle}"
    if made.bundle not in (look.bundles(made.namespace) or ()):
        raise Refused(f"{bundle} is no more: it was divided otherwise, or deleted, since Steward moved it")
    owner = look.owner(made.namespace, made.bundle, likely=made.target)
    if owner != made.target:
        raise Refused(
            f"{owner or 'nobody'} owns {bundle} since somebody moved it; Steward had moved it to {made.target}, before"
            f" {home} owned it; it is left where it is"
        )
    if home not in look.brokers() or isinstance(look.owned_by_each([home])[home], AdminError):
        raise Refused(
            f"{bundle} stays on {made.target}: its former broker {home} is no longer listed, or does not answer"
        )
    back = UnloadBundle(namespace=made.namespace, bundle=made.bundle, source=made.target, target=home)
    return _step(
        applied,
        done,
        back,
        step_id=name,
        why=f"moved {bundle} from {home} to {made.target}",
        effect=f"{home} owns {bundle} again",
        touched=_touched(look, back),
        undo=UnloadBundle(namespace=made.namespace, bundle=made.bundle, source=home, target=made.target),
        undo_note=f"Unload it from {home} to {made.target} once more: the same clients reconnect.",
    )


def _step(applied: Applied, done: DoneStep, change: Change, *, why: str, **fields: Any) -> Step:
    """What all inverse steps have: which step they take back, and that it was Steward who made it."""
    name = done.step.step_id
    return Step(
        change=change,
        why=f"{name} of plan {applied.plan_id} {why} at {done.at:%Y-%m-%d %H:%M:%S} UTC",
        undoes=f"{applied.plan_id}/{name}",
        **fields,
    )


def _touched(look: LiveReader, change: UnloadBundle) -> Touched:
    """Whom the move back disturbs, by its present owner's statistics."""
    topics = look.topics(change.source, change.namespace, change.bundle)
    bundle = (f"{change.namespace}/{change.bundle}",)
    return Touched(
        producers=sum(topic.producer_count for topic in topics.values()),
        consumers=sum(topic.consumer_count for topic in topics.values()),
        topics=len(topics),
        coordinators=coordinators_in(bundle, look.coordinators()) if change.namespace == TC_NAMESPACE else 0,
    )
