"""Verdict on the restart of a broker: a state, and the reasons for it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

UNREACHABLE = "unreachable"
"""Subject of the reason of a broker that could not be read."""


class State(StrEnum):
    """State of a reason, or of a line about an upgrade."""

    STOP = "stop"
    """To be done, or to be cured, before a broker is restarted."""
    UNKNOWN = "not told"
    """The snapshot does not tell."""
    SOON = "soon"
    """Harmless at a restart now; to be cured before an upgrade, which takes longer."""
    NOTE = "note"


class RestartReason(msgspec.Struct, frozen=True, kw_only=True):
    """A reason for or against a restart, or what comes with it.

    Attributes:
        subject: Id of a check, or a word such as ``others``, ``room``, ``time``, ``clients``, ``leader``.
        state: Its state.
        words: The reason in sentences, with figures.
        source: Page of Steward's documents.
    """

    subject: str
    state: State
    words: str
    source: str


class RestartVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a broker may be restarted now.

    Attributes:
        broker: ``host:webport``.
        snapshot_id: The snapshot.
        taken_at: Its time, UTC.
        reasons: All reasons, those against it first.
    """

    broker: str
    snapshot_id: str
    taken_at: datetime
    reasons: tuple[RestartReason, ...]

    @property
    def state(self) -> State:
        """`STOP`: better not; `UNKNOWN`: nothing speaks against it as far as is known; `NOTE`: it may."""
        states = {each.state for each in self.reasons}
        return next((each for each in (State.STOP, State.UNKNOWN) if each in states), State.NOTE)

    def of(self, state: State) -> tuple[RestartReason, ...]:
        """Reasons of a state."""
        return tuple(each for each in self.reasons if each.state is state)
