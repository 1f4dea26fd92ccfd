"""Kinds of change, one per file; the rest of the project gets everything about a change from `kind_of`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from pulsar_steward.changes.coordinators import CoordinatorsRaise
from pulsar_steward.changes.isolation import IsolationChange
from pulsar_steward.changes.partitions import PartitionsRaise
from pulsar_steward.changes.setting import SettingChange
from pulsar_steward.changes.split import Split
from pulsar_steward.changes.subscription import SubscriptionDeletion
from pulsar_steward.changes.unload import Unload
from pulsar_steward.model.step import (
    AddPartitions,
    Change,
    ChangeSetting,
    DeleteSubscription,
    RaiseCoordinators,
    SetIsolation,
    SplitBundle,
    UnloadBundle,
)

if TYPE_CHECKING:
    from pulsar_steward.changes.kind import ChangeKind


def kind_of(change: Change) -> ChangeKind[Any, Any]:  # noqa: PLR0911 - one for each kind
    """A change as an object of its kind; only this function distinguishes the kinds."""
    match change:
        case UnloadBundle():
            return Unload(change)
        case SplitBundle():
            return Split(change)
        case ChangeSetting():
            return SettingChange(change)
        case RaiseCoordinators():
            return CoordinatorsRaise(change)
        case AddPartitions():
            return PartitionsRaise(change)
        case DeleteSubscription():
            return SubscriptionDeletion(change)
        case SetIsolation():
            return IsolationChange(change)
        case _:
            assert_never(change)
