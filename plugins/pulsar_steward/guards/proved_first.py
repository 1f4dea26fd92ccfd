"""Guard: the changes of earlier batches are proved before the next batch begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.guards.kinds import Guard, Objection

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.step import GuardedChange, GuardResult
    from pulsar_steward.policy.schema import Policy


class ProvedFirst(Guard):
    """Looks for unproved changes since the snapshot; a later snapshot has seen their effect."""

    name = "proved_first"
    objection = Objection.REFUSED

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Vetoes every step if another batch changed the cluster since the snapshot and was not proved."""
        if unproved := facts.unproved_batch():
            return self.result(f"{unproved}: observe again", passed=False)
        return self.result("all that Steward changed since the snapshot is proved", passed=True)
