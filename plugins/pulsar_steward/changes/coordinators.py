"""Raise of the number of transaction coordinators: it takes effect at once, and brokers refuse a lower number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.changes.kind import Aspect, Before
from pulsar_steward.changes.raising import Raise
from pulsar_steward.model.pulsar_versions import Operation
from pulsar_steward.model.step import RaiseCoordinators
from pulsar_steward.model.units import counted
from pulsar_steward.pulsar import calls

if TYPE_CHECKING:
    from pulsar_steward.changes.kind import ApprovalWarning, ClusterReader, Subject
    from pulsar_steward.model.step import GuardedChange
    from pulsar_steward.pulsar.calls import Call


class BeforeRaise(Before, frozen=True):
    """Former number of transaction coordinators."""

    coordinators: int


class CoordinatorsRaise(Raise[RaiseCoordinators, BeforeRaise]):
    """Raise of the number of the cluster's transaction coordinators; new ones work once a client connects to them."""

    aspects = frozenset({Aspect.COORDINATORS})
    operation = Operation.RAISE_COORDINATORS
    before_type = BeforeRaise
    what = "the number of transaction coordinators"

    @property
    def subject(self) -> Subject:
        """The coordinators of the cluster."""
        return self.change.namespace, "number of transaction coordinators"

    def number(self, cluster: ClusterReader) -> int:
        """The number of partitions of the coordinators' topic."""
        return cluster.coordinators()

    def words(self, number: int) -> str:
        """``there are 5 transaction coordinators``."""
        return f"there {'is' if number == 1 else 'are'} {counted(number, 'transaction coordinator')}"

    def before(self, number: int) -> BeforeRaise:
        """The former number."""
        return BeforeRaise(coordinators=number)

    def call(self) -> Call:
        """The raise."""
        return calls.raise_coordinators(self.change.after)

    def warning(self, step: GuardedChange) -> ApprovalWarning | None:
        """None: messages and producers stay."""
        return None
