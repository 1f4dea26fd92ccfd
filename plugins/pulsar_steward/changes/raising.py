"""Raises of a number that takes effect at once, and that brokers never lower again."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, TypeVar

from pulsar_steward.changes.kind import BeforeT, ChangeKind, Drifted, Observation
from pulsar_steward.errors import Refused
from pulsar_steward.model.step import AddPartitions, RaiseCoordinators

if TYPE_CHECKING:
    from pulsar_steward.changes.kind import ClusterReader, Inverse
    from pulsar_steward.pulsar.calls import Call

RaiseT = TypeVar("RaiseT", AddPartitions, RaiseCoordinators)


class Raise(ChangeKind[RaiseT, BeforeT]):
    """Raise of a number from one that was planned with to a higher one."""

    undoable = False
    loses_messages = False
    disturbs = None

    @property
    @abstractmethod
    def what(self) -> str:
        """What is raised: ``the number of transaction coordinators``."""

    @abstractmethod
    def number(self, cluster: ClusterReader) -> int:
        """The present number, as brokers tell it."""

    @abstractmethod
    def words(self, number: int) -> str:
        """A number as a sentence: ``there are 5 transaction coordinators``."""

    @abstractmethod
    def before(self, number: int) -> BeforeT:
        """The number as the ledger keeps it."""

    def lacking(self, cluster: ClusterReader) -> str:
        """What the new number still lacks, as the end of a sentence; empty: nothing."""
        return ""

    def clients(self, cluster: ClusterReader, owner: str | None = None) -> int:
        """0: clients stay with what they know until they look anew."""
        return 0

    def record(self, cluster: ClusterReader) -> BeforeT:
        """The present number; if it differs from the plan's, somebody raised it since."""
        now = self.number(cluster)
        if now != self.change.before:
            raise Drifted(f"{self.words(now)}, not {self.change.before:,} as when this was planned")
        return self.before(now)

    def completion(self, before: BeforeT) -> Call | None:
        """None: the call is sufficient."""
        return None

    def observe(self, cluster: ClusterReader) -> Observation:
        """The present number, and what it lacks."""
        now = self.number(cluster)
        lacking = self.lacking(cluster) if now == self.change.after else ""
        return Observation(
            there=now == self.change.after and not lacking,
            untouched=now == self.change.before,
            words=self.words(now) + lacking,
            broken_off=bool(lacking),
            values={self.subject[1].rpartition(" ")[2]: now},
        )

    def inverse(self, before: BeforeT, cluster: ClusterReader) -> Inverse:
        """Always raises `Refused`: there is no inverse."""
        change = self.change
        raise Refused(
            f"the raise of {self.what} from {change.before:,} to {change.after:,} cannot be undone: brokers refuse a"
            " lower number"
        )

    def describe(self) -> str:
        """Both numbers, and the warning that it cannot be undone."""
        change = self.change
        return f"raise {self.what} from {change.before:,} to {change.after:,}, which cannot be undone"
