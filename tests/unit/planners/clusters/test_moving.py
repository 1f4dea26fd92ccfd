"""Each stage of moving a namespace, on looks made by hand: ready, not yet with the reason and the call, not told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.facts.namespace_look import ClientGroup, LoadedTopic, NamespaceLook, Position, Replicating
from pulsar_steward.model.staged_move import Stage, StagedMove, Standing
from pulsar_steward.planners.clusters.from_snapshots import Capacity, MemberFacts, member_facts
from pulsar_steward.planners.clusters.model import Holding, Resource
from pulsar_steward.planners.clusters.moving import Empty, empty_looks, stages_of
from pulsar_steward.policy.schema import Policy
from pulsar_steward.snapshots.read import open_snapshot
from pulsar_steward.snapshots.rows import SnapshotMeta
from tests.cases import cases
from tests.unit.planners.clusters.members import Held, write_member
from tests.unit.planners.clusters.replicating import taken
from tests.unit.report_checkup.snapshots import META

if TYPE_CHECKING:
    from pathlib import Path

NAMESPACE, TOPIC = "acme/orders", "persistent://acme/orders/paid"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
READY, NOT_YET, UNKNOWN = Standing.READY, Standing.NOT_YET, Standing.UNKNOWN
BOTH = frozenset({"east", "west"})
CLIENT = ClientGroup(host="10.0.0.1", version="Pulsar-Java-v4.0.7", producers=1, consumers=2)
BUSY = {"clients": (CLIENT,)}
ONE_WAY = {"policies": {"replication_clusters": ["west"]}}
BEGUN = {"migrates_to": "pulsar://west:6650", "migrated": True}


def link(**figures: Any) -> Replicating:
    """Replication with nothing waiting."""
    usual = {"connected": True, "entries": 0, "rate_out": 0.0, "delay_seconds": 0, "inbound": True}
    return Replicating(**usual | figures)


def loaded(other: str, *, to: Replicating | None = None, **positions: Position) -> dict[str, LoadedTopic]:
    """The one topic, replicated to the other cluster."""
    return {TOPIC: LoadedTopic(positions=positions, replication={other: to or link()})}


def look(name: str, **changed: Any) -> NamespaceLook:
    """East or west, with all that a move needs."""
    other = "west" if name == "east" else "east"
    usual: dict[str, Any] = {
        "cluster": name,
        "pulsar_name": name,
        "url": f"http://{name}:8080",
        "version": "4.0.7",
        "migration_seconds": 60,
        "clusters": BOTH,
        "addresses": {name: (f"http://{name}:8080", f"pulsar://{name}:6650")},
        "tenant_clusters": BOTH,
        "policies": {"replication_clusters": ["east", "west"]},
        "topics": {TOPIC: 0},
        "loaded": loaded(other),
    }
    return NamespaceLook(**usual | changed)


def roomy(name: str) -> MemberFacts:
    """A member by its snapshot, which has the namespace and room for it."""
    load = {Resource.TOPICS: 1}
    return MemberFacts(
        meta=msgspec.convert(META | {"cluster": name}, SnapshotMeta),
        capacity=Capacity(
            brokers=1,
            lost=0,
            topics_per_broker=100,
            topics=100,
            metadata_nodes=None,
            millicpu=None,
            cpu_percent=80,
            stored_bytes=None,
        ),
        own={},
        holdings=(Holding(namespace=NAMESPACE, member=name, load=load),),
        replication={},
        subscriptions=0,
        coordinators=0,
        versions=(),
        settings={},
        unknown=(),
    )


ROOM = (roomy("east"), roomy("west"))


def move(east: dict[str, Any] | None = None, west: dict[str, Any] | None = None, **empty: Any) -> StagedMove:
    """The move from east to west, where there is room; both ends with these changes."""
    usual: dict[str, Any] = {"wanted_seconds": 3600, "now": NOW}
    told = Empty(**usual | empty)
    return stages_of(NAMESPACE, look("east", **east or {}), look("west", **west or {}), told, ROOM)


def stage(number: int, east: dict[str, Any] | None = None, west: dict[str, Any] | None = None, **empty: Any) -> Stage:
    """One of its stages."""
    return move(east, west, **empty).stages[number - 1]


def words(found: Stage) -> str:
    """All that a stage says, and its calls."""
    return "\n".join([*(point.words for point in found.points), *(each for it in found.points for each in it.calls)])


@cases(
    "east, west, said",
    ("the target is not known", {"clusters": frozenset({"east"})}, {}, "clusters create west --url http://west:8080"),
    (
        "nor the source",
        {},
        {"clusters": frozenset({"west"})},
        "http://west:8080 clusters create east --url http://east",
    ),
    (
        "its tenant may not",
        {"tenant_clusters": frozenset({"east"})},
        {},
        "tenants update acme --allowed-clusters east,west",
    ),
    ("there is no tenant", {}, {"tenant_clusters": None}, "http://west:8080 tenants create acme"),
    ("there is no namespace", {}, {"policies": None}, "http://west:8080 namespaces create acme/orders"),
    (
        "a policy differs",
        {"policies": {"replication_clusters": ["east"], "message_ttl_in_seconds": 60, "bundles": {}}},
        {"policies": {"replication_clusters": ["west"], "bundles": {"n": 4}}},
        "policies differ: message_ttl_in_seconds",
    ),
    (
        "for ever is not the brokers' default",
        {"policies": {"replication_clusters": ["east"], "message_ttl_in_seconds": 0}},
        {"policies": {"replication_clusters": ["west"], "topic_policies": {}}},
        "policies differ: message_ttl_in_seconds",
    ),
    (
        "the policies do not allow it",
        {"policies": {"replication_clusters": ["east"], "allowed_clusters": ["east", "south"]}},
        {},
        "set-allowed-clusters acme/orders --clusters east,south,west",
    ),
    ("both have one name", {"pulsar_name": "west"}, {}, "cannot tell them apart"),
)
def test_the_target_has_to_be_allowed(east: dict[str, Any], west: dict[str, Any], said: str) -> None:
    found = stage(1, east, west)
    assert found.standing is NOT_YET
    assert said in words(found)


def test_what_one_store_holds_is_said_once() -> None:
    """Of two clusters behind one configuration store the tenant is one."""
    store = {"store": "zk:a:2181", "tenant_clusters": None}
    assert words(stage(1, store, store)).count("tenants create") == 1
    apart = {**store, "store": "zk:b:2181"}
    assert words(stage(1, store, apart)).count("tenants create") == 2


@cases(
    "held, there, expected, said",
    ("there is room", Held(10, 10, ("east",)), {}, READY, "stays under its ceilings of topics"),
    ("there is none", Held(101, 10, ("east",)), {}, NOT_YET, "over its ceiling of topics"),
    ("nothing is known of it", None, {}, UNKNOWN, "the snapshot of east has nothing of the namespace"),
    ("it is there", Held(100, 10, ("east",)), {NAMESPACE: Held(100, 10, ("west",))}, READY, "stays under its ceilings"),
)
def test_ceilings_are_those_of_snapshots(
    tmp_path: Path, held: Held | None, there: dict[str, Held], expected: Standing, said: str
) -> None:
    source, target = (
        member_facts(open_snapshot(write_member(tmp_path, name, each)), Policy())
        for name, each in (
            ("east", {NAMESPACE: held} if held else {}),
            ("west", {"acme/x": Held(20, 0, ("west",)), **there}),
        )
    )
    empty = Empty(wanted_seconds=0, now=NOW)
    found = stages_of(NAMESPACE, look("east"), look("west"), empty, (source, target)).stages[0]
    assert (found.standing, said in words(found)) == (expected, True)
    unknown = stages_of(NAMESPACE, look("east"), look("west"), empty)
    assert [each.standing for each in unknown.stages[:1]] == [UNKNOWN], "there is no snapshot of both"
    assert not final_calls(unknown)


@cases(
    "listed, held, expected, said",
    ("none is there", {}, None, READY, "stays under its ceilings"),
    ("none is there that a snapshot tells", {"snapshot_at": NOW}, None, UNKNOWN, "are in no snapshot"),
    ("none could be listed", {"unread": ("topics",)}, None, UNKNOWN, "are in no snapshot"),
    ("none is loaded", {"topics": {TOPIC: 4}}, None, UNKNOWN, "are in no snapshot"),
    ("a few are loaded", {"topics": {TOPIC: 500}}, Held(2, 2, ("east",)), NOT_YET, "over its ceiling of topics"),
)
def test_topics_that_are_not_loaded_need_room(
    tmp_path: Path, listed: dict[str, Any], held: Held | None, expected: Standing, said: str
) -> None:
    """All are loaded when they are replicated; a snapshot has none of them."""
    source, target = (
        member_facts(open_snapshot(write_member(tmp_path, name, each)), Policy())
        for name, each in (("east", {NAMESPACE: held} if held else {}), ("west", {"acme/x": Held(20, 0, ("west",))}))
    )
    east = look("east", **{"topics": {}, "loaded": {}, **listed})
    empty = Empty(wanted_seconds=0, now=NOW)
    room = stages_of(NAMESPACE, east, look("west"), empty, (source, target)).stages[0].points[-1]
    assert (room.standing, said in room.words) == (expected, True), room.words


@cases(
    "number, east, west, expected, said",
    ("replicated", 2, {}, {}, READY, "policies at east replicate to west"),
    ("not replicated", 2, {"policies": {"replication_clusters": ["east"]}}, {}, NOT_YET, "set-clusters acme/orders"),
    (
        "one way",
        2,
        {},
        {"policies": {"replication_clusters": ["west"]}},
        READY,
        "http://west:8080 namespaces set-clusters acme/orders --clusters east,west",
    ),
    ("from now on", 2, {"policies": {}}, {}, NOT_YET, "begins with what is published from then on"),
    ("from the first", 2, {"policies": {}, "sends_all": True}, {}, NOT_YET, "begins with all that its topics hold"),
    ("a topic is not", 2, {"loaded": {TOPIC: LoadedTopic(positions={}, replication={})}}, {}, NOT_YET, TOPIC),
    ("a part was not read", 2, {"unread": ("topics of b",)}, {}, UNKNOWN, "topics of b"),
    ("as many topics", 3, {}, {}, READY, "1 topic at both"),
    ("nobody serves it", 3, {}, {"policies": {"replication_clusters": ["east"]}}, NOT_YET, "see stages 1 and 2"),
    ("a topic is missing", 3, {}, {"topics": {}}, NOT_YET, f"topics create {TOPIC}"),
    ("partitions are missing", 3, {"topics": {TOPIC: 4}}, {"topics": {}}, NOT_YET, f"{TOPIC} --partitions 4"),
    ("fewer partitions", 3, {"topics": {TOPIC: 4}}, {"topics": {TOPIC: 2}}, NOT_YET, "update-partitioned-topic"),
    ("more partitions", 3, {"topics": {TOPIC: 2}}, {"topics": {TOPIC: 4}}, NOT_YET, "another number of partitions"),
    ("caught up", 4, {}, {}, READY, "west shows east connected to 1 of 1 topic"),
    (
        "on its way",
        4,
        {"loaded": loaded("west", to=link(entries=50, rate_out=10.0))},
        {},
        READY,
        "50 entries on the way",
    ),
    (
        "waits",
        4,
        {"loaded": loaded("west", to=link(entries=51, rate_out=10.0, delay_seconds=9))},
        {},
        NOT_YET,
        "for 9 s",
    ),
    ("cut", 4, {"loaded": loaded("west", to=link(entries=1, connected=False))}, {}, NOT_YET, "1 not connected"),
    ("not loaded", 4, {"loaded": {}}, {}, UNKNOWN, "1 topic is not loaded at east"),
    ("no client", 6, {}, BUSY, READY, "no client is at east"),
    ("clients", 6, BUSY, {}, NOT_YET, "10.0.0.1 (Pulsar-Java-v4.0.7) 3; they need the address pulsar://west:6650"),
    ("nobody is left", 7, {}, {}, READY, "no client is left"),
    ("too old", 7, {**BUSY, "version": "2.10.4"}, {}, NOT_YET, "Pulsar 2.10.4 has none"),
    ("whole clusters", 7, {**BUSY, "version": "3.0.7"}, {}, NOT_YET, "migrates whole clusters only"),
    ("no release", 7, {**BUSY, "version": "acme"}, {}, UNKNOWN, "no release of Apache Pulsar's"),
    ("nobody begins it", 7, {**BUSY, "migration_seconds": 0}, {}, NOT_YET, "DurationSeconds=0` and never begin one"),
    (
        "it would end system topics",
        7,
        {**BUSY, "version": "3.3.2"},
        ONE_WAY,
        NOT_YET,
        "Before 3.3.4, 4.0.2, Pulsar's own",
    ),
    ("not begun", 7, BUSY, ONE_WAY, NOT_YET, "namespaces update-migration-state acme/orders --migrated"),
    ("not begun, as messages would double", 7, BUSY, {}, NOT_YET, "it stores each new message twice"),
    ("first the subscriptions", 7, {**BUSY, "loaded": {}}, ONE_WAY, NOT_YET, "First stage 4"),
    ("elsewhere", 7, {**BUSY, "migrates_to": "pulsar://x:1"}, {}, NOT_YET, "and not to pulsar://west:6650"),
    ("begun", 7, {**BUSY, **BEGUN}, ONE_WAY, READY, "it was begun: clients"),
    ("begun, and messages double", 7, {**BUSY, **BEGUN}, {}, NOT_YET, "it was begun. west replicates back to east"),
)
def test_a_stage(number: int, east: dict[str, Any], west: dict[str, Any], expected: Standing, said: str) -> None:
    found = stage(number, east, west)
    assert (found.standing, said in words(found)) == (expected, True), words(found)


@cases(
    "east, west",
    ("the target replicates back", BUSY, {}),
    ("what is there is not known to be at the target", {**BUSY, "loaded": {}}, ONE_WAY),
)
def test_a_migration_that_would_harm_has_no_call(east: dict[str, Any], west: dict[str, Any]) -> None:
    assert not any(point.calls for point in stage(7, east, west).points)


def held(here: Position, there: Position | None, **sent: Any) -> Stage:
    """The stage of positions, of one subscription at both ends."""
    at_west = loaded("east", billing=there) if there else loaded("east")
    return stage(5, {"loaded": loaded("west", to=link(**sent), billing=here)}, {"loaded": at_west})


def at(entries: int, *, size: int | None = None, replicated: bool | None = True, consumers: int = 0) -> Position:
    """A position."""
    return Position(entries=entries, messages_per_entry=size, replicated=replicated, consumers=consumers)


@cases(
    "here, there, sent, expected, said",
    ("level", at(5), at(5), {}, READY, "1 subscription with as much to read at both"),
    ("again, in messages", at(5, size=10), at(8), {}, READY, "1 subscription would read 30 messages again"),
    ("again, in entries", at(5), at(8), {}, READY, "3 entries, each a message or a batch again"),
    ("missed", at(900), at(8), {}, NOT_YET, "1 subscription would miss 892 entries"),
    ("on its way", at(900), at(8), {"entries": 892}, READY, "on the way to west"),
    ("sent lately", at(900), at(8), {"rate_out": 20.0}, READY, "on the way to west"),
    ("absent", at(7, size=2), None, {}, NOT_YET, "with 14 messages to read at east"),
    ("its own position alone", at(5, replicated=False), at(5), {}, NOT_YET, "set-replicated-subscription-status"),
    ("not told", at(5, replicated=None), at(5), {}, UNKNOWN, "whether the position of 1 subscription is replicated"),
    ("read there already", at(9, replicated=False), at(0, consumers=1), {}, READY, "with consumers at west already"),
)
def test_positions(here: Position, there: Position | None, sent: dict[str, Any], expected: Standing, said: str) -> None:
    found = held(here, there, **sent)
    assert (found.standing, said in words(found)) == (expected, True), words(found)


def test_a_subscription_is_never_made_at_the_end() -> None:
    """What was replicated before it was made would be behind it, and nobody would read that."""
    (made,) = [each for point in held(at(7), None).points for each in point.calls]
    assert made.endswith(f"create-subscription {TOPIC} --subscription billing --messageId earliest")


def test_positions_that_brokers_replicate_at_all() -> None:
    """A setting of brokers says that none goes along; positions of topics that are not loaded are not told."""
    settings = {"keeps_positions": False, "loaded": loaded("west", billing=at(1))}
    assert "replicates no positions" in words(stage(5, settings, {"loaded": loaded("east", billing=at(1))}))
    resting = stage(5, {"loaded": loaded("west", billing=at(1))}, {"loaded": {}})
    assert (resting.standing, "which has not loaded their topics" in words(resting)) == (UNKNOWN, True)


def test_many_calls_are_counted() -> None:
    """Ten are printed, those of several partitions once."""
    topics = {f"{TOPIC}-{number}": 3 for number in range(12)}
    (point,) = stage(3, {"topics": topics}, {"topics": {}}).points
    assert (len(point.calls), point.more_calls) == (10, 2)


def ago(*minutes: int) -> tuple[datetime, ...]:
    """Times so many minutes ago."""
    return tuple(NOW - timedelta(minutes=each) for each in minutes)


@cases(
    "east, empty, expected, said",
    ("clients are there", BUSY, {}, NOT_YET, "clients are at east"),
    ("nobody knows for how long", {}, {}, UNKNOWN, "no snapshot of east shows for how long"),
    ("not long enough", {}, {"looks": ago(5, 30)}, NOT_YET, "no client since 2026-03-01 11:30 UTC at the latest"),
    ("long enough", {}, {"looks": ago(5, 20, 40, 60)}, READY, "in 5 looks since 2026-03-01 11:00 UTC"),
    ("looks too far apart", {}, {"looks": ago(5, 60)}, UNKNOWN, "up to 55.0 min apart: too far for 1 h"),
    ("no time is asked for", {}, {"wanted_seconds": 0}, READY, "it cannot be undone"),
    ("a part was not read", {"unread": ("topics of b",)}, {"wanted_seconds": 0}, UNKNOWN, "topics of b"),
)
def test_empty_for_long_enough(east: dict[str, Any], empty: dict[str, Any], expected: Standing, said: str) -> None:
    found = stage(8, east, **empty)
    assert (found.standing, said in words(found)) == (expected, True), words(found)


def test_looks_without_a_client_are_counted_until_one_has_some_or_is_partial(tmp_path: Path) -> None:
    quiet = {"topic": TOPIC, "namespace": NAMESPACE, "producers": 0, "consumers": 0}
    busy, other = (
        {**quiet, "consumers": 1},
        {**quiet, "topic": "persistent://acme/x/y", "namespace": "acme/x", "producers": 9},
    )
    times = [NOW - timedelta(minutes=10 * number) for number in range(4)]

    def looks(*rows: dict[str, Any], about: dict[int, dict[str, Any]] | None = None) -> int:
        shelf = tmp_path / str(len(list(tmp_path.iterdir())))
        found = [
            taken(shelf, "east", row, other, taken_at=times[number], about=(about or {}).get(number, {}))
            for number, row in enumerate(rows)
        ]
        return len(empty_looks(found, NAMESPACE))

    assert (looks(quiet, quiet), looks(quiet, busy, quiet), looks(busy)) == (2, 1, 0)
    assert looks(quiet, quiet, about={1: {"unread_brokers": ["east-0:8080"]}}) == 1


def final_calls(found: StagedMove) -> list[str]:
    """Calls that cannot be undone: of Pulsar's own migration, and the one that deletes topics at the source."""
    calls = [call for stage in found.stages for point in stage.points for call in point.calls]
    ends = (
        " clusters update-cluster-migration ",
        " namespaces update-migration-state ",
        f"{NAMESPACE} --clusters west",
    )
    return [call for call in calls if any(each in call for each in ends)]


@cases(
    "number, east, west",
    ("1 is not ready", 1, {}, {"tenant_clusters": frozenset({"west"})}),
    ("2 is not ready", 2, {"loaded": {TOPIC: LoadedTopic(positions={}, replication={})}}, {}),
    ("3 is not ready", 3, {}, {"topics": {}}),
    ("4 is not ready", 4, {"loaded": loaded("west", to=link(entries=1_000_000, connected=False))}, {}),
    ("4 cannot be told", 4, {"loaded": {}}, {}),
    ("5 is not ready", 5, {"loaded": loaded("west", billing=Position(entries=7))}, {}),
)
def test_calls_that_cannot_be_undone_come_last(number: int, east: dict[str, Any], west: dict[str, Any]) -> None:
    """Neither with clients, which Pulsar could send on, nor without: what was not sent would be lost."""
    for clients in (BUSY, {}):
        found = move({**east, **clients}, {**ONE_WAY, **west}, wanted_seconds=0)
        first = [each.number for each in found.stages[:5] if each.standing is not READY]
        assert number in first
        assert final_calls(found) == []
        held_back = words(found.stages[6 if clients else 7])
        assert f"{', '.join(map(str, first))} ha{'ve' if len(first) > 1 else 's'} to be ready" in held_back
    assert len(final_calls(move(BUSY, ONE_WAY))) == 2
    assert len(final_calls(move(wanted_seconds=0))) == 1


def test_a_move_is_ready_when_all_stages_are() -> None:
    found = move(wanted_seconds=0)
    assert [each.standing for each in found.stages] == [READY] * 8
    assert found.is_ready
    assert not move(BUSY, wanted_seconds=0).is_ready
