"""Split of a bundle: proved by the namespace's boundaries, and by the former owner, which must own both halves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.changes.kind import Aspect, Before, ChangeKind, DisturbedBundle, Drifted, Observation
from pulsar_steward.errors import Refused
from pulsar_steward.model.bundles import (
    BY_TOPIC_COUNT,
    CALM_LOAD_MANAGER,
    BundleRange,
    bundle_in_words,
    halves_by_topic_count,
)
from pulsar_steward.model.pulsar_versions import Operation
from pulsar_steward.model.step import SplitBundle
from pulsar_steward.model.topics import SEGMENT
from pulsar_steward.pulsar import calls

if TYPE_CHECKING:
    from pulsar_steward.changes.kind import ApprovalWarning, ClusterReader, Inverse, Subject
    from pulsar_steward.model.step import GuardedChange
    from pulsar_steward.pulsar.calls import Call


class BeforeSplit(Before, frozen=True):
    """Owner of the bundle, and all bundles of its namespace."""

    owner: str
    bundles: list[str]


class Split(ChangeKind[SplitBundle, BeforeSplit]):
    """Split of one bundle in two on its owner."""

    undoable = False
    loses_messages = False
    aspects = frozenset({Aspect.BUNDLE})
    operation = Operation.SPLIT_BUNDLE
    before_type = BeforeSplit

    @property
    def subject(self) -> Subject:
        """The bundle."""
        return self.change.namespace, self.change.bundle

    @property
    def disturbs(self) -> DisturbedBundle:
        """The bundle, which its owner keeps."""
        change = self.change
        return DisturbedBundle(
            namespace=change.namespace, bundle=change.bundle, owner_before=change.owner, owner_after=change.owner
        )

    def clients(self, cluster: ClusterReader, owner: str | None = None) -> int:
        """0 under a load manager that was seen to keep clients connected; else all clients of the bundle."""
        change, owner = self.change, owner or self.change.owner
        if CALM_LOAD_MANAGER in cluster.configuration(owner).get("loadManagerClassName", ""):
            return 0
        return cluster.clients(owner, change.namespace, change.bundle)

    def record(self, cluster: ClusterReader) -> BeforeSplit:
        """The namespace's bundles, and the owner; raises if the split would not be at the approved position."""
        change = self.change
        self._require_same_cut(cluster)
        return BeforeSplit(owner=change.owner, bundles=list(cluster.bundles(change.namespace) or ()))

    def call(self) -> Call:
        """The split, without an unload: both halves stay where they are."""
        return calls.split(self.change.namespace, self.change.bundle, self.change.algorithm)

    def completion(self, before: BeforeSplit) -> Call | None:
        """None: the call is sufficient."""
        return None

    def observe(self, cluster: ClusterReader) -> Observation:
        """Both halves, if they exist, and their owners."""
        change = self.change
        bundles = cluster.bundles(change.namespace) or ()
        whole = change.bundle in bundles
        owners = {
            half: cluster.owner(change.namespace, half, likely=change.owner)
            for half in change.halves
            if half in bundles
        }
        return Observation(
            there=owners == dict.fromkeys(change.halves, change.owner),
            untouched=whole and cluster.owner(change.namespace, change.bundle, likely=change.owner) == change.owner,
            words=_in_words(change, owners),
            values={"owners": owners, "whole": whole},
        )

    def inverse(self, before: BeforeSplit, cluster: ClusterReader) -> Inverse:
        """Always raises `Refused`: there is no inverse."""
        raise Refused(
            f"the split of {self.change.namespace}/{self.change.bundle} cannot be undone: Pulsar does not join bundles"
            " again"
        )

    def describe(self) -> str:
        """The bundle with its broker."""
        return f"split {bundle_in_words(self.change.namespace, self.change.bundle)} on {self.change.owner}"

    def warning(self, step: GuardedChange) -> ApprovalWarning | None:
        """None: messages and producers stay."""
        return None

    def _require_same_cut(self, cluster: ClusterReader) -> None:
        """Checks the position of the split: topics that were created, deleted or loaded since may move it."""
        change = self.change
        loaded = cluster.topics(change.owner, change.namespace, change.bundle)
        if segment := min((name for name in loaded if name.startswith(SEGMENT)), default=None):
            raise Drifted(
                f"{change.bundle} has {segment} by now: brokers leave segments of scalable topics out of account when"
                " they divide a bundle"
            )
        if change.algorithm != BY_TOPIC_COUNT:
            return
        positions = cluster.positions(change.namespace, change.bundle)
        halves = halves_by_topic_count(BundleRange.parse(change.bundle), positions)
        found = tuple(str(half) for half in halves or ())
        if found != change.halves:
            come = " and ".join(found) or "nothing"
            raise Drifted(f"the topics of {change.bundle} changed: a split would now yield {come}")


def _in_words(change: SplitBundle, owners: dict[str, str | None]) -> str:
    if not owners:
        return f"{change.namespace} has neither half of {change.bundle}"
    return ", ".join(f"{owner or 'nobody'} owns {half}" for half, owner in owners.items())
