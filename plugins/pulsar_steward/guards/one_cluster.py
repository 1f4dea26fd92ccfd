"""Guard: a namespace's setting is changed only if no other cluster serves the namespace.

Policies of a namespace are in the configuration store, which clusters may share. A value set in one cluster then
applies in all clusters that serve the namespace, but their backlogs and messages are not known here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.guards.kinds import Objection, SettingGuard

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import ChangeSetting, GuardResult
    from pulsar_steward.policy.schema import Policy


class OneCluster(SettingGuard):
    """Looks for other clusters in the namespace's policies; a topic's own setting applies to this cluster only."""

    name = "one_cluster"
    objection = Objection.REFUSED

    def check_setting(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes a setting of a namespace that other clusters serve too."""
        if change.topic is not None:
            return self.result("a topic's own setting is of this cluster alone", passed=True)
        others = facts.other_clusters(change.namespace)
        if isinstance(others, Unknown):
            return self.result(others.reason, passed=False)
        if not others:
            return self.result(f"no other cluster serves {change.namespace}", passed=True)
        reason = f"{', '.join(others)} would get it as well, as {change.namespace} is served there too: set it by hand"
        return self.result(reason, passed=False)
