"""Base classes of guards, by the kind of change that they look at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, assert_never, get_args

from pulsar_steward.model.step import (
    BundleChange,
    Change,
    ChangeSetting,
    DeleteSubscription,
    GuardResult,
    RaiseCoordinators,
    SplitBundle,
    Step,
    UnloadBundle,
)

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.policy.schema import Policy


class Objection(StrEnum):
    """Outcome of a vetoed step: the cluster has changed since the plan, or the step is not permitted."""

    DRIFTED = "drifted"
    REFUSED = "refused"


class Guard(ABC):
    """A reason not to make a change.

    Attributes:
        name: Its name in approvals and outcomes.
        objection: Outcome of a step that it vetoes.
        applies_to: Kinds of changes that it looks at; every kind, unless it says otherwise.
        applies_to_rollbacks: True if it also looks at steps of rollbacks.
    """

    name: ClassVar[str]
    objection: ClassVar[Objection]
    applies_to: ClassVar[tuple[type[Change], ...]] = get_args(Change)
    applies_to_rollbacks: ClassVar[bool] = True

    @abstractmethod
    def check(self, step: Step, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Lets the step pass or vetoes it, with the reason in words either way.

        Args:
            step: The step.
            facts: Facts of the cluster; a guard asks for no more than it needs.
            policy: Thresholds and limits.

        Raises:
            AdminError: If a fact that the guard needs cannot be read.
            LedgerError: If the ledger cannot be read.
        """

    def result(self, reason: str, *, passed: bool) -> GuardResult:
        """Result under this guard's name."""
        return GuardResult(guard=self.name, passed=passed, reason=reason)


class BundleGuard(Guard):
    """A guard of moves and splits of bundles."""

    applies_to = get_args(BundleChange)

    def check(self, step: Step, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Asks `check_bundle`."""
        if not isinstance(step.change, BundleChange):
            raise TypeError(f"{self.name} looks at bundles, not at {step.change}")
        return self.check_bundle(step.change, facts, policy)

    @abstractmethod
    def check_bundle(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Lets the change pass or vetoes it."""


class TargetGuard(BundleGuard):
    """A guard of a move's target; it has nothing against splits.

    Attributes:
        of_splits: Why it lets a split pass.
    """

    of_splits: ClassVar[str] = "a split has no target"

    def check_bundle(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Asks `check_target` about a move."""
        match change:
            case SplitBundle():
                return self.result(self.of_splits, passed=True)
            case UnloadBundle():
                return self.check_target(change, facts, policy)
            case _:
                assert_never(change)

    @abstractmethod
    def check_target(self, change: UnloadBundle, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Lets the move pass or vetoes it."""


class CoordinatorGuard(Guard):
    """A guard of raises of the number of transaction coordinators."""

    applies_to = (RaiseCoordinators,)

    def check(self, step: Step, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Asks `check_raise`."""
        if not isinstance(step.change, RaiseCoordinators):
            raise TypeError(f"{self.name} looks at the number of coordinators, not at {step.change}")
        return self.check_raise(step.change, facts, policy)

    @abstractmethod
    def check_raise(self, change: RaiseCoordinators, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Lets the raise pass or vetoes it."""


class SettingGuard(Guard):
    """A guard of changes of settings."""

    applies_to = (ChangeSetting,)

    def check(self, step: Step, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Asks `check_setting`."""
        if not isinstance(step.change, ChangeSetting):
            raise TypeError(f"{self.name} looks at settings, not at {step.change}")
        return self.check_setting(step.change, facts, policy)

    @abstractmethod
    def check_setting(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Lets the change pass or vetoes it."""


class SubscriptionGuard(Guard):
    """A guard of deletions of subscriptions."""

    applies_to = (DeleteSubscription,)

    def check(self, step: Step, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Asks `check_deletion`."""
        if not isinstance(step.change, DeleteSubscription):
            raise TypeError(f"{self.name} looks at subscriptions, not at {step.change}")
        return self.check_deletion(step, step.change, facts, policy)

    @abstractmethod
    def check_deletion(
        self, step: Step, change: DeleteSubscription, facts: ClusterFacts, policy: Policy
    ) -> GuardResult:
        """Lets the step, which makes this change, pass or vetoes it."""
