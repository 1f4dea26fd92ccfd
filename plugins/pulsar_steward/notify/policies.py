"""Sections of messages of all clusters, from the policy files of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pulsar_steward.errors import ConfigurationError, PolicyError
from pulsar_steward.policy.load import load_policy
from pulsar_steward.policy.place import policy_file, steward_home

if TYPE_CHECKING:
    from collections.abc import Collection

    from pulsar_steward.policy.notify import NotifyPolicy


class Policies(NamedTuple):
    """Sections by cluster, and problems of policies that are not valid."""

    policies: dict[str, NotifyPolicy]
    troubles: tuple[str, ...]


def policies_of(known: Collection[str], *more: str) -> Policies:
    """Sections of these clusters, and of those with a policy file of their own; without a file nobody is told.

    Args:
        known: Names of clusters, as of those with snapshots.
        more: Further names.
    """
    own = {file.stem for file in (steward_home() / "policies").glob("*.yaml")}
    policies, troubles = {}, []
    for cluster in sorted({*known, *more, *own}):
        try:
            policies[cluster] = load_policy(policy_file(cluster)).for_cluster(cluster).notify
        except (PolicyError, ConfigurationError) as error:
            troubles.append(str(error))
    return Policies(policies, tuple(dict.fromkeys(troubles)))
