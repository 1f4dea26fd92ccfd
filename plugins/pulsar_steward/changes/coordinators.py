"""Raise of the number of transaction coordinators: it takes effect at once, and brokers refuse a lower number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.changes.kind import Aspect, Before, ChangeKind, Drifted, Observation
from pulsar_steward.errors import Refused
from pulsar_steward.model.pulsar_versions import Operation
from pulsar_steward.model.step import RaiseCoordinators
from pulsar_steward.model.units import counted
from pulsar_steward.pulsar import calls

if TYPE_CHECKING:
    from pulsar_steward.changes.kind import ApprovalWarning, ClusterReader, Inverse, Subject
    from pulsar_steward.model.loss import Loss
    from pulsar_steward.pulsar.calls import Call


class BeforeRaise(Before, frozen=True):
    """Former number of transaction coordinators."""

    coordinators: int


class CoordinatorsRaise(ChangeKind[RaiseCoordinators, BeforeRaise]):
    """Raise of the number of the cluster's transaction coordinators."""

    undoable = False
    loses_messages = False
    aspects = frozenset({Aspect.COORDINATORS})
    disturbs = None
    operation = Operation.RAISE_COORDINATORS
    before_type = BeforeRaise

    @property
    def subject(self) -> Subject:
        """The coordinators of the cluster."""
        return self.change.namespace, "number of transaction coordinators"

    def clients(self, cluster: ClusterReader, owner: str | None = None) -> int:
        """0: clients stay with the coordinators that they know."""
        return 0

    def record(self, cluster: ClusterReader) -> BeforeRaise:
        """The present number; if it differs from the plan's, somebody raised it since."""
        now = cluster.coordinators()
        if now != self.change.before:
            raise Drifted(f"{_there_are(now)}, not {self.change.before:,} as when this was planned")
        return BeforeRaise(coordinators=now)

    def call(self) -> Call:
        """The raise."""
        return calls.raise_coordinators(self.change.after)

    def completion(self, before: BeforeRaise) -> Call | None:
        """None: the call is sufficient; new coordinators begin to work when a client connects to them."""
        return None

    def observe(self, cluster: ClusterReader) -> Observation:
        """The number of partitions of the coordinators' topic."""
        now = cluster.coordinators()
        return Observation(
            there=now == self.change.after,
            untouched=now == self.change.before,
            words=_there_are(now),
            values={"coordinators": now},
        )

    def inverse(self, before: BeforeRaise, cluster: ClusterReader) -> Inverse:
        """Always raises `Refused`: there is no inverse."""
        raise Refused(
            f"the raise of the number of transaction coordinators from {before.coordinators:,} to"
            f" {self.change.after:,} cannot be undone: brokers refuse a lower number"
        )

    def describe(self) -> str:
        """Both numbers, and the warning that it cannot be undone."""
        change = self.change
        return (
            f"raise the number of transaction coordinators from {change.before:,} to {change.after:,}, which cannot be"
            " undone"
        )

    def warning(self, loss: Loss | None) -> ApprovalWarning | None:
        """None: messages and producers stay."""
        return None


def _there_are(number: int) -> str:
    return f"there {'is' if number == 1 else 'are'} {counted(number, 'transaction coordinator')}"
