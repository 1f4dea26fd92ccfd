"""Moving a bundle: unload it towards a broker, look one of its topics up so that it is loaded there, read the owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.admin import calls
from pulsar_steward.apply.changes.kind import Observation
from pulsar_steward.errors import Refused

if TYPE_CHECKING:
    from pulsar_steward.admin.calls import Call
    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.model.step import UnloadBundle


def _from(change: UnloadBundle, owner: str | None) -> UnloadBundle:
    return msgspec.structs.replace(change, source=owner)


class Unloading:
    """One bundle on its way from one broker to another."""

    def __init__(self, change: UnloadBundle) -> None:
        self._change = change

    def before(self, look: LiveReader) -> dict[str, Any]:
        """Owner, and the topic by which the bundle will be loaded again; asked now, as later nobody may own it."""
        change = self._change
        topic = look.topic_in(change.namespace, change.bundle)
        if topic is None:
            raise Refused(f"{change.namespace}/{change.bundle} holds no topic: no lookup could have it loaded again")
        return {"owner": change.source, "topic": topic}

    def call(self) -> Call:
        """The unload, with its destination."""
        return calls.unload(self._change.namespace, self._change.bundle, self._change.target)

    def completion(self, before: dict[str, Any]) -> Call | None:
        """The lookup: until somebody asks for a topic of the bundle, nobody owns it, coordinators included."""
        return calls.look_up(before["topic"])

    def observe(self, look: LiveReader) -> Observation:
        """Who owns the bundle."""
        change = self._change
        owner = look.owner(change.namespace, change.bundle, likely=change.target)
        return Observation(
            there=owner == change.target,
            untouched=owner == change.source,
            words=f"{owner} owns {change.bundle}" if owner else f"nobody owns {change.bundle}",
            values={"owner": owner},
            # Only one lookup gets the named destination; another at the same moment may be given any other broker.
            continuation=None if owner in {None, change.source, change.target} else _from(change, owner),
            # Its former broker may be quicker as well, by a client's lookup or a reader of its own.
            retry=change if owner == change.source else None,
        )
