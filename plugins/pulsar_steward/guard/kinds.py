"""Base classes of guards: each says to which changes it applies, and asks the facts that it needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, get_args

from pulsar_steward.model.step import BundleChange, Change, ChangeSetting, GuardResult, Step

if TYPE_CHECKING:
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.policy.schema import Policy


class Objection(StrEnum):
    """What a veto means for the step: the cluster moved on, or the step is not permitted."""

    DRIFTED = "drifted"
    REFUSED = "refused"


class Guard(ABC):
    """One reason to leave a cluster alone.

    Attributes:
        name: As approvals and outcomes name it.
        objection: What a veto means for the step.
        applies_to: Kinds of changes that it looks at; every kind, unless it says otherwise.
        applies_to_rollbacks: Whether it also looks at steps that take one back which was made before.
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
            facts: What is known before it; asked for no more than the guard needs.
            policy: Thresholds and limits.

        Raises:
            AdminError: If what the guard needs cannot be read.
            LedgerError: If what the ledger has to tell cannot be read.
        """

    def result(self, reason: str, *, passed: bool) -> GuardResult:
        """The result, under this guard's name."""
        return GuardResult(guard=self.name, passed=passed, reason=reason)


class BundleGuard(Guard):
    """Looks at a bundle that is to be moved or split."""

    applies_to = get_args(BundleChange)

    def check(self, step: Step, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Asks `check_bundle`."""
        if not isinstance(step.change, BundleChange):
            raise TypeError(f"{self.name} looks at bundles, not at {step.change}")
        return self.check_bundle(step.change, facts, policy)

    @abstractmethod
    def check_bundle(self, change: BundleChange, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Lets the change pass or vetoes it."""


class SettingGuard(Guard):
    """Looks at a setting that is to be changed."""

    applies_to = (ChangeSetting,)

    def check(self, step: Step, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Asks `check_setting`."""
        if not isinstance(step.change, ChangeSetting):
            raise TypeError(f"{self.name} looks at settings, not at {step.change}")
        return self.check_setting(step.change, facts, policy)

    @abstractmethod
    def check_setting(self, change: ChangeSetting, facts: ClusterFacts, policy: Policy) -> GuardResult:
        """Lets the change pass or vetoes it."""
