"""What every kind of change has to offer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from pulsar_steward.errors import Refused
from pulsar_steward.model.step import Change

if TYPE_CHECKING:
    from pulsar_steward.admin.calls import Call
    from pulsar_steward.apply.live_reader import LiveReader


class Drifted(Refused):
    """The cluster moved on: the change would no longer be the one that was approved."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What the cluster shows of a change.

    Attributes:
        there: Whether the change is there, whole.
        untouched: Whether everything is still as it was before it, so that it may be tried again.
        continuation: The change that leads from what is seen to what was approved, where Pulsar went another way;
            else None.
        retry: The same, where it was taken back: so it is only if the call was accepted, and its time is up.
        words: What is seen, in a sentence.
        values: The same as values, for the ledger.
    """

    there: bool
    untouched: bool
    words: str
    values: dict[str, Any]
    continuation: Change | None = None
    retry: Change | None = None


class ChangeKind(Protocol):
    """One change: what to record before it, which calls make it, and how to see it."""

    def before(self, look: LiveReader) -> dict[str, Any]:
        """The live values that the change replaces; the ledger keeps them.

        Raises:
            Drifted: If something else than what was approved would come of it.
            Refused: If the change could not be completed, so that it must not begin.
            AdminError: If the cluster cannot be read.
        """

    def call(self) -> Call:
        """The call that makes the change; sent once."""

    def completion(self, before: dict[str, Any]) -> Call | None:
        """A call that may be repeated until the change shows, such as a lookup that has a bundle loaded."""

    def observe(self, look: LiveReader) -> Observation:
        """What the brokers show of the change now.

        Raises:
            AdminError: If they cannot be read.
        """
