"""Move of a bundle: an unload with a destination, a lookup of a topic so that it is loaded, a read of the owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.changes.kind import Aspect, Before, ChangeKind, DisturbedBundle, Inverse, Observation
from pulsar_steward.errors import AdminError, Refused
from pulsar_steward.model.bundles import TC_NAMESPACE, bundle_in_words, coordinators_in
from pulsar_steward.model.pulsar_versions import Operation
from pulsar_steward.model.step import Touched, UnloadBundle
from pulsar_steward.pulsar import calls

if TYPE_CHECKING:
    from pulsar_steward.changes.kind import ApprovalWarning, ClusterReader, Subject
    from pulsar_steward.model.step import GuardedChange
    from pulsar_steward.pulsar.calls import Call


class BeforeUnload(Before, frozen=True):
    """Owner of the bundle, and the topic for the lookup that loads it again."""

    owner: str
    topic: str


class Unload(ChangeKind[UnloadBundle, BeforeUnload]):
    """Move of one bundle from its owner to another broker."""

    undoable = True
    loses_messages = False
    aspects = frozenset({Aspect.BUNDLE, Aspect.OWNER})
    before_type = BeforeUnload

    @property
    def subject(self) -> Subject:
        """The bundle."""
        return self.change.namespace, self.change.bundle

    @property
    def operation(self) -> Operation:
        """A move; moves of coordinators are a separate operation, as only their bundle decides their place."""
        of_system = self.change.namespace == TC_NAMESPACE
        return Operation.MOVE_COORDINATORS if of_system else Operation.MOVE_BUNDLE

    @property
    def disturbs(self) -> DisturbedBundle:
        """The bundle, which goes to another broker."""
        change = self.change
        return DisturbedBundle(
            namespace=change.namespace, bundle=change.bundle, owner_before=change.source, owner_after=change.target
        )

    def clients(self, cluster: ClusterReader, owner: str | None = None) -> int:
        """All clients that are connected through the bundle."""
        return cluster.clients(owner or self.change.source, self.change.namespace, self.change.bundle)

    def record(self, cluster: ClusterReader) -> BeforeUnload:
        """Owner, and the topic for the lookup; read now, as the bundle may have no owner later."""
        change = self.change
        topic = cluster.topic_in(change.namespace, change.bundle)
        if topic is None:
            raise Refused(f"{change.namespace}/{change.bundle} holds no topic: no lookup could have it loaded again")
        return BeforeUnload(owner=change.source, topic=topic)

    def call(self) -> Call:
        """The unload, with its destination."""
        return calls.unload(self.change.namespace, self.change.bundle, self.change.target)

    def completion(self, before: BeforeUnload) -> Call:
        """The lookup: until a topic of the bundle is looked up, the bundle has no owner, also for coordinators."""
        return calls.look_up(before.topic)

    def observe(self, cluster: ClusterReader) -> Observation:
        """The bundle's owner."""
        change = self.change
        owner = cluster.owner(change.namespace, change.bundle, likely=change.target)
        return Observation(
            there=owner == change.target,
            untouched=owner == change.source,
            words=f"{owner} owns {change.bundle}" if owner else f"nobody owns {change.bundle}",
            values={"owner": owner},
            # Only one lookup gets the named destination; another lookup at the same time may get any other broker.
            continuation=None if owner in {None, change.source, change.target} else self._from(owner),
            # The former owner may also be first, because of a client's lookup or its own reader.
            retry=change if owner == change.source else None,
        )

    def inverse(self, before: BeforeUnload, cluster: ClusterReader) -> Inverse:
        """The move back to the former owner, if the bundle is still on the broker it was moved to."""
        made, home = self.change, before.owner
        bundle = f"{made.namespace}/{made.bundle}"
        if made.bundle not in (cluster.bundles(made.namespace) or ()):
            raise Refused(f"{bundle} is no more: it was divided otherwise, or deleted, since Steward moved it")
        owner = cluster.owner(made.namespace, made.bundle, likely=made.target)
        if owner != made.target:
            raise Refused(
                f"{owner or 'nobody'} owns {bundle} since somebody moved it; Steward had moved it to {made.target},"
                f" before {home} owned it; it is left where it is"
            )
        if home not in cluster.brokers() or isinstance(cluster.owned_by_each([home])[home], AdminError):
            raise Refused(
                f"{bundle} stays on {made.target}: its former broker {home} is no longer listed, or does not answer"
            )
        return Inverse(
            change=msgspec.structs.replace(made, source=made.target, target=home),
            made=f"moved {bundle} from {home} to {made.target}",
            effect=f"{home} owns {bundle} again",
            touched=self._touched_on(made.target, cluster),
            undo=msgspec.structs.replace(made, source=home),
            undo_note=f"Unload it from {home} to {made.target} once more: the same clients reconnect.",
        )

    def describe(self) -> str:
        """The bundle with both brokers."""
        change = self.change
        return f"move {bundle_in_words(change.namespace, change.bundle)} from {change.source} to {change.target}"

    def warning(self, step: GuardedChange) -> ApprovalWarning | None:
        """None: clients reconnect, and messages stay."""
        return None

    def _from(self, owner: str | None) -> UnloadBundle:
        return msgspec.structs.replace(self.change, source=owner)

    def _touched_on(self, owner: str, cluster: ClusterReader) -> Touched:
        """Clients, topics and coordinators of the bundle, from its owner's statistics."""
        change = self.change
        topics = cluster.topics(owner, change.namespace, change.bundle)
        bundle = (f"{change.namespace}/{change.bundle}",)
        return Touched(
            producers=sum(topic.producer_count for topic in topics.values()),
            consumers=sum(topic.consumer_count for topic in topics.values()),
            topics=len(topics),
            coordinators=coordinators_in(bundle, cluster.coordinators()) if change.namespace == TC_NAMESPACE else 0,
        )
