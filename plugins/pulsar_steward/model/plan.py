"""A plan: ordered batches of steps for one snapshot of one cluster, and the digest that an approval is bound to."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.canonical import canonical_json, digest
from pulsar_steward.model.cluster import ClusterIdentity
from pulsar_steward.model.finding import Finding
from pulsar_steward.model.learned import Learned
from pulsar_steward.model.step import Step

if TYPE_CHECKING:
    from collections.abc import Collection


ROLLBACK = "rollback"
"""Kind of a batch that rolls back another one."""

BROKER_DRAIN = "broker_drain"
"""Kind of a batch that empties a broker, as somebody marked it."""

TC_COUNT = "tc_count"
"""Kind of a batch that raises the number of transaction coordinators."""

SUBSCRIPTION_DELETION = "subscription_deletion"
"""Kind of a batch that deletes abandoned subscriptions; of none of its steps there is a way back."""

KINDS = (
    TC_COUNT,
    "tc_balance",
    "bundle_split",
    "bundle_balance",
    BROKER_DRAIN,
    "backlog_quota",
    "retention",
    SUBSCRIPTION_DELETION,
    ROLLBACK,
)
"""Every kind of batch; policies name them."""


class Placement(msgspec.Struct, frozen=True, order=True):
    """Number of balanced items that a broker holds."""

    broker: str
    count: int


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """The steps that a person approves together: one kind, and one namespace or one goal of the whole cluster.

    A policy may have several of them, of one kind, asked about together (`pulsar_steward.orchestration.grouping`).

    Attributes:
        batch_id: Unique within its plan, such as ``b1``.
        kind: The planner that made it, such as ``tc_balance``.
        title: A line that describes it.
        findings: The findings that it resolves.
        steps: The steps, in the order in which they run.
        unit: What `before` and `after` count, in the plural.
        before: Placement at the snapshot, brokers in order of their ids.
        after: Placement when every step is done.
        parts: Number of steps of each of the batches that are asked about together in this one, in order; unset where
            it is one alone, so that plans without groups have no such key.
    """

    batch_id: str
    kind: str
    title: str
    findings: tuple[Finding, ...]
    steps: tuple[Step, ...]
    unit: str = ""
    before: tuple[Placement, ...] = ()
    after: tuple[Placement, ...] = ()
    parts: tuple[int, ...] | msgspec.UnsetType = msgspec.UNSET

    @property
    def is_rollback(self) -> bool:
        """True if it rolls back another batch."""
        return self.kind == ROLLBACK

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
        pulsar_cluster: Identity of the Pulsar cluster; unset in an earlier Steward's plans, which keep their digests.
        policy_digest: Digest of the policy in force.
        batches: The batches, in the order in which they should be carried out.
        notes: Reasons for everything that is not proposed: below a threshold, vetoed, or not known.
        unread: Brokers and namespaces that the snapshot lacks; unset where it lacks none, so that plans of complete
            snapshots keep their digests.
        learned: How quickly topics were served again after a broker had gone; unset where that was not seen.
    """

    cluster: str
    snapshot_id: str
    taken_at: datetime
    pulsar_cluster: ClusterIdentity | msgspec.UnsetType = msgspec.UNSET
    policy_digest: str
    batches: tuple[Batch, ...] = ()
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    learned: Learned | msgspec.UnsetType = msgspec.UNSET

    @property
    def lacking(self) -> tuple[str, ...]:
        """Brokers and namespaces that the snapshot lacks; empty: it is complete, or an earlier Steward's."""
        return () if isinstance(self.unread, msgspec.UnsetType) else self.unread

    @property
    def learned_rate(self) -> Learned | None:
        """How quickly topics were served again after a broker had gone; None: not known, or an earlier Steward's."""
        return None if isinstance(self.learned, msgspec.UnsetType) else self.learned

    @property
    def planned_for(self) -> ClusterIdentity | None:
        """Identity of the Pulsar cluster; None: not recorded, so that nothing of the plan is carried out."""
        return None if isinstance(self.pulsar_cluster, msgspec.UnsetType) else self.pulsar_cluster

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
            msgspec.ValidationError: If the document is not a plan.
        """
        return msgspec.json.decode(document, type=cls)


def approval_digest(plan: Plan, batch_id: str, step_ids: Collection[str]) -> str:
    """Digest of what one approval covers: exactly these steps of exactly this batch of exactly this plan.

    Raises:
        KeyError: If the batch or one of the steps is not in the plan.
    """
    batch = plan.batch(batch_id)
    chosen = set(step_ids)
    if unknown := chosen - {step.step_id for step in batch.steps}:
        raise KeyError(min(unknown))
    steps = [step for step in batch.steps if step.step_id in chosen]
    return digest([plan.digest, batch_id, steps])
