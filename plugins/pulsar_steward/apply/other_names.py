"""Policies of a cluster's other names: nobody may get around a stricter policy by using a second name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.errors import ConfigurationError, PolicyError
from pulsar_steward.policy.files import own_policy
from pulsar_steward.policy.looser import loosened
from pulsar_steward.policy.recorded import RecordedPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.model.cluster import NamedCluster
    from pulsar_steward.policy.schema import Policy


def looser_than_others(ledger: LedgerReader, cluster: NamedCluster, policy: Policy) -> Iterator[str]:
    """Reasons why a cluster must not be changed under a name: its other names' stricter policies.

    Args:
        ledger: Knows the names that lead to the cluster.
        cluster: The cluster, under the name to check.
        policy: The policy in force for that name.
    """
    for name in sorted(ledger.known(cluster).names - {cluster.name}):
        both = f"{cluster.name} and {name} are names of one Pulsar cluster"
        try:
            other = own_policy(name)
        except (PolicyError, ConfigurationError) as error:
            yield f"{both}, and the policy of {name} cannot be compared: {error}"
            continue
        if other is not None and (looser := loosened(policy, RecordedPolicy.of(other))):
            yield (
                f"{both}, and the policy in force for {cluster.name} is looser than the one of {name}:"
                f" {'; '.join(looser)}. Give both the same policy, or keep one name"
            )
