"""The command that says how full members of a logical cluster are, and what a change would do."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.model.units import GIB
from tests.cases import cases, row_by_row
from tests.unit.planners.clusters.members import BOOKIE, NOW, Held, write_kafka, write_member
from tests.unit.planners.clusters.replicating import BOTH, ORDERS, subscribed, taken, topic_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden
    from tests.unit.cli.conftest import Steward

POLICY = """
logical_clusters:
  named:
    orders:
      primary: east
      extensions: [west, far-away]
      regions: {east: eu, west: eu, far-away: us}
      together: [[acme, shop]]
"""

ROOMY = BOOKIE | {"value": 1.0}


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """Snapshots of two members, one of them over its ceiling of topics; their disks are nearly empty."""
    folder = tmp_path / "snapshots"
    day_before = NOW - timedelta(days=1)
    write_member(folder, "east", {"acme/orders": Held(70, 70 * GIB, ("east",))}, taken_at=day_before)
    held = {"acme/orders": Held(90, 90 * GIB, ("east",)), "iot/x": Held(1, 1, ("east",))}
    held["iot/y"] = Held(39, 2 * GIB, ("east",))
    write_member(folder, "east", held, metrics=[ROOMY])
    held = {"shop/y": Held(5, 5 * GIB, ("west",)), "iot/x": Held(1, 1, ("west",))}
    write_member(folder, "west", held, version="4.0.6", metrics=[ROOMY])
    return folder


def test_all_of_it(steward: Steward, shelf: Path, tmp_path: Path, golden: Golden) -> None:
    """The table, the moves, the differences and what is not known fit 80 columns."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    changes = ["--add-cluster", "south-of-the-border-9=1,000@eu", "--remove-brokers", "west=2", "--traffic", "1.5"]
    ended = steward(
        "whatif", "--snapshots", shelf, "--logical", "orders", "--policy", tmp_path / "policy.yaml", *changes,
        "--add-namespace", "new/n=20",
    )  # fmt: skip
    assert (ended.code, ended.err) == (2, "")
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


@row_by_row(
    "options, said",
    (["--traffic", "40"], ["2 members stay over their ceiling: 4 namespaces have no place"]),
    (["--add-namespace", "acme/x=999999"], ["acme/x has no place"]),
    (
        ["--remove-cluster", "west"],
        [
            "west cannot leave: iot/x and shop/y have no place",
            "1 member stays over its ceiling: 3 namespaces have no place",
        ],
    ),
)
def test_what_does_not_fit_is_said_first(steward: Steward, shelf: Path, options: list[str], said: list[str]) -> None:
    """With an exit code for scripts; and that no growth is known of a member is not that nothing is."""
    ended = steward("whatif", "--snapshots", shelf, *options)
    assert (ended.code, ended.out.partition("\n\n")[0].splitlines()) == (1, said)
    assert not [line for line in ended.out.splitlines() if line.startswith(("east ", "west ")) and "?" in line]
    told = json.loads(steward("whatif", "--snapshots", shelf, *options, "--json").out)
    assert (told["fits"], told["misfits"]) == (False, said)
    assert steward("whatif", "--snapshots", shelf).code == 0
    assert json.loads(steward("whatif", "--snapshots", shelf, "--json").out)["fits"] is True


WEST = {"shop/y": Held(5, 5 * GIB, ("west",))}
IDLE = {"read": True, "leader": False, "read_milliseconds": 1, "broker": "west-0:8080"}


@cases(
    "changed, options, said",
    ("no disk was read", {"metrics": []}, [], "no ceiling of disk is known of west"),
    ("no processors are told", {"brokers": [IDLE]}, [], "no ceiling of CPU is known of west"),
    (
        "a broker was not read",
        {"about": {"unread_brokers": ["x:1"]}},
        ["--cluster", "west"],
        "parts of west could not be read",
    ),
    ("nor was a namespace", {"about": {"unread_namespaces": ["a/b"]}}, [], "parts of west could not be read"),
    ("a member has no snapshot", {}, ["--cluster", "west", "--cluster", "north"], "there is no snapshot of north"),
    (
        "a move to a new member",
        {},
        ["--add-cluster", "new=5000", "--remove-cluster", "west", "--cluster", "west"],
        "no ceiling of metadata nodes is known of new",
    ),
)
def test_what_is_not_known_does_not_fit(
    steward: Steward, shelf: Path, changed: dict[str, Any], options: list[str], said: str
) -> None:
    """Nor does it not fit: the first line says what is missing, and a lost member needs no room."""
    write_member(shelf, "west", WEST, taken_at=NOW + timedelta(hours=1), **{"metrics": [ROOMY], **changed})
    ended = steward("whatif", "--snapshots", shelf, *options)
    assert (ended.code, ended.out.splitlines()[0]) == (2, f"Whether all fits is not known: {said}")
    told = json.loads(steward("whatif", "--snapshots", shelf, *options, "--json").out)
    assert (told["fits"], told["misfits"], told["undecided"][0]) == (None, [], ended.out.splitlines()[0])
    assert steward("whatif", "--snapshots", shelf, "--lose", "west").code == 0


def test_a_move_to_a_new_member_warns_of_what_is_not_known_of_it(steward: Steward, shelf: Path) -> None:
    ended = steward("whatif", "--snapshots", shelf, "--add-cluster", "new=5000", "--traffic", "3")
    assert "whether new has the CPU for it is not known" in " ".join(ended.out.split())


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
    (["--traffic", "nan"], "has to be 0 or more"),
    (["--lose", "nowhere"], "members are east, west"),
    (["--lose", "west", "--add-cluster", "x=5", "--traffic", "2"], "leave out --add-cluster, --traffic"),
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
