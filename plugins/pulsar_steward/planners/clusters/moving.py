"""Stages of moving a namespace to another cluster, which people carry out: each is ready, not yet, or cannot be told.

Every function is pure, and every call to copy is text: nothing here asks a cluster or changes one.
"""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from pulsar_steward.model.pulsar_versions import (
    MIGRATES_CLUSTERS,
    MIGRATES_NAMESPACES,
    MIGRATION_SPARES_ITS_OWN,
    Introduced,
    release_of,
)
from pulsar_steward.model.staged_move import Point, Stage, StagedMove, Standing
from pulsar_steward.model.units import counted, named, seconds_in_words, time_in_words
from pulsar_steward.planners.clusters.model import RESOURCES, Resource
from pulsar_steward.planners.clusters.moved_positions import positions_of
from pulsar_steward.planners.clusters.place import WORDS
from pulsar_steward.planners.clusters.stages import call, not_yet, ready, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pulsar_steward.facts.namespace_look import NamespaceLook, Replicating
    from pulsar_steward.planners.clusters.from_snapshots import MemberFacts
    from pulsar_steward.snapshots.read import Snapshot

LIVE = "a snapshot does not tell, `steward move-namespace` does"
"""Why a look by snapshots knows less than a live one."""

NOT_COMPARED = frozenset(
    {"bundles", "replication_clusters", "allowed_clusters", "migrated", "deleted", "auth_policies"}
)
"""Policies that differ between clusters by their nature; `auth_policies` hold names of roles."""

_EMPTY = """
select coalesce(sum(producers), 0)::bigint as producers, coalesce(sum(consumers), 0)::bigint as consumers
from topics where coalesce(namespace, namespace_of(topic)) = $namespace and of_users(topic)
"""


class Empty(msgspec.Struct, frozen=True, kw_only=True):
    """For how long the source has had no client, by its snapshots.

    Attributes:
        wanted_seconds: How long it should have had none.
        now: Time of the look.
        looks: Times of the last snapshots in a row without a client, newest first.
    """

    wanted_seconds: int
    now: datetime
    looks: tuple[datetime, ...] = ()


class _Clients(msgspec.Struct, frozen=True):
    producers: int
    consumers: int


def empty_looks(snapshots: Iterable[Snapshot], namespace: str) -> tuple[datetime, ...]:
    """Times of the snapshots in a row, newest first, that are whole and show no client of a namespace.

    Raises:
        SnapshotError: If one cannot be read.
    """
    found = []
    for snapshot in snapshots:
        meta, (told,) = snapshot.meta(), snapshot.select(_EMPTY, _Clients, namespace=namespace)
        if meta.unread or told.producers or told.consumers:
            break
        found.append(meta.taken_at)
    return tuple(found)


def stages_of(
    namespace: str,
    source: NamespaceLook,
    target: NamespaceLook,
    empty: Empty,
    members: tuple[MemberFacts, MemberFacts] | None = None,
) -> StagedMove:
    """All stages.

    Args:
        namespace: ``tenant/namespace``.
        source: The namespace at the cluster that it leaves.
        target: At the one that it goes to.
        empty: For how long the source has had no client.
        members: Both clusters by their newest snapshots, for ceilings; None: there are none.
    """
    moving = _Moving(namespace, source, target)
    clash = moving.clash()
    parts: tuple[tuple[str, Iterable[Point]], ...] = (
        ("The target is known, allowed, and set as the source", [*clash, *moving.allowed(), moving.room(members)]),
        ("Replication to the target is set", moving.replicated()),
        ("Topics are there with as many partitions", moving.topics()),
        ("The target has caught up, seen from both ends", moving.caught_up()),
        ("Subscriptions are there, with their positions", moving.positions()),
    )
    stages = [_stage(number, title, points) for number, (title, points) in enumerate(parts, start=1)]
    first = [each for each in stages if each.standing is not Standing.READY]
    ends: tuple[tuple[str, Iterable[Point]], ...] = (
        ("Clients are at the target", moving.clients()),
        ("Pulsar's own migration", moving.migration(first)),
        ("The source has been empty for long enough", moving.emptied(empty, first)),
    )
    stages += [_stage(number, title, points) for number, (title, points) in enumerate(ends, start=len(stages) + 1)]
    if clash:  # whatever is called would mix the messages of two topics, or delete those of one
        stages = [_without_calls(each) for each in stages]
    return StagedMove(
        namespace=namespace,
        source=source.cluster,
        target=target.cluster,
        stages=tuple(stages),
        source_seen=source.snapshot_at,
        target_seen=target.snapshot_at,
    )


def _stage(number: int, title: str, points: Iterable[Point]) -> Stage:
    found = tuple(points)
    worst = min((point.standing for point in found), key=lambda each: each.rank)
    return Stage(number=number, title=title, standing=worst, points=found)


def _without_calls(stage: Stage) -> Stage:
    points = tuple(msgspec.structs.replace(each, calls=(), more_calls=0) for each in stage.points)
    return msgspec.structs.replace(stage, points=points)


class _Moving:
    """The stages of one move, each as the points that it looks at."""

    def __init__(self, namespace: str, source: NamespaceLook, target: NamespaceLook) -> None:
        self._namespace = namespace
        self._tenant = namespace.partition("/")[0]
        self._source = source
        self._target = target
        self._shared = bool(source.store) and source.store == target.store

    def clash(self) -> list[Point]:
        """That topics of the same name are at both ends, which do not replicate them; empty: there are none."""
        source, target = self._source, self._target
        apart = target.pulsar_name not in source.replicated_to and source.pulsar_name not in target.replicated_to
        common = sorted(source.topics.keys() & target.topics.keys()) if apart and target.serves else []
        if not common:
            return []
        words = counted(len(common), "topic of the same name is", "topics of the same name are")
        return [
            not_yet(
                f"{words} at {target.cluster}, such as {common[0]}, and neither cluster replicates to the other: they"
                " hold other messages. Their owners have to rename or delete one of the two first"
            )
        ]

    def allowed(self) -> Iterator[Point]:
        """Stage 1: what has to be so before anything is replicated."""
        source, target = self._source, self._target
        if target.pulsar_name == source.pulsar_name:
            yield not_yet(f"both clusters call themselves {target.pulsar_name}: Pulsar cannot tell them apart")
        else:
            yield self._known_at(source, target)
            if not self._shared:
                yield self._known_at(target, source)
        for look in (source,) if self._shared else (source, target):
            yield self._tenant_at(look)
        if target.policies is None:
            made = call(target, "namespaces", "create", self._namespace, "--clusters", self._both())
            yield not_yet(f"{target.cluster} has no such namespace", [made])
        else:
            yield from self._same_policies()
        allowed = set((source.policies or {}).get("allowed_clusters") or ())
        if allowed and target.pulsar_name not in allowed:
            names = ",".join(sorted(allowed | {target.pulsar_name}))
            made = call(source, "namespaces", "set-allowed-clusters", self._namespace, "--clusters", names)
            yield not_yet(f"the namespace's policies do not allow {target.pulsar_name}", [made])

    @staticmethod
    def _known_at(look: NamespaceLook, other: NamespaceLook) -> Point:
        """Whether a cluster knows the other one; Pulsar refuses tenants of clusters that it does not know."""
        name = other.pulsar_name
        if name in look.clusters:
            return ready(f"{look.cluster} knows the cluster {name}")
        if look.snapshot_at:
            return unknown(f"whether {look.cluster} knows the cluster {name}: {LIVE}")
        made = call(look, "clusters", "create", name, *_urls(other, "--url"))
        return not_yet(f"{look.cluster} does not know the cluster {name}", [made])

    def _tenant_at(self, look: NamespaceLook) -> Point:
        wanted = {self._source.pulsar_name, self._target.pulsar_name}
        if look.tenant_clusters is not None and wanted <= look.tenant_clusters:
            return ready(f"the tenant {self._tenant} may use both at {look.cluster}")
        if look.snapshot_at:
            return unknown(f"whether the tenant {self._tenant} may use both at {look.cluster}: {LIVE}")
        names = ",".join(sorted(wanted | (look.tenant_clusters or set())))
        verb = "create" if look.tenant_clusters is None else "update"
        words = "there is no such tenant" if look.tenant_clusters is None else "its tenant may not use both"
        made = call(look, "tenants", verb, self._tenant, "--allowed-clusters", names)
        return not_yet(f"{look.cluster}: {words}", [made])

    def _same_policies(self) -> Iterator[Point]:
        here, there = ({**(look.policies or {})} for look in (self._source, self._target))
        names = sorted((here.keys() | there.keys()) - NOT_COMPARED)
        differ = [name for name in names if _as_set(here.get(name)) != _as_set(there.get(name))]
        if not differ:
            yield ready("its policies are the same at both")
            return
        calls = [call(look, "namespaces", "policies", self._namespace) for look in (self._source, self._target)]
        yield not_yet(f"policies differ: {named(differ)}", calls)

    def room(self, members: tuple[MemberFacts, MemberFacts] | None) -> Point:
        """Whether the target stays under its ceilings with the namespace, by the newest snapshots."""
        if members is None:
            if self._source.snapshot_at:
                return unknown(f"whether it has room: {LIVE}")
            words = "there is no diagnosed snapshot of both (`steward checkup --keep DIR` takes them)"
            return unknown(f"whether it has room: {words}")
        source, target = members
        moved, there = (
            next((each.load for each in member.holdings if each.namespace == self._namespace), None)
            for member in members
        )
        moved, here = moved or {}, self._source
        if not moved and (here.topics or here.loaded or here.unread or here.snapshot_at):
            nothing = f"the snapshot of {source.name} has nothing of the namespace"
            return unknown(f"whether it has room: {nothing}, and topics that are not loaded are in no snapshot")
        moved = moved | {Resource.TOPICS: max(moved.get(Resource.TOPICS, 0), len(here.parts()))}
        ceilings = target.capacity.ceilings()
        loads = {
            each: target.own.get(each, 0) + sum(held.load.get(each, 0) for held in target.holdings)
            for each in RESOURCES
        }
        more = {each: max(moved.get(each, 0) - (there or {}).get(each, 0), 0) for each in RESOURCES}
        over = [WORDS[each] for each in RESOURCES if each in ceilings and loads[each] + more[each] > ceilings[each]]
        known = named([WORDS[each] for each in RESOURCES if each in ceilings])
        if over:
            return not_yet(f"{target.name} would be over its ceiling of {named(over)}")
        return ready(f"{target.name} stays under its ceilings of {known}, by its snapshot")

    def replicated(self) -> Iterator[Point]:
        """Stage 2: by the policies, and by what loaded topics do."""
        source, target = self._source, self._target
        if target.pulsar_name not in source.replicated_to:
            made = call(source, "namespaces", "set-clusters", self._namespace, "--clusters", self._both())
            begins = "with all that its topics hold" if source.sends_all else "with what is published from then on"
            begins = "" if source.snapshot_at else f"; that begins {begins}"
            yield not_yet(f"policies at {source.cluster} do not replicate to it{begins}", [made])
            return
        yield ready(f"policies at {source.cluster} replicate to {target.pulsar_name}")
        if target.serves and source.pulsar_name not in target.replicated_to:
            made = call(target, "namespaces", "set-clusters", self._namespace, "--clusters", self._both())
            words = "does not replicate back: positions go along both ways or not at all, and nothing could go back"
            yield ready(f"{target.cluster} {words}", [made])
        without = [name for name, topic in source.loaded.items() if target.pulsar_name not in topic.replication]
        if without:
            words = counted(len(without), "loaded topic has no replicator", "loaded topics have no replicator")
            yield not_yet(f"{words} yet, or a policy of their own: {named(without)}")
        yield from self._unread(source)

    def topics(self) -> Iterator[Point]:
        """Stage 3: topics that the target lacks, and numbers of partitions that differ."""
        here, there = self._source.topics, self._target.topics
        if not self._target.serves:
            yield not_yet(f"{self._target.cluster} does not serve the namespace yet: see stages 1 and 2")
            return
        missing = [name for name in here if name not in there]
        if self._source.snapshot_at:
            both = counted(len(here) - len(missing), "topic is", "topics are")
            yield unknown(f"{both} loaded at both, of {len(here):,} at {self._source.cluster}; of others, {LIVE}")
            return
        fewer = [name for name in here if name in there and here[name] != there[name]]
        if missing:
            words = counted(len(missing), "topic is", "topics are")
            calls = (self._made(name, here[name]) for name in missing)
            yield not_yet(f"{words} not at {self._target.cluster}", calls)
        if fewer:
            words = counted(len(fewer), "topic has", "topics have")
            calls = (self._widened(name, here[name]) for name in fewer if here[name] > there[name] > 0)
            yield not_yet(f"{words} another number of partitions there: {named(fewer)}", calls)
        if not missing and not fewer:
            yield ready(f"{counted(len(here), 'topic')} at both, as their lists say")
        yield from self._unread(self._source, self._target)

    def _made(self, topic: str, partitions: int) -> str:
        words = (
            ("create-partitioned-topic", topic, "--partitions", str(partitions)) if partitions else ("create", topic)
        )
        return call(self._target, "topics", *words)

    def _widened(self, topic: str, partitions: int) -> str:
        return call(self._target, "topics", "update-partitioned-topic", topic, "--partitions", str(partitions))

    def caught_up(self) -> Iterator[Point]:
        """Stage 4: what waits at the source, and whether the target shows connections from there."""
        source, target = self._source, self._target
        sent = {
            name: topic.replication[target.pulsar_name]
            for name, topic in source.loaded.items()
            if target.pulsar_name in topic.replication
        }
        behind = {name: each for name, each in sent.items() if not each.has_arrived}
        if behind:
            yield not_yet(self._behind(behind), [call(source, "topics", "stats", name) for name in sorted(behind)[:1]])
        elif sent:
            waits = sum(each.entries for each in sent.values())
            yield ready(f"{counted(len(sent), 'topic')} sent: {counted(waits, 'entry', 'entries')} on the way")
        if unlike := [name for name in source.loaded if name not in sent]:
            yield not_yet(f"{counted(len(unlike), 'loaded topic is', 'loaded topics are')} not sent to it")
        if resting := sorted(source.parts() - source.loaded.keys()):
            words = counted(len(resting), "topic is not loaded", "topics are not loaded")
            calls = [call(source, "topics", "stats", name) for name in resting[:1]]
            yield unknown(
                f"{words} at {source.cluster}: what waits is not told before they are (the call loads)", calls
            )
        if source.snapshot_at:
            yield unknown(f"topics that are not loaded at {source.cluster}: {LIVE}")
        elif not source.parts():
            yield ready(f"{source.cluster} has no topic of it")
        back = [
            topic.replication[source.pulsar_name]
            for topic in target.loaded.values()
            if source.pulsar_name in topic.replication
        ]
        if back:
            inbound = sum(each.inbound for each in back)
            yield ready(
                f"{target.cluster} shows {source.cluster} connected to {inbound:,} of {counted(len(back), 'topic')}"
            )
        elif sent:
            yield ready(f"{target.cluster} does not replicate back, and so tells nothing of what arrives")
        yield from self._unread(source)

    def _behind(self, behind: dict[str, Replicating]) -> str:
        waits = sum(each.entries for each in behind.values())
        cut = sum(each.connected is False for each in behind.values())
        delays = [each.delay_seconds for each in behind.values() if each.delay_seconds]
        longest = f", for {seconds_in_words(max(delays))} at least" if delays else ""
        apart = f"; {cut:,} not connected" if cut else ""
        most = max(behind, key=lambda name: (behind[name].entries, name))
        entries = counted(waits, "entry waits", "entries wait")
        return f"{entries} on {counted(len(behind), 'topic')}{longest}{apart}; most on {most}"

    def positions(self) -> Iterator[Point]:
        """Stage 5: what would be read again or missed at the target, and which positions go along."""
        yield from positions_of(self._source, self._target)
        yield from self._unread(self._source, self._target)

    def clients(self) -> Iterator[Point]:
        """Stage 6: clients by host and version at each end."""
        source, target = self._source, self._target
        _, service = target.addresses.get(target.pulsar_name, (None, None))
        if source.clients:
            address = f"; they need the address {service}" if service else ""
            yield not_yet(f"at {source.cluster}: {_groups(source)}{address}")
        elif not source.unread:
            yield ready(f"no client is at {source.cluster}")
        yield (
            ready(f"at {target.cluster}: {_groups(target)}")
            if target.clients
            else ready(f"no client is at {target.cluster}")
        )
        yield from self._unread(source)

    def migration(self, first: Sequence[Stage]) -> Iterator[Point]:
        """Stage 7: Pulsar's own migration of clients (PIP-188), as the source's version has it.

        It ends topics for good: its calls are told once no stage has to be ready `first`. That of clients need not be.
        """
        source = self._source
        release = release_of(source.version)
        if not source.clients and not source.unread:
            yield ready("no client is left that it would send on")
            return
        if release is None:
            yield unknown(f"what {source.version} has of it: that is no release of Apache Pulsar's")
            return
        if not MIGRATES_CLUSTERS.is_in(*release):
            yield not_yet(f"Pulsar {source.version} has none: give clients the new address")
            return
        if not MIGRATES_NAMESPACES.is_in(*release):
            words = "migrates whole clusters only, all namespaces at once: give clients the new address"
            yield not_yet(f"Pulsar {source.version} {words}")
            return
        if source.snapshot_at:
            yield unknown(f"whether it was begun: {LIVE}")
            return
        if not source.migration_seconds:
            words = "have `clusterMigrationCheckDurationSeconds=0` and never begin one: set it and restart them"
            yield not_yet(f"brokers of {source.cluster} {words}")
        yield self._begun(release, first)

    def _begun(self, release: tuple[int, int, int], first: Sequence[Stage]) -> Point:
        """Whether the migration was begun, and what it would do or does."""
        source, target = self._source, self._target
        _, service = target.addresses.get(target.pulsar_name, (None, None))
        begun = source.migrated or bool((source.policies or {}).get("migrated"))
        if source.migrates_to and source.migrates_to != service:
            return not_yet(
                f"{source.cluster} sends clients to {source.migrates_to}, and not to {service or 'the target'}"
            )
        if source.pulsar_name in target.replicated_to:
            words = "it was begun" if begun else "it was not begun, and should not be: give clients the new address"
            return not_yet(
                f"{words}. {target.cluster} replicates back to {source.cluster}, whose brokers send also that on to"
                f" {target.cluster}: with the migration it stores each new message twice"
            )
        if begun and source.migrates_to:
            return ready(f"it was begun: clients with nothing left to read are sent to {source.migrates_to}")
        if first:
            return not_yet(
                f"it was not begun, and is not needed where clients get the new address.{_has_to_be_ready(first)} A"
                f" consumer whose subscription {target.cluster} lacks would miss what was published there before it"
            )
        return self._migration_calls(release)

    def _migration_calls(self, release: tuple[int, int, int]) -> Point:
        source, urls = self._source, _urls(self._target, "--service-url")
        calls = [
            call(source, "clusters", "update-cluster-migration", source.pulsar_name, *urls),
            call(source, "namespaces", "update-migration-state", self._namespace, "--migrated"),
        ]
        own: Introduced = MIGRATION_SPARES_ITS_OWN
        spared = "" if own.is_in(*release) else f" Before {own.since}, Pulsar's own topics of it end as well."
        return not_yet(
            "it was not begun, and is not needed where clients get the new address. It ends the topics at"
            f" {source.cluster} for good: nothing can be published there again. Producers go once all is replicated,"
            " consumers once they have read all; messages are not copied. A topic that is not loaded, or is unloaded"
            f" meanwhile, cannot be read at {source.cluster} until the mark is taken back.{spared}",
            calls,
        )

    def emptied(self, empty: Empty, first: Sequence[Stage]) -> Iterator[Point]:
        """Stage 8: no client for a time, by snapshots of the source; then its topics may go, once all is copied."""
        source, target = self._source, self._target
        if first:
            words = f"its last call deletes all that {source.cluster} stores.{_has_to_be_ready(first)}"
            known = any(each.standing is Standing.NOT_YET for each in first)
            yield not_yet(words) if known else unknown(words)
        wanted = seconds_in_words(empty.wanted_seconds)
        if source.clients:
            yield not_yet(f"clients are at {source.cluster}")
            return
        if source.unread:
            yield from self._unread(source)
            return
        last = [call(source, "namespaces", "set-clusters", self._namespace, "--clusters", target.pulsar_name)]
        ends = f"The last call ends its topics at {source.cluster}, with all that they store"
        warning = f" {ends}: it cannot be undone, and may keep brokers busy for a minute."
        if first:
            last, warning = [], ""
        looks = (empty.now, *empty.looks)
        since = looks[-1]
        seconds = (empty.now - since).total_seconds()
        widest = max(((after - before).total_seconds() for after, before in pairwise(looks)), default=0.0)
        if not empty.wanted_seconds:
            yield ready(f"no client now, and no time was asked for.{warning}", last)
        elif not empty.looks:
            yield unknown(f"no client now; no snapshot of {source.cluster} shows for how long ({wanted} are wanted)")
        elif seconds < empty.wanted_seconds:
            yield not_yet(f"no client since {time_in_words(since)} at the latest; {wanted} are wanted")
        elif 2 * widest > empty.wanted_seconds:
            apart = seconds_in_words(widest, rounded=True)
            yield unknown(
                f"no client in {counted(len(looks), 'look')}, which are up to {apart} apart: too far for {wanted}"
            )
        else:
            shown = counted(len(looks), "look")
            yield ready(f"no client in {shown} since {time_in_words(since)}.{warning}", last)

    def _both(self) -> str:
        return ",".join(sorted({*self._source.replicated_to, self._source.pulsar_name, self._target.pulsar_name}))

    @staticmethod
    def _unread(*looks: NamespaceLook) -> Iterator[Point]:
        for look in looks:
            if look.unread:
                yield unknown(f"{look.cluster}: {counted(len(look.unread), 'part')} not read: {look.unread[0]}")


def _urls(look: NamespaceLook, admin_option: str) -> tuple[str, ...]:
    """Options with a cluster's own addresses; gaps where they are not told."""
    admin, service = look.addresses.get(look.pulsar_name, (None, None))
    return admin_option, admin or "ADMIN_URL", "--broker-url", service or "SERVICE_URL"


def _has_to_be_ready(first: Sequence[Stage]) -> str:
    """A sentence on stages that hold back calls which cannot be undone; empty: none does."""
    numbers = ", ".join(str(each.number) for each in first)
    words = "stages {} have" if len(first) > 1 else "stage {} has"
    return f" First {words.format(numbers)} to be ready." if first else ""


def _as_set(value: object) -> object:
    """A policy's value; None: it is not set. A number or a switch is, also 0 and false."""
    return None if value in ("", [], {}) else value


def _groups(look: NamespaceLook) -> str:
    producers, consumers = (sum(getattr(each, kind) for each in look.clients) for kind in ("producers", "consumers"))
    groups = [
        f"{each.host or 'host not told'} ({each.version or 'no version'}) {each.producers + each.consumers:,}"
        for each in look.clients
    ]
    words = named(groups)
    return f"{counted(producers, 'producer')}, {counted(consumers, 'consumer')}: {words}"
