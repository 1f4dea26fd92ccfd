"""Kinds of batches that the policy leaves out of plans, and the entry that would leave out one more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from pulsar_steward.model.content import namespace_of
from pulsar_steward.policy.layers import NAMESPACES, is_namespace

if TYPE_CHECKING:
    from collections.abc import Collection

    from pulsar_steward.model.plan import Batch

_NEVER_FOLDED = 1_000_000
"""Width of a line: a long name stays in one."""


def namespace_to_leave_alone(batch: Batch) -> str | None:
    """Namespace of which a policy can leave out such batches; None: it is about several, or rolls back.

    None as well for moves between brokers, which are about the brokers, whichever bundles are moved.
    """
    namespace = None if batch.is_rollback else namespace_of(batch)
    return namespace if namespace is not None and is_namespace(namespace) else None


def never_asked_entry(namespace: str, kinds: Collection[str]) -> str:
    """The narrowest policy entry that leaves out these kinds of batches for a namespace, as YAML in ASCII.

    Whatever is in the name, a parser gives back exactly this entry.
    """
    entry = {NAMESPACES: {namespace: {"approval": {"never_ask": sorted(set(kinds))}}}}
    return yaml.safe_dump(entry, width=_NEVER_FOLDED)
