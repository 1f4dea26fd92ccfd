"""Splitting a bundle: the namespace's boundaries show it, and the owner of the whole must own both halves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_steward.admin import calls
from pulsar_steward.apply.changes.kind import Drifted, Observation
from pulsar_steward.model.bundles import BY_TOPIC_COUNT, BundleRange, halves_by_topic_count

if TYPE_CHECKING:
    from pulsar_steward.admin.calls import Call
    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.model.step import SplitBundle


class Splitting:
    """One bundle being cut in two on its owner."""

    def __init__(self, change: SplitBundle) -> None:
        self._change = change

    def before(self, look: LiveReader) -> dict[str, Any]:
        """The namespace's bundles, and the owner; a split that would cut elsewhere than approved must not begin."""
        change = self._change
        self._require_same_cut(look)
        return {"owner": change.owner, "bundles": list(look.bundles(change.namespace) or ())}

    def call(self) -> Call:
        """The split, without an unload: both halves stay where they are."""
        return calls.split(self._change.namespace, self._change.bundle, self._change.algorithm)

    def completion(self, before: dict[str, Any]) -> Call | None:  # noqa: ARG002 - part of the protocol
        """None: a split is whole by itself."""
        return None

    def observe(self, look: LiveReader) -> Observation:
        """Whether both halves exist and have the owner of the whole."""
        change = self._change
        bundles = look.bundles(change.namespace) or ()
        owners = {
            half: look.owner(change.namespace, half, likely=change.owner) for half in change.halves if half in bundles
        }
        return Observation(
            there=owners == dict.fromkeys(change.halves, change.owner),
            untouched=change.bundle in bundles,
            words=_in_words(change, owners),
            values={"owners": owners, "whole": change.bundle in bundles},
        )

    def _require_same_cut(self, look: LiveReader) -> None:
        """A topic that was created or deleted since moves the cut, and a split cannot be undone."""
        change = self._change
        if change.algorithm != BY_TOPIC_COUNT:
            return
        positions = look.positions(change.namespace, change.bundle)
        halves = halves_by_topic_count(BundleRange.parse(change.bundle), positions)
        found = tuple(str(half) for half in halves or ())
        if found != change.halves:
            come = " and ".join(found) or "nothing"
            raise Drifted(f"the topics of {change.bundle} changed: a split would now yield {come}")


def _in_words(change: SplitBundle, owners: dict[str, str | None]) -> str:
    if not owners:
        return f"{change.namespace} has neither half of {change.bundle}"
    return ", ".join(f"{owner or 'nobody'} owns {half}" for half, owner in owners.items())
