"""Base classes of guards, by the kind of change that they check.

A guard checks every change that alters its part of the cluster. It also checks every rollback, unless it gives a reason
not to. `docs/guards.md` shows the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, cast

from pulsar_steward.changes import kind_of
from pulsar_steward.changes.kind import Aspect
from pulsar_steward.facts.unknown import Unknown
from pulsar_steward.model.step import (
    AddPartitions,
    BundleChange,
    ChangeSetting,
    DeleteSubscription,
    GuardedChange,
    GuardResult,
    RaiseCoordinators,
    SetIsolation,
    UnloadBundle,
)

if TYPE_CHECKING:
    from types import UnionType

    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.policy.schema import Policy


class Objection(StrEnum):
    """Outcome of a vetoed step: the cluster has changed since planning, or the step is not permitted."""

    DRIFTED = "drifted"
    REFUSED = "refused"


class Guard(ABC):
    """A reason not to make a change.

    Attributes:
        name: Its name in approvals and outcomes.
        objection: Outcome of a step that it vetoes.
        aspect: Part of the cluster that it guards: it checks the kinds of change that alter it; None: all kinds.
        not_asked_of_rollbacks: Reason why it does not check rollbacks; empty: it checks them.
        ahead: True if it can check a step before the steps that this one waits for, such as the move of a part before
            the split. Splits cannot be undone, so a move that will be vetoed has to stop them.
    """

    name: ClassVar[str]
    objection: ClassVar[Objection]
    aspect: ClassVar[Aspect | None] = None
    not_asked_of_rollbacks: ClassVar[str] = ""
    ahead: ClassVar[bool] = False

    def is_asked_of(self, step: GuardedChange) -> bool:
        """True if this guard checks a step."""
        if step.undoes is not None and self.not_asked_of_rollbacks:
            return False
        return self.aspect is None or self.aspect in kind_of(step.change).aspects

    @abstractmethod
    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Lets the step pass or vetoes it, with the reason in words either way.

        Args:
            step: The step.
            facts: Facts of the cluster; a guard reads only the facts that it needs.
            policy: Thresholds and limits.

        Raises:
            AdminError: If a fact that the guard needs cannot be read.
            LedgerError: If the ledger cannot be read.
        """

    def check_ahead(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Like `check`, before the steps that this one waits for are made; called if `ahead`."""
        return self.check(step, facts, policy)

    def result(self, reason: str, *, passed: bool) -> GuardResult:
        """Result under this guard's name."""
        return GuardResult(guard=self.name, passed=passed, reason=reason)


T = TypeVar("T")
ChangeT = TypeVar("ChangeT")


class _NotKnownError(Exception):
    """A fact that a guard needs is not known."""


def known(fact: T | Unknown) -> T:
    """A fact that a `StepGuard` cannot do without: where it is not known, the step is vetoed with the reason."""
    if isinstance(fact, Unknown):
        raise _NotKnownError(fact.reason)
    return fact


class StepGuard(Guard, Generic[ChangeT]):
    """A guard of one sort of change, which also uses the step's own figures.

    Attributes:
        changes: The type of these changes.
    """

    changes: ClassVar[type | UnionType]

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Calls `check_step`; vetoes the step if a fact that it needs is not known."""
        if not isinstance(step.change, self.changes):
            raise TypeError(f"{self.name} looks at {self.aspect}, not at {step.change}")
        try:
            return self.check_step(step, cast("ChangeT", step.change), facts, policy)
        except _NotKnownError as unknown:
            return self.result(str(unknown), passed=False)

    @abstractmethod
    def check_step(self, step: GuardedChange, change: ChangeT, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Lets the step, which makes this change, pass or vetoes it."""


class ChangeGuard(StepGuard[ChangeT]):
    """A guard of one sort of change that uses the change alone."""

    def check_step(self, step: GuardedChange, change: ChangeT, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Calls `check_change`."""
        return self.check_change(change, facts, policy)

    @abstractmethod
    def check_change(self, change: ChangeT, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Lets the change pass or vetoes it."""


class BundleStepGuard(StepGuard[BundleChange]):
    """A guard of moves and splits of bundles that also uses the step's own figures."""

    aspect = Aspect.BUNDLE
    changes = BundleChange


class BundleGuard(ChangeGuard[BundleChange]):
    """A guard of moves and splits of bundles."""

    aspect = Aspect.BUNDLE
    changes = BundleChange


class TargetGuard(ChangeGuard[UnloadBundle]):
    """A guard of a move's target."""

    aspect = Aspect.OWNER
    changes = UnloadBundle


class CoordinatorGuard(ChangeGuard[RaiseCoordinators]):
    """A guard of raises of the number of transaction coordinators."""

    aspect = Aspect.COORDINATORS
    changes = RaiseCoordinators


class PartitionGuard(ChangeGuard[AddPartitions]):
    """A guard of raises of the number of a topic's partitions."""

    aspect = Aspect.PARTITIONS
    changes = AddPartitions


class IsolationGuard(ChangeGuard[SetIsolation]):
    """A guard of changes of isolation policies."""

    aspect = Aspect.ISOLATION
    changes = SetIsolation


class SettingGuard(ChangeGuard[ChangeSetting]):
    """A guard of changes of settings."""

    aspect = Aspect.SETTING
    changes = ChangeSetting


class SubscriptionGuard(StepGuard[DeleteSubscription]):
    """A guard of deletions of subscriptions."""

    aspect = Aspect.SUBSCRIPTION
    changes = DeleteSubscription
