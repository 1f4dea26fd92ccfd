"""What guards of one kind of change share: each says to which changes it applies, and gets what it looks at, typed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from pulsar_steward.model.step import ChangeSetting, GuardResult, SplitBundle, Step, UnloadBundle

if TYPE_CHECKING:
    from pulsar_steward.guard.view import BundleView, ClusterView, Objection, SettingView
    from pulsar_steward.model.step import BundleChange, Change


class Guard(ABC):
    """One reason to leave a cluster alone.

    Attributes:
        name: As approvals and outcomes name it.
        objection: What a veto means for the step.
        applies_to: Kinds of changes that it looks at.
        stops_a_way_back: Whether it also looks at steps that take one back which was made before.
    """

    name: ClassVar[str]
    objection: ClassVar[Objection]
    applies_to: ClassVar[tuple[type[Change], ...]] = (UnloadBundle, SplitBundle, ChangeSetting)
    stops_a_way_back: ClassVar[bool] = True

    @abstractmethod
    def check(self, step: Step, view: ClusterView) -> GuardResult:
        """Lets the step pass or vetoes it, with the reason in words either way."""

    def said(self, reason: str, *, passed: bool) -> GuardResult:
        """The result, under this guard's name."""
        return GuardResult(guard=self.name, passed=passed, reason=reason)


class BundleGuard(Guard):
    """Looks at a bundle that is to be moved or split."""

    applies_to = (UnloadBundle, SplitBundle)

    def check(self, step: Step, view: ClusterView) -> GuardResult:
        """Asks `check_bundle`."""
        if isinstance(step.change, ChangeSetting) or view.bundle is None:
            raise TypeError(f"{self.name} looks at bundles, not at {step.change}")
        return self.check_bundle(step.change, view.bundle, view)

    @abstractmethod
    def check_bundle(self, change: BundleChange, bundle: BundleView, view: ClusterView) -> GuardResult:
        """Lets the change pass or vetoes it."""


class SettingGuard(Guard):
    """Looks at a setting that is to be changed."""

    applies_to = (ChangeSetting,)

    def check(self, step: Step, view: ClusterView) -> GuardResult:
        """Asks `check_setting`."""
        if not isinstance(step.change, ChangeSetting) or view.setting is None:
            raise TypeError(f"{self.name} looks at settings, not at {step.change}")
        return self.check_setting(step.change, view.setting, view)

    @abstractmethod
    def check_setting(self, change: ChangeSetting, setting: SettingView, view: ClusterView) -> GuardResult:
        """Lets the change pass or vetoes it."""
