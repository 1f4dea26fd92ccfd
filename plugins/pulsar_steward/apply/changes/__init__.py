"""How each kind of change is made and proved: one a file, found by `kind_of`."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from pulsar_steward.apply.changes.setting import Setting
from pulsar_steward.apply.changes.split import Splitting
from pulsar_steward.apply.changes.unload import Unloading
from pulsar_steward.model.step import Change, ChangeSetting, SplitBundle, UnloadBundle

if TYPE_CHECKING:
    from pulsar_steward.apply.changes.kind import ChangeKind


def kind_of(change: Change) -> ChangeKind:
    """What knows how to make a change and how to see that it was made."""
    match change:
        case UnloadBundle():
            return Unloading(change)
        case SplitBundle():
            return Splitting(change)
        case ChangeSetting():
            return Setting(change)
        case _:
            assert_never(change)
