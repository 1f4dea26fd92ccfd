"""Changing a setting of a namespace or topic: set or removed by one call, and read back from where it is set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.admin import calls
from pulsar_steward.apply.changes.kind import Drifted, Observation
from pulsar_steward.model.setting import in_words

if TYPE_CHECKING:
    from pulsar_steward.admin.calls import Call
    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.model.step import ChangeSetting


class Setting:
    """One setting on its way to another value."""

    def __init__(self, change: ChangeSetting) -> None:
        self._change = change

    def before(self, look: LiveReader) -> dict[str, Any]:
        """The value to go back to; another one than the plan rests on means that somebody changed it since."""
        change = self._change
        now = look.own_setting(change)
        if now != change.before:
            raise Drifted(
                f"the {change.name} of {change.holder} is {in_words(change.name, now)}, not"
                f" {in_words(change.name, change.before)} as when this was planned"
            )
        return {"value": msgspec.to_builtins(now)}

    def call(self) -> Call:
        """Sets it, or removes it where nothing shall be set."""
        return calls.set_to(self._change.holder, self._change.name, self._change.after)

    def completion(self, before: dict[str, Any]) -> Call | None:  # noqa: ARG002 - part of the protocol
        """None: a setting is whole by itself."""
        return None

    def observe(self, look: LiveReader) -> Observation:
        """What is set now."""
        change = self._change
        now = look.own_setting(change)
        return Observation(
            there=now == change.after,
            untouched=now == change.before,
            words=f"the {change.name} of {change.holder} is {in_words(change.name, now)}",
            values={"value": msgspec.to_builtins(now)},
        )
