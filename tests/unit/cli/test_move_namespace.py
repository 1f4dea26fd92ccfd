"""Moving a namespace between two made-up clusters: each stage is looked at in few calls, and nothing is changed."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

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
from tests.cases import row_by_row
from tests.unit.planners.clusters.members import Held, write_member

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

    from tests.golden import Golden
    from tests.unit.cli.conftest import Ended, Steward

NAMESPACE = "shop/orders"
BOTH = {"replication_clusters": ["east", "west"]}


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
    """All is ready where no time of emptiness is asked for, and snapshots tell of the ceilings."""
    kept = SubscriptionSpec("billing", replicated=True)
    source = cluster("east", "west", topic("west", kept), policies=BOTH)
    busy = SubscriptionSpec("billing", consumers=3, replicated=True)
    target = cluster("west", "east", topic("east", busy, producers=2), policies=BOTH)
    for name in ("east", "west"):
        write_member(tmp_path / "shelf", name, {NAMESPACE: Held(2, 10, ("east", "west"))})
    ended = moved(steward, tmp_path, source, target, "--snapshots", tmp_path / "shelf", "--empty-minutes", 0, "--json")
    assert (ended.code, standings(ended)) == (0, ["ready"] * 8)
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
        running_simulator(cluster("east", "west", many, policies=BOTH)) as east,
        running_simulator(cluster("west", "east", TopicSpec("many", partitions=10_000), policies=BOTH)) as west,
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
        running_simulator(cluster("east", "west", topic(), policies=BOTH)) as east,
        running_simulator(cluster("west", "east", topic("east"), policies=BOTH)) as west,
    ):
        east.faults.add(Fault(Answer(500, "no"), path="broker-stats", times=None))
        options = ("--fleet", fleet_of(tmp_path, east=east, west=west), "--snapshots", tmp_path, "--json")
        ended = steward("move-namespace", NAMESPACE, "--to", "west", *options)
    assert [standing != "ready" for standing in standings(ended)] == [True, True, True, True, True, True, True, True]
    assert "topics of" in ended.out


def test_the_source_is_the_one_that_serves_it(steward: Steward, tmp_path: Path) -> None:
    """Of several others; where several serve it, or none, it has to be named."""
    with (
        running_simulator(cluster("east", "west", topic(), policies=BOTH)) as east,
        running_simulator(cluster("west", "east", topic("east"), policies=BOTH)) as west,
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
        assert "east, west serve shop/orders" in wrong.err
        for options in ((), ("--from", "east")):
            nowhere = steward("move-namespace", "shop/nope", "--to", "west", *options, *common)
            assert (nowhere.code, nowhere.out) == (2, "")
            assert "no cluster of the fleet has shop/nope: check the name" in nowhere.err
        south.faults.add(Fault(Answer(401, "Authentication required"), path="configuration", times=None))
        unclear = steward("move-namespace", NAMESPACE, "--to", "west", *common)
        assert (unclear.code, unclear.out) == (2, "")
        said = "south could not be asked whether it serves the namespace: name the source by --from"
        assert said in " ".join(unclear.err.split())


def test_there_is_nothing_to_move_where_the_target_alone_serves_it(steward: Steward, tmp_path: Path) -> None:
    with (
        running_simulator(cluster("west", "east", topic("east"), policies=BOTH)) as west,
        running_simulator(cluster("east", "west")) as east,
        running_simulator(cluster("south", "west")) as south,
    ):
        fleet = fleet_of(tmp_path, east=east, west=west, south=south)
        ended = steward("move-namespace", NAMESPACE, "--to", "west", "--fleet", fleet, "--snapshots", tmp_path)
    assert (ended.code, "west alone serves shop/orders: there is nothing to move" in ended.err) == (2, True)


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
