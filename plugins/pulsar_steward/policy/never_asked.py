"""Kinds of batches that the policy leaves out of plans, and the policy entry that leaves out one more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from pulsar_steward.model.plan import namespace_of
from pulsar_steward.policy.layers import NAMESPACES, is_namespace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pulsar_steward.model.plan import Batch
    from pulsar_steward.policy.schema import Policy

_NEVER_FOLDED = 1_000_000
"""Width of a YAML line, so large that a long name is never broken."""


def never_asked_about(batch: Batch, policy: Policy) -> str | None:
    """The first ``kind of namespace`` of a batch that the policy leaves out (`approval.never_ask`); None: none."""
    kinds = (batch.kind,) if batch.is_rollback else batch.kinds
    for namespace in sorted({step.change.namespace for step in batch.steps}):
        if kind := never_asked(kinds, namespace, policy):
            return f"{kind} of {namespace}"
    return None


def never_asked(kinds: Iterable[str], namespace: str, policy: Policy) -> str | None:
    """The first of these kinds of batches that the policy leaves out for a namespace; None: none."""
    left_out = policy.for_namespace(namespace).approval.never_ask
    return next((kind for kind in kinds if kind in left_out), None)


def namespace_to_leave_alone(batch: Batch) -> str | None:
    """Namespace for which a policy can leave out such batches; None: the batch is about several, or is a rollback.

    None as well for moves between brokers: they are about the brokers, whichever bundles move.
    """
    namespace = None if batch.is_rollback else namespace_of(batch)
    return namespace if namespace is not None and is_namespace(namespace) else None


def never_asked_entry(namespace: str, kinds: Collection[str]) -> str:
    """The narrowest policy entry that leaves out these kinds of batches for a namespace, as YAML in ASCII.

    A parser returns exactly this entry, whatever characters the name has.
    """
    entry = {NAMESPACES: {namespace: {"approval": {"never_ask": sorted(set(kinds))}}}}
    return yaml.safe_dump(entry, width=_NEVER_FOLDED)
