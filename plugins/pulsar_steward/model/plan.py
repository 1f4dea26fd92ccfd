"""A plan: ordered batches of steps for one snapshot of one cluster, and the digest that an approval is bound to."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.decoding import decode
from pulsar_steward.model.canonical import canonical_json, digest
from pulsar_steward.model.cluster import ClusterIdentity, NamedCluster
from pulsar_steward.model.finding import Finding
from pulsar_steward.model.loss import NOTHING_LOST, Loss
from pulsar_steward.model.step import Change, ChangeSetting, SetIsolation, SplitBundle, Step, UnloadBundle

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

ROLLBACK = "rollback"
"""Kind of a batch that rolls back another one."""

BUNDLE_SPLIT = "bundle_split"
"""Kind of a batch that splits a namespace's bundles; it may move parts of them as well."""

BUNDLE_BALANCE = "bundle_balance"
"""Kind of a batch that moves bundles between brokers; its rules count for moves of parts as well."""

BROKER_DRAIN = "broker_drain"
"""Kind of a batch that empties a broker marked as draining."""

BROKER_GROUP = "broker_group"
"""Kind of a batch that sets the isolation policy of a group of brokers, and moves bundles to the group."""

TC_COUNT = "tc_count"
"""Kind of a batch that raises the number of transaction coordinators."""

TOPIC_PARTITIONS = "topic_partitions"
"""Kind of a batch that raises the number of a topic's partitions; none of its steps can be rolled back."""

SUBSCRIPTION_DELETION = "subscription_deletion"
"""Kind of a batch that deletes abandoned subscriptions; none of its steps can be rolled back."""

KINDS = (
    TC_COUNT,
    "tc_balance",
    BUNDLE_SPLIT,
    BUNDLE_BALANCE,
    BROKER_DRAIN,
    BROKER_GROUP,
    "backlog_quota",
    "retention",
    TOPIC_PARTITIONS,
    "persistence",
    SUBSCRIPTION_DELETION,
    ROLLBACK,
)
"""Every kind of batch; policies name them."""


class Placement(msgspec.Struct, frozen=True, order=True):
    """Number of balanced items on a broker."""

    broker: str
    count: int


class TakenBack(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that a rollback undoes.

    Attributes:
        kind: Its kind.
        findings: The findings that it had resolved, which return.
    """

    kind: str
    findings: tuple[Finding, ...] = ()


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """The steps that a person approves together: one kind, and one namespace or one goal of the whole cluster.

    A policy may group several batches of one kind into one question (`pulsar_steward.orchestration.grouping`).

    Attributes:
        batch_id: Unique within its plan, such as ``b1``; empty until the plan numbers it.
        kind: The planner that made it, such as ``tc_balance``.
        title: A line that describes it.
        findings: The findings that it resolves.
        steps: The steps, in the order in which they run.
        unit: Unit of `before` and `after`, in the plural.
        before: Placement at the snapshot, brokers in order of their ids.
        after: Placement after all steps.
        parts: Number of steps of each batch in a group, in order; unset for a single batch, so that plans without
            groups have no such key.
        takes_back: For a rollback, the relevant data of the batch that it undoes; else unset.
        unlisted: Number of findings that the snapshot only counts, and that it resolves or may resolve; unset if there
            are none.
    """

    batch_id: str = ""
    kind: str
    title: str
    findings: tuple[Finding, ...]
    steps: tuple[Step, ...]
    unit: str = ""
    before: tuple[Placement, ...] = ()
    after: tuple[Placement, ...] = ()
    parts: tuple[int, ...] | msgspec.UnsetType = msgspec.UNSET
    takes_back: TakenBack | msgspec.UnsetType = msgspec.UNSET
    unlisted: int | msgspec.UnsetType = msgspec.UNSET

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes of its steps, in order."""
        return tuple(step.change for step in self.steps)

    @property
    def is_rollback(self) -> bool:
        """True if it rolls back another batch."""
        return self.kind == ROLLBACK

    @property
    def planned_as(self) -> str:
        """Its kind; for a rollback, that of the undone batch."""
        return self.takes_back.kind if isinstance(self.takes_back, TakenBack) else self.kind

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of what it does: that of `planned_as`, and that of moves if it moves parts of split bundles."""
        moves = any(isinstance(step.change, UnloadBundle) for step in self.steps)
        return (BUNDLE_SPLIT, BUNDLE_BALANCE) if self.planned_as == BUNDLE_SPLIT and moves else (self.planned_as,)

    @property
    def further_goals(self) -> tuple[str, ...]:
        """Goals of its moves of parts, besides `goal_of` it: a no to these is a no to this batch, not vice versa."""
        return () if self.is_rollback else self.kinds[1:]

    @property
    def answered_as(self) -> tuple[str, ...]:
        """Kinds whose rules on people apply to it: `kinds`, and for a rollback that of rollbacks too."""
        return self.kinds if self.planned_as == self.kind else (self.kind, *self.kinds)

    @property
    def kinds_in_words(self) -> str:
        """The kinds of `answered_as`, as text."""
        of = "" if self.planned_as == self.kind else f"{self.kind} of a "
        return of + " and ".join(self.kinds)

    @property
    def returning(self) -> tuple[Finding, ...]:
        """Findings that return with a rollback; empty for any other batch."""
        return self.takes_back.findings if isinstance(self.takes_back, TakenBack) else ()

    def step(self, step_id: str) -> Step:
        """Returns the step with this id.

        Raises:
            KeyError: If the batch has no such step.
        """
        for step in self.steps:
            if step.step_id == step_id:
                return step
        raise KeyError(step_id)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Proposed changes for one cluster. The same snapshot, policy and record of moves give the same bytes.

    Attributes:
        cluster: The cluster's name in Steward's connections.
        snapshot_id: The snapshot that it is based on.
        taken_at: Snapshot time, UTC.
        pulsar_cluster: Identity of the Pulsar cluster.
        policy_digest: Digest of the policy in force.
        batches: The batches, in the order in which they should be carried out.
        notes: Reasons for everything that is not proposed: below a threshold, vetoed, or not known.
        unread: Brokers and namespaces missing in the snapshot; unset if there are none, so that plans of complete
            snapshots keep their digests.
    """

    cluster: str
    snapshot_id: str
    taken_at: datetime
    pulsar_cluster: ClusterIdentity
    policy_digest: str
    batches: tuple[Batch, ...] = ()
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET

    @property
    def lacking(self) -> tuple[str, ...]:
        """Brokers and namespaces missing in the snapshot; empty: it is complete."""
        return () if isinstance(self.unread, msgspec.UnsetType) else self.unread

    @property
    def named_cluster(self) -> NamedCluster:
        """The cluster by its name in Steward's connections, and by its identity."""
        return NamedCluster(self.cluster, self.pulsar_cluster)

    @property
    def digest(self) -> str:
        """Digest that an approval is bound to: SHA-256 over the whole plan in canonical form."""
        return digest(self)

    @property
    def plan_id(self) -> str:
        """Short name, unique by its digest: ``<snapshot id>-<12 digits of the digest>``."""
        return f"{self.snapshot_id}-{self.digest[:12]}"

    @property
    def proposal_digest(self) -> str:
        """Digest of the changes alone, without the snapshot: an equal proposal needs no second approval request."""
        return digest([self.cluster, [[step.change for step in batch.steps] for batch in self.batches]])

    def batch(self, batch_id: str) -> Batch:
        """Returns the batch with this id.

        Raises:
            KeyError: If the plan has no such batch.
        """
        for batch in self.batches:
            if batch.batch_id == batch_id:
                return batch
        raise KeyError(batch_id)

    def encoded(self) -> bytes:
        """Canonical form, as the ledger stores it."""
        return canonical_json(self)

    @classmethod
    def decoded(cls, document: bytes | str) -> Plan:
        """Decodes the result of `encoded`.

        Raises:
            msgspec.ValidationError: If the document is not a plan, or an id in it is empty or duplicate.
        """
        plan = decode(document, cls)
        ids = [each.batch_id for each in plan.batches]
        steps = [[step.step_id for step in each.steps] for each in plan.batches]
        for each in (ids, *steps):
            if len(each) != len(set(each)) or "" in each:
                raise msgspec.ValidationError(f"no id, or one twice, among {', '.join(each)}: an approval names one")
        return plan


def approval_digest(plan: Plan, batch_id: str, step_ids: Collection[str]) -> str:
    """Digest of the scope of one approval: exactly these steps of exactly this batch of exactly this plan.

    Raises:
        KeyError: If the batch or one of the steps is not in the plan.
    """
    batch = plan.batch(batch_id)
    chosen = set(step_ids)
    if unknown := chosen - {step.step_id for step in batch.steps}:
        raise KeyError(min(unknown))
    steps = [step for step in batch.steps if step.step_id in chosen]
    return digest([plan.digest, batch_id, steps])


def step_id(batch: str, number: int) -> str:
    """Id of a batch's step, counted from 1: ``b1.s02``."""
    return f"{batch}.s{number:02d}"


def numbered(batches: Iterable[Batch]) -> tuple[Batch, ...]:
    """The batches of a plan, in order, with their ids (``b1``), and the ids and the order of their steps."""
    return tuple(
        msgspec.structs.replace(batch, batch_id=(name := f"b{number}"), steps=tuple(_numbered(batch.steps, name)))
        for number, batch in enumerate(batches, start=1)
    )


def _numbered(steps: Iterable[Step], batch: str) -> Iterator[Step]:
    """Each step after the split that makes its bundle, the policy of its group, or its namespace's earlier settings.

    Brokers compare a namespace's settings with each other, and each setting was computed together with the earlier
    ones.
    """
    makers: defaultdict[tuple[str, str], tuple[str, ...]] = defaultdict(tuple)
    groups: tuple[str, ...] = ()
    for number, step in enumerate(steps, start=1):
        name, change = step_id(batch, number), step.change
        needs, makes, first = "", tuple[str, ...](), tuple[str, ...]()
        match change:
            case SetIsolation():
                groups += (name,)
            case UnloadBundle():
                needs, first = change.bundle, groups
            case SplitBundle():
                needs, makes = change.bundle, change.halves
            case ChangeSetting(topic=None):
                needs, makes = "settings", ("settings",)
        yield msgspec.structs.replace(step, step_id=name, after=first + makers[change.namespace, needs])
        for made in makes:
            makers[change.namespace, made] += (name,)


# It consists of the changes, their objects, their order, and the results of the guards. It excludes the snapshot,
# and all figures that differ in every snapshot (clients, effects, reasons, the age of findings). It excludes the
# loss and the messages in flight too: a question stays open as long as these are at most what it says.
def content_digest(plan: Plan, batch: Batch) -> str:
    """Digest of a batch's content: equal in two plans that ask the same about the same Pulsar cluster."""
    places = {step.step_id: number for number, step in enumerate(batch.steps)}
    steps = [
        {
            "change": step.change,
            "undo": step.undo,
            "after": [places[earlier] for earlier in step.after],
            "undoes": step.undoes,
            "guards": sorted([guard.guard, guard.passed] for guard in step.guards),
        }
        for step in batch.steps
    ]
    return digest([plan.cluster, plan.pulsar_cluster, batch.kind, steps])


def changes_digest(plan: Plan, batch: Batch) -> str:
    """Digest of a batch's changes alone, in their order: a rejection applies to them, whatever else a plan says."""
    return _digest_of_all(plan, covered_by_rejection(batch))


def _digest_of_all(plan: Plan, batch: Batch) -> str:
    return digest([plan.cluster, plan.pulsar_cluster, [[step.change, step.undoes] for step in batch.steps]])


def goal_digest(plan: Plan, batch: Batch) -> str:
    """Digest of a batch's goal alone: the answers snooze and never apply to it, whatever value a plan proposes."""
    return digest([plan.cluster, plan.pulsar_cluster, goal_of(batch)])


def no_digests(plan: Plan, batch: Batch) -> frozenset[str]:
    """Digests of a batch's changes and of its own goal: a no to one of them elsewhere is a no to the batch.

    Earlier versions recorded a no to all changes, with moves of parts: it stays a no to exactly these.
    """
    return frozenset({changes_digest(plan, batch), _digest_of_all(plan, batch), goal_digest(plan, batch)})


def further_digests(plan: Plan, batch: Batch) -> frozenset[str]:
    """Digests of the goals of a batch's moves of parts: a no to these is a no to the batch as well."""
    return frozenset(digest([plan.cluster, plan.pulsar_cluster, goal]) for goal in batch.further_goals)


def covered_by_rejection(batch: Batch) -> Batch:
    """The steps that a rejection covers: of splits with moves only the splits, of a broker group only its policy.

    Targets follow the load of the moment, so a rejection of these very moves would hold for one observation.
    """
    if not batch.further_goals and not any(isinstance(step.change, SetIsolation) for step in batch.steps):
        return batch
    steps = tuple(step for step in batch.steps if not isinstance(step.change, UnloadBundle))
    return msgspec.structs.replace(batch, steps=steps)


def goal_of(batch: Batch) -> str:
    """Goal of a batch: its kind with its namespaces or its groups; the kind alone if it moves bundles and no more."""
    return " ".join([batch.kind, *sorted(_subjects(batch))])


def _subjects(batch: Batch) -> tuple[str, ...]:
    """Namespaces, or groups of brokers, of a batch, each once; empty if it moves bundles between other brokers."""
    return tuple(dict.fromkeys(subject for step in batch.steps if (subject := _subject(step)) is not None))


def _subject(step: Step) -> str | None:
    match step.change:
        case UnloadBundle():
            return step.group if isinstance(step.group, str) else None
        case SetIsolation(policy=group):
            return group
        case change:
            return change.namespace


def namespace_of(batch: Batch) -> str | None:
    """The only namespace that a batch is about; None: there are several, or it is about brokers."""
    namespaces = namespaces_of(batch)
    return namespaces[0] if len(namespaces) == 1 else None


def share_goal(goal: str, other: str) -> bool:
    """True if two goals, as returned by `goal_of`, share a kind and a namespace, or the kind of moves."""
    return not goals_in(goal).isdisjoint(goals_in(other))


def goals_in(goal: str) -> frozenset[str]:
    """Goals of the parts of a batch, from the goal by `goal_of`; names of namespaces have no spaces."""
    kind, *namespaces = goal.split(" ")
    return frozenset(f"{kind} {namespace}" for namespace in namespaces) or frozenset({kind})


def loses_more(batch: Batch, asked: Batch) -> bool:
    """True if a step of a batch would lose or redeliver more than the same step of another batch with equal content."""
    return any(
        _loss(new).exceeds(_loss(old)) or new.moving_messages.outgrew(old.moving_messages)
        for new, old in zip(batch.steps, asked.steps, strict=True)
    )


def reaches_others(batch: Batch, asked: Batch) -> bool:
    """True if an isolation policy matches other namespaces or brokers than in another batch with equal content."""
    return any(new.reach != old.reach for new, old in zip(batch.steps, asked.steps, strict=True))


def _loss(step: Step) -> Loss:
    return step.loss if isinstance(step.loss, Loss) else NOTHING_LOST


def parts_of(batch: Batch) -> tuple[Batch, ...]:
    """Parts of a group, with its steps as numbered in the group; any other batch is its only part.

    A part has the title and the findings of its group, as the group does not record the findings of each part.
    """
    if isinstance(batch.parts, msgspec.UnsetType):
        return (batch,)
    edges = [0]
    for steps in batch.parts:
        edges.append(edges[-1] + steps)
    return tuple(
        msgspec.structs.replace(batch, steps=batch.steps[first:end], parts=msgspec.UNSET)
        for first, end in pairwise(edges)
    )


def namespaces_of(batch: Batch) -> tuple[str, ...]:
    """Namespaces of a batch, in the order of its steps; empty if it is about brokers."""
    return () if any(isinstance(step.change, SetIsolation) for step in batch.steps) else _subjects(batch)


def is_about_several(batch: Batch) -> bool:
    """True for a group of several namespaces, and for the rollback of one: the answer may leave some of them out."""
    may_be = batch.is_rollback or not isinstance(batch.parts, msgspec.UnsetType)
    return may_be and len(namespaces_of(batch)) > 1
