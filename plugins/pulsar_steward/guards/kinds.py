"""Base classes of guards, by the kind of change that they check.

A guard checks every change that alters its part of the cluster. It also checks every rollback, unless it gives a reason
not to. `docs/guards.md` shows the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from pulsar_steward.changes import kind_of
from pulsar_steward.changes.kind import Aspect
from pulsar_steward.model.step import (
    AddPartitions,
    BundleChange,
    ChangeSetting,
    DeleteSubscription,
    GuardedChange,
    GuardResult,
    RaiseCoordinators,
    UnloadBundle,
)

if TYPE_CHECKING:
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

    def result(self, reason: str, *, passed: bool) -> GuardResult:
        """Result under this guard's name."""
        return GuardResult(guard=self.name, passed=passed, reason=reason)


class BundleStepGuard(Guard):
    """A guard of moves and splits of bundles that also uses the step's own figures."""

    aspect = Aspect.BUNDLE

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Calls `check_step`."""
        if not isinstance(step.change, BundleChange):
            raise TypeError(f"{self.name} looks at bundles, not at {step.change}")
        return self.check_step(step, step.change, facts, policy)

    @abstractmethod
    def check_step(self, step: GuardedChange, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Lets the step, which makes this change, pass or vetoes it."""


class BundleGuard(BundleStepGuard):
    """A guard of moves and splits of bundles that uses the change alone."""

    def check_step(self, step: GuardedChange, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:  # noqa: ARG002 - part of the protocol
        """Calls `check_bundle`."""
        return self.check_bundle(change, facts, policy)

    @abstractmethod
    def check_bundle(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Lets the change pass or vetoes it."""


class TargetGuard(Guard):
    """A guard of a move's target."""

    aspect = Aspect.OWNER

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Calls `check_target`."""
        if not isinstance(step.change, UnloadBundle):
            raise TypeError(f"{self.name} looks at moves, not at {step.change}")
        return self.check_target(step.change, facts, policy)

    @abstractmethod
    def check_target(self, change: UnloadBundle, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Lets the move pass or vetoes it."""


class CoordinatorGuard(Guard):
    """A guard of raises of the number of transaction coordinators."""

    aspect = Aspect.COORDINATORS

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Calls `check_raise`."""
        if not isinstance(step.change, RaiseCoordinators):
            raise TypeError(f"{self.name} looks at the number of coordinators, not at {step.change}")
        return self.check_raise(step.change, facts, policy)

    @abstractmethod
    def check_raise(self, change: RaiseCoordinators, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Lets the raise pass or vetoes it."""


class PartitionGuard(Guard):
    """A guard of raises of the number of a topic's partitions."""

    aspect = Aspect.PARTITIONS

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Calls `check_partitions`."""
        if not isinstance(step.change, AddPartitions):
            raise TypeError(f"{self.name} looks at the number of partitions, not at {step.change}")
        return self.check_partitions(step.change, facts, policy)

    @abstractmethod
    def check_partitions(self, change: AddPartitions, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Lets the raise pass or vetoes it."""


class SettingGuard(Guard):
    """A guard of changes of settings."""

    aspect = Aspect.SETTING

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Calls `check_setting`."""
        if not isinstance(step.change, ChangeSetting):
            raise TypeError(f"{self.name} looks at settings, not at {step.change}")
        return self.check_setting(step.change, facts, policy)

    @abstractmethod
    def check_setting(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Lets the change pass or vetoes it."""


class SubscriptionGuard(Guard):
    """A guard of deletions of subscriptions."""

    aspect = Aspect.SUBSCRIPTION

    def check(self, step: GuardedChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Calls `check_deletion`."""
        if not isinstance(step.change, DeleteSubscription):
            raise TypeError(f"{self.name} looks at subscriptions, not at {step.change}")
        return self.check_deletion(step, step.change, facts, policy)

    @abstractmethod
    def check_deletion(
        self, step: GuardedChange, change: DeleteSubscription, facts: ClusterFacts, policy: Policy
    ) -> GuardResult:
        """Lets the step, which makes this change, pass or vetoes it."""
