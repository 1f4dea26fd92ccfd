"""Policy sections on messages for all clusters, from the policy files of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pulsar_steward.errors import ConfigurationError, PolicyError
from pulsar_steward.policy.files import own_policy_files, policy_file
from pulsar_steward.policy.load import load_policy

if TYPE_CHECKING:
    from collections.abc import Collection

    from pulsar_steward.policy.notify import NotifyPolicy


class Policies(NamedTuple):
    """Sections by cluster, and problems of invalid policies."""

    policies: dict[str, NotifyPolicy]
    troubles: tuple[str, ...]


def policies_of(known: Collection[str], *more: str) -> Policies:
    """Sections of these clusters, and of clusters with a policy file of their own; without a file nothing is sent.

    Args:
        known: Names of clusters, for example of clusters with snapshots.
        more: Further names.
    """
    policies: dict[str, NotifyPolicy] = {}
    troubles: list[str] = []
    clusters = {*known, *more}
    try:
        clusters |= own_policy_files().keys()
    except (PolicyError, ConfigurationError) as error:
        troubles.append(str(error))
    for cluster in sorted(clusters):
        try:
            policies[cluster] = load_policy(policy_file(cluster)).for_cluster(cluster).notify
        except (PolicyError, ConfigurationError) as error:
            troubles.append(str(error))
    return Policies(policies, tuple(dict.fromkeys(troubles)))
