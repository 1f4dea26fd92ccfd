"""How full members of a logical cluster are, what a change would do, and the stages of a move."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from lab.simulator import (
    ClusterSpec,
    Fault,
    NamespaceSpec,
    ReplicatorSpec,
    Simulator,
    SubscriptionSpec,
    TopicSpec,
    running_simulator,
)
from lab.simulator.faults import Answer
from pulsar_steward.collect.namespace import MAX_ASKED
from pulsar_steward.model.units import GIB
from tests.cases import row_by_row
from tests.unit.planners.clusters.members import NOW, Held, write_kafka, write_member
from tests.unit.planners.clusters.replicating import BOTH, ORDERS, subscribed, taken, topic_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.golden import Golden
    from tests.unit.cli.conftest import Ended, Steward

POLICY = """
logical_clusters:
  named:
    orders:
      primary: east
      extensions: [west, far-away]
      regions: {east: eu, west: eu, far-away: us}
      together: [[acme, shop]]
"""


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """Snapshots of two members, one of them over its ceiling of topics."""
    folder = tmp_path / "snapshots"
    day_before = NOW - timedelta(days=1)
    write_member(folder, "east", {"acme/orders": Held(70, 70 * GIB, ("east",))}, taken_at=day_before)
    held = {"acme/orders": Held(90, 90 * GIB, ("east",)), "iot/x": Held(1, 1, ("east",))}
    held["iot/y"] = Held(39, 2 * GIB, ("east",))
    write_member(folder, "east", held)
    write_member(
        folder, "west", {"shop/y": Held(5, 5 * GIB, ("west",)), "iot/x": Held(1, 1, ("west",))}, version="4.0.6"
    )
    return folder


def test_all_of_it(steward: Steward, shelf: Path, tmp_path: Path, golden: Golden) -> None:
    """The table, the moves, the differences and what is not known fit 80 columns."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    changes = ["--add-cluster", "south-of-the-border-9=1,000@eu", "--remove-brokers", "west=2", "--traffic", "1.5"]
    ended = steward(
        "whatif", "--snapshots", shelf, "--logical", "orders", "--policy", tmp_path / "policy.yaml", *changes,
        "--add-namespace", "new/n=20",
    )  # fmt: skip
    assert (ended.code, ended.err) == (0, "")
    assert max(map(len, ended.out.splitlines())) <= 80
    golden(ended.out)


def test_the_same_for_programs(steward: Steward, shelf: Path) -> None:
    """Without changes, nothing is supposed; the forecast is the day before the ceiling is passed."""
    told = json.loads(steward("whatif", "--snapshots", shelf, "--json").out)
    east, west = told["members"]
    assert (east["member"], west["member"]) == ("east", "west")
    assert east["now"] == east["then"]
    topics, *_ = east["now"]["uses"]
    assert topics == {"resource": "topics", "load": 130, "ceiling": 120, "growth_per_day": 60, "full": "over"}
    assert east["moved"]["uses"][0]["load"] == 91
    assert [(move["namespace"], move["source"], move["target"]) for move in told["moves"]] == [
        ("iot/y", "east", "west")
    ]
    assert [clash["namespace"] for clash in told["clashes"]] == ["iot/x"]
    assert (told["primary"], told["unserved"], bool(told["unknown"])) == (None, [], True)


def test_members_are_the_clusters_at_home(
    steward: Steward, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without options, all clusters with snapshots in STEWARD_HOME; the policies there declare logical clusters."""
    monkeypatch.setenv("STEWARD_HOME", str(shelf.parent))
    (tmp_path / "policy.yaml").write_text(POLICY)
    assert [each["member"] for each in json.loads(steward("whatif", "--json").out)["members"]] == ["east", "west"]
    told = json.loads(steward("whatif", "--logical", "orders", "--json").out)
    assert told["primary"] == "east"
    assert any("far-away: there is no diagnosed snapshot" in each for each in told["unknown"])
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "east.yaml").write_text(POLICY.replace("far-away: us", "far-away: asia"))
    assert "declare it differently" in steward("whatif", "--logical", "orders").err


def test_what_the_others_would_miss(steward: Steward, tmp_path: Path, golden: Golden) -> None:
    """In one table: what nobody else serves first, then what waits; the same for programs."""
    serving = {ORDERS: BOTH, "acme/a-name-that-is-long": BOTH, "acme/own": ("east",), "acme/quiet": BOTH}
    waits = {"cluster": "west", "backlog_entries": 30, "delay_seconds": 90}
    topics = [topic_of(**waits), topic_of("acme/own"), topic_of("acme/quiet", cluster="west")]
    held = [subscribed(messages_per_entry=10), subscribed(subscription="audit")]
    taken(tmp_path, "east", *topics, serving=serving, subscriptions=held)
    taken(tmp_path, "west", topic_of(), serving=serving, subscriptions=[subscribed()])
    ended = steward("whatif", "--snapshots", tmp_path, "--lose", "east")
    assert (ended.code, ended.err) == (0, "")
    assert max(map(len, ended.out.splitlines())) <= 80
    golden(ended.out)
    loss = json.loads(steward("whatif", "--snapshots", tmp_path, "--lose", "east", "--json").out)["loss"]
    assert [(each["namespace"], each["entries"]) for each in loss["namespaces"]] == [
        ("acme/own", None), (ORDERS, 30), ("acme/a-name-that-is-long", None), ("acme/quiet", 0),
    ]  # fmt: skip


@row_by_row(
    "options, words",
    (["--add-cluster", "south"], "give it as NAME=NUMBER[@REGION]"),
    (["--add-cluster", "a/b=1"], "cluster name 'a/b'"),
    (["--add-cluster", "south=1", "--add-cluster", "south=2"], "south is given twice"),
    (["--remove-brokers", "east=1@eu"], "give it as NAME=NUMBER"),
    (["--add-namespace", "acme=1"], "tenant/namespace=TOPICS"),
    (["--traffic", "nan"], "--traffic: has to be 0 or more"),
    (["--lose", "nowhere"], "members are east, west"),
    (["--cluster", "nowhere"], "no diagnosed snapshot of nowhere"),
    (["--logical", "orders"], "none is declared"),
)
def test_options_that_are_not_understood(steward: Steward, shelf: Path, options: list[str], words: str) -> None:
    ended = steward("whatif", "--snapshots", shelf, *options)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err


def test_clusters_that_share_a_configuration_store(steward: Steward, shelf: Path) -> None:
    """They are taken without a declaration; a snapshot that tells no store cannot say which they are."""
    for name, store in {"north": "0" * 16, "south": "0" * 16, "other": "1" * 16}.items():
        write_member(shelf, name, {"a/b": Held(1, 1, (name,))}, about={"configuration_store_id": store})
    ended = steward("whatif", "--snapshots", shelf, "--sharing-with", "north", "--json")
    assert [each["member"] for each in json.loads(ended.out)["members"]] == ["north", "south"]
    for name, words in {"east": "does not tell the store", "nroth": "did you mean north"}.items():
        ended = steward("whatif", "--snapshots", shelf, "--sharing-with", name)
        assert (ended.code, words in ended.err) == (2, True), ended.err


KAFKA_POLICY = """
logical_clusters: {named: {events: {primary: k1, extensions: [k2]}}}
kafka_partition_ceiling: {warning_partitions_per_cluster: 50, critical_partitions_per_cluster: 100}
"""


def test_a_logical_cluster_of_kafka(steward: Steward, tmp_path: Path, golden: Golden) -> None:
    """How full each member is, topics of one name, and whose offsets are where; nothing is moved."""
    shelf, file = tmp_path / "snapshots", tmp_path / "policy.yaml"
    file.write_text(KAFKA_POLICY)
    write_kafka(shelf, "k1", {"orders": 60, "a-prices": 50, "__transaction_state": 50}, {"app": ["orders", "paid"]})
    write_kafka(shelf, "k2", {"paid": 20, "a-prices": 20}, {"audit": ["paid"]})
    write_member(shelf, "east", {})
    options = ("whatif", "--snapshots", shelf, "--policy", file)
    golden(steward(*options, "--logical", "events").out)
    told = json.loads(steward(*options, "--logical", "events", "--remove-cluster", "k1", "--json").out)
    assert (told["moves"], told["primary"]) == ([], "k1")
    of_pulsar = json.loads(steward(*options, "--json").out)
    assert [each["member"] for each in of_pulsar["members"]] == ["east"]
    assert "k1: it is a Kafka cluster; name such clusters by --cluster." in of_pulsar["unknown"]
    assert "a logical cluster is of one system" in steward(*options, "--cluster", "k1", "--cluster", "east").err
    assert "k1-" in steward(*options, "--logical", "events", "--lose", "k1").err


NAMESPACE = "shop/orders"
MOVING_BOTH = {"replication_clusters": ["east", "west"]}


def cluster(
    name: str, other: str, *topics: TopicSpec, policies: dict[str, Any] | None = None, **more: Any
) -> ClusterSpec:
    """A cluster with these topics in the namespace; policies None: it has no such namespace."""
    spaces = () if policies is None else (NamespaceSpec(NAMESPACE, topics=topics, policies=policies),)
    shop = NamespaceSpec("shop/another")
    return ClusterSpec(brokers=2, cluster=name, others=(other,), namespaces=(shop, *spaces), **more)


def topic(to: str = "west", *subscriptions: SubscriptionSpec, **more: Any) -> TopicSpec:
    """A topic of two partitions that is replicated, with nothing waiting."""
    return TopicSpec("paid", 2, replicators=(ReplicatorSpec(to, inbound=True),), subscriptions=subscriptions, **more)


@contextmanager
def running(east: ClusterSpec, west: ClusterSpec) -> Iterator[tuple[Simulator, Simulator]]:
    """Two clusters."""
    with running_simulator(east) as one, running_simulator(west) as other:
        yield one, other


def fleet_of(folder: Path, **clusters: Simulator | str) -> Path:
    """File of a fleet; a cluster that is a text is at that address."""
    file = folder / "fleet.yaml"
    urls = {name: [one] if isinstance(one, str) else list(one.admin_urls) for name, one in clusters.items()}
    file.write_text(yaml.safe_dump({"clusters": [{"name": name, "admin_url": each} for name, each in urls.items()]}))
    return file


def moved(steward: Steward, tmp_path: Path, source: ClusterSpec, target: ClusterSpec, *options: object) -> Ended:
    """The command's end, on two clusters that got nothing but reads and own what they owned before."""
    with running(source, target) as (east, west):
        owned = [one.owned_bundles() for one in (east, west)]
        fleet = fleet_of(tmp_path, east=east, west=west)
        ended = steward(
            "move-namespace", NAMESPACE, "--to", "west", "--fleet", fleet, "--snapshots", tmp_path / "none", *options
        )
        assert {request.method for one in (east, west) for request in one.requests.all()} == {"GET"}
        assert owned == [one.owned_bundles() for one in (east, west)]
        for number, one in enumerate((east, west), start=1):
            for url in one.admin_urls:
                ended = ended._replace(out=ended.out.replace(url, f"http://cluster-{number}:8080"))
    return ended


def standings(ended: Ended) -> list[str]:
    """State of each stage."""
    return [stage["standing"] for stage in json.loads(ended.out)["stages"]]


def test_a_move_that_has_just_begun(steward: Steward, tmp_path: Path, golden: Golden) -> None:
    """Nothing is at the target: each stage says what is missing, with the calls filled in."""
    reader = SubscriptionSpec("billing", consumers=2, backlog=40, messages_per_entry=10)
    paid = TopicSpec("paid", partitions=2, producers=1, subscriptions=(reader,))
    source = cluster("east", "west", paid, TopicSpec("audit"), policies={"replication_clusters": ["east"]})
    ended = moved(steward, tmp_path, source, cluster("west", "east"))
    assert ended.code == 1
    golden(ended.out)


def test_a_move_that_is_done(steward: Steward, tmp_path: Path) -> None:
    """All is ready but the ceilings, which only snapshots tell, where no time of emptiness is asked for."""
    kept = SubscriptionSpec("billing", replicated=True)
    source = cluster("east", "west", topic("west", kept), policies=MOVING_BOTH)
    busy = SubscriptionSpec("billing", consumers=3, replicated=True)
    target = cluster("west", "east", topic("east", busy, producers=2), policies=MOVING_BOTH)
    ended = moved(steward, tmp_path, source, target, "--empty-minutes", 0, "--json")
    assert standings(ended) == ["cannot be told", *["ready"] * 7]
    document = json.loads(ended.out)
    assert (document["format"], document["version"]) == ("pulsar-steward/move-namespace", 1)
    assert (document["namespace"], document["source"], document["target"]) == (NAMESPACE, "east", "west")
    (last,) = document["stages"][7]["points"][0]["calls"]
    assert last.endswith(f"namespaces set-clusters {NAMESPACE} --clusters west")


def test_ten_thousand_topics_are_not_asked_one_by_one(steward: Steward, tmp_path: Path) -> None:
    """Lists and a document a broker tell nearly all; whether positions go along is asked of a hundred topics."""
    kept = SubscriptionSpec("billing", backlog=1, replicated=True)
    link = ReplicatorSpec("west")
    many = TopicSpec("many", partitions=10_000, replicators=(link,), subscriptions=(kept,))
    with (
        running_simulator(cluster("east", "west", many, policies=MOVING_BOTH)) as east,
        running_simulator(cluster("west", "east", TopicSpec("many", partitions=10_000), policies=MOVING_BOTH)) as west,
    ):
        options = ("--fleet", fleet_of(tmp_path, east=east, west=west), "--snapshots", tmp_path, "--json")
        ended = steward("move-namespace", NAMESPACE, "--to", "west", *options)
        asked = len(east.requests.all()), len(west.requests.all())
    assert ended.code == 1
    assert asked[0] <= MAX_ASKED + 10 + 3 * 2
    assert asked[1] <= 10 + 3 * 2
    words = " ".join(point["words"] for stage in json.loads(ended.out)["stages"] for point in stage["points"])
    assert "whether the position of 9,900 subscriptions is replicated: too many to ask, or not told" in words


def test_what_cannot_be_read_is_not_ready(steward: Steward, tmp_path: Path) -> None:
    """A broker that does not tell its topics may have any: no stage about topics, positions or clients is ready."""
    with (
        running_simulator(cluster("east", "west", topic(), policies=MOVING_BOTH)) as east,
        running_simulator(cluster("west", "east", topic("east"), policies=MOVING_BOTH)) as west,
    ):
        east.faults.add(Fault(Answer(500, "no"), path="broker-stats", times=None))
        options = ("--fleet", fleet_of(tmp_path, east=east, west=west), "--snapshots", tmp_path, "--json")
        ended = steward("move-namespace", NAMESPACE, "--to", "west", *options)
    assert [standing != "ready" for standing in standings(ended)] == [True, True, True, True, True, True, True, True]
    assert "topics of" in ended.out


def test_the_source_is_the_one_that_serves_it(steward: Steward, tmp_path: Path) -> None:
    """Of several others; where several serve it, or none, it has to be named."""
    with (
        running_simulator(cluster("east", "west", topic(), policies=MOVING_BOTH)) as east,
        running_simulator(cluster("west", "east", topic("east"), policies=MOVING_BOTH)) as west,
        running_simulator(cluster("south", "west")) as south,
    ):
        fleet = fleet_of(tmp_path, east=east, west=west, south=south)
        common = ("--fleet", fleet, "--snapshots", tmp_path, "--json")
        ended = steward("move-namespace", NAMESPACE, "--to", "west", *common)
        assert json.loads(ended.out)["source"] == "east"
        several = steward("move-namespace", NAMESPACE, "--to", "south", *common)
        assert (several.code, "east, west serve shop/orders: name the one" in several.err) == (2, True)
        wrong = steward("move-namespace", NAMESPACE, "--to", "west", "--from", "south", *common)
        assert (wrong.code, "south has no namespace shop/orders" in wrong.err) == (2, True)


@row_by_row(
    "options, words",
    (["shop", "--to", "b"], "give it as tenant/namespace"),
    ([NAMESPACE, "--to", "c"], "--to c: of Pulsar clusters the fleet has a, b"),
    ([NAMESPACE, "--to", "a", "--from", "a"], "it is at a already"),
)
def test_what_is_not_understood(steward: Steward, tmp_path: Path, options: list[str], words: str) -> None:
    fleet = fleet_of(tmp_path, a="http://127.0.0.1:1", b="http://127.0.0.1:1")
    ended = steward("move-namespace", *options, "--fleet", fleet)
    assert (ended.code, ended.out, words in ended.err) == (2, "", True)


def test_a_cluster_that_does_not_answer_is_no_stage(
    steward: Steward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could not be looked at: the exit code is that of an error."""
    monkeypatch.setenv("STEWARD_HOME", str(tmp_path))
    fleet = fleet_of(tmp_path, a="http://127.0.0.1:1", b="http://127.0.0.1:1")
    ended = steward("move-namespace", NAMESPACE, "--to", "b", "--fleet", fleet)
    assert (ended.code, ended.out) == (2, "")
