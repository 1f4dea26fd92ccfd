"""Check-ups of several made-up clusters side by side: one hangs, one refuses, and the others do not mind."""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import ExitStack
from typing import TYPE_CHECKING

import jsonschema
import psutil
import pytest
import yaml

from lab.simulator import (
    ClusterSpec,
    Delay,
    Fault,
    NamespaceSpec,
    ReplicatorSpec,
    SubscriptionSpec,
    TopicSpec,
    running_simulator,
)
from lab.simulator.state import ClusterState
from pulsar_steward.cli import fleet
from pulsar_steward.cli.fleet import FleetTarget, members_of, side_by_side
from pulsar_steward.collect.kafka.settings import KafkaSettings, kafka_in
from pulsar_steward.errors import ConfigurationError, PolicyError
from pulsar_steward.model.health import ClusterHealth
from pulsar_steward.policy.fleet import ConnectedCluster
from pulsar_steward.policy.schema import Policy
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.report.checkup.schema import schema
from tests.cases import row_by_row

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from lab.simulator.model import Broker
    from pulsar_steward.report.checkup.document import Checkup
    from tests.unit.cli.conftest import Steward

TOKEN = "made.up-token_of-a.superuser"
NOWHERE = "http://127.0.0.1:1"


def written(folder: Path, *clusters: dict[str, object]) -> Path:
    """A file of these clusters, and a token beside it."""
    (folder / "token").write_text(TOKEN, encoding="utf-8")
    (folder / "other").write_text("another.token", encoding="utf-8")
    file = folder / "fleet.yaml"
    file.write_text(yaml.safe_dump({"clusters": clusters}), encoding="utf-8")
    return file


def each(name: str, urls: Iterable[str], **keys: str) -> dict[str, object]:
    """A cluster of a file."""
    return {"name": name, "admin_url": list(urls), **keys}


def test_a_kafka_cluster_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the settings of Kafka's client alone, and none of another cluster's; a bad file says what is wrong."""
    (tmp_path / "client.properties").write_text("security.protocol=SASL_SSL\nsasl.password=hidden\n", encoding="utf-8")
    monkeypatch.setenv("STEWARD_ADMIN_TOKEN", TOKEN)
    kafka: dict[str, object] = {"name": "events", "kafka": "kafka:9093"}
    (with_login,) = members_of(str(written(tmp_path, kafka | {"kafka_config": "client.properties"})), Policy())
    assert with_login.variables is not None
    assert "STEWARD_ADMIN_TOKEN" not in with_login.variables
    assert kafka_in(with_login.variables) == KafkaSettings(
        servers="kafka:9093", properties={"security.protocol": "SASL_SSL", "sasl.password": "hidden"}
    )
    for keys, words in (
        ({"kafka": "kafka"}, "'kafka' is no address of a Kafka broker: expected host:port"),
        ({"admin_url": NOWHERE}, "give either admin_url or, of a Kafka cluster, kafka"),
        ({"token_file": "token"}, "token_file is about Pulsar, and this is a Kafka cluster"),
    ):
        with pytest.raises(PolicyError, match=words):
            members_of(str(written(tmp_path, kafka | keys)), Policy())


@pytest.mark.usefixtures("few_checks")
def test_one_that_hangs_and_one_that_refuses_do_not_stop_the_others(
    steward: Steward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has its line with the reason and the remedy; the exit code is the worst; no token is anywhere."""
    monkeypatch.chdir(tmp_path)
    result, ended_ones = fleet._result, list[str]()

    def noted(run: fleet._Running, seconds: int) -> Checkup | str:
        ended_ones.append(run.member.name)
        return result(run, seconds)

    monkeypatch.setattr(fleet, "_result", noted)
    # The time of the one that hangs is over when the others have ended, however busy this machine is.
    monkeypatch.setattr(fleet, "monotonic", lambda: 21.0 if len(ended_ones) == 4 else 0.0)
    with ExitStack() as stack:
        ill, hanging, refusing, well = (
            stack.enter_context(running_simulator(ClusterSpec(brokers=brokers, tc_owner=owner), token=TOKEN))
            for brokers, owner in ((3, 0), (1, None), (1, None), (1, None))
        )
        hanging.faults.add(Fault(Delay(60), path="broker-stats", times=None))
        clusters = {"hanging": hanging, "ill": ill, "refusing": refusing, "well": well}
        file = written(
            tmp_path,
            *(
                each(name, one.admin_urls, region="eu", token_file="other" if one is refusing else "token")
                for name, one in clusters.items()
            ),
            each("gone", [NOWHERE]),
        )
        given = ["--keep", tmp_path / "kept", "--json", tmp_path / "out.json", "--seconds", "20"]
        ended = steward("checkup", "--fleet", file.name, *given)
        methods = {request.method for one in clusters.values() for request in one.requests.all()}

    assert (ended.code, methods) == (2, {"GET"})
    lines = ended.out.splitlines()
    assert lines[:2] == ["Check-up of 5 clusters of fleet.yaml", "RESULT: 1 critical, 3 unknown, 1 healthy"]
    rows = {line.split()[1]: line for line in lines[4:9]}
    assert list(rows) == ["ill", "gone", "hanging", "refusing", "well"]
    assert "could not look: no end within 20 s: " in rows["hanging"]
    assert "could not look: 401 Unauthorized" in rows["refusing"]
    said = " ".join(ended.out.split())
    assert "from `token_file` of refusing in fleet.yaml" in said
    assert "give valid credentials of a superuser by `token_file` of refusing in fleet.yaml" in said
    assert "check `admin_url` of gone in fleet.yaml" in said
    assert "check --" not in said
    assert "[tc-skew]" not in said, "one cluster alone has nothing in common"
    document = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema()).validate(document)
    assert [one["checkup"] is None for one in document["clusters"]] == [False, True, True, True, False]
    assert {one.name for one in (tmp_path / "kept").iterdir()} >= {"cluster=ill", "cluster=well"}
    everything = ended.out + ended.err + (tmp_path / "out.json").read_text(encoding="utf-8")
    assert TOKEN not in everything
    assert "another.token" not in everything


def replicating(name: str, other: str, *more: NamespaceSpec) -> ClusterSpec:
    """A cluster whose topics wait for another one, to which nothing is connected, in either direction."""
    cut = ReplicatorSpec(other, backlog=300, connected=False)
    reader = SubscriptionSpec("billing", consumers=1, messages_per_entry=10)
    orders = TopicSpec("orders", partitions=3, producers=1, rate_in=5.0, subscriptions=(reader,), replicators=(cut,))
    geo = NamespaceSpec("shop/geo", topics=(orders,), policies={"replication_clusters": [name, other]})
    return ClusterSpec(brokers=1, cluster=name, namespaces=(geo, *more))


@pytest.mark.usefixtures("few_checks")
def test_a_link_that_is_cut_is_one_trouble_of_two_clusters(steward: Steward, tmp_path: Path) -> None:
    """Both clusters are named, none of them tells it as its own, and the setting that one end has alone is told."""
    alone = NamespaceSpec("shop/alone", policies={"replication_clusters": ["east", "west"]})
    with (
        running_simulator(replicating("east", "west", alone)) as east,
        running_simulator(replicating("west", "east", NamespaceSpec("shop/alone"))) as west,
    ):
        file = written(tmp_path, each("e", east.admin_urls), each("w", west.admin_urls))
        ended = steward("checkup", "--fleet", file, "--json", tmp_path / "out.json")
    document = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema()).validate(document)
    told = [one for one in document["in_common"] if one["check_id"] == "replication-stopped"]
    assert [(one["severity"], sorted(one["clusters"])) for one in told] == [("warning", ["e", "w"])]
    assert all(one["at_links"] for one in document["clusters"])
    there, back = document["links"]
    assert (there["sender"], there["receiver"], back["sender"], back["receiver"]) == ("e", "w", "w", "e")
    names = {one["namespace"]: one for one in there["namespaces"]}
    assert names["shop/geo"]["sent"] == {
        "namespace": "shop/geo", "remote": "west", "topics": 3, "waiting": 3, "cut": 3, "entries": 900,
        "messages": 9000, "rate_out": 0.0, "delay_seconds": None, "inbound": 0, "rate_in": 0.0,
    }  # fmt: skip
    assert (names["shop/alone"]["exists"], names["shop/alone"]["mutual"]) == (True, False)
    said = " ".join(ended.out.split())
    assert said.count("replication between e and w is cut: 900 entries wait to be sent from e to w") == 1
    assert "one-sided, as information: w does not name it in turn: shop/alone" in said
    assert said.count("Replication to another cluster stands still") == 0


def test_whoever_ends_the_command_ends_every_process(tmp_path: Path) -> None:
    """Interrupted, it leaves no process behind that would still ask a cluster."""
    with running_simulator(ClusterSpec(brokers=1)) as cluster:
        cluster.faults.add(Fault(Delay(60), path="configuration/runtime", times=None))
        (url,) = cluster.admin_urls
        urls = {"a": url, "b": url.replace("127.0.0.1", "localhost")}
        members = members_of(str(written(tmp_path, *(each(name, [one]) for name, one in urls.items()))), Policy())
        processes: list[psutil.Process] = []

        def interrupted(words: str) -> None:
            if words.startswith("c:"):
                children = [each for each in psutil.Process().children() if each.status() != psutil.STATUS_ZOMBIE]
                processes.extend(each for each in children if "checkup" in each.cmdline())
                raise KeyboardInterrupt

        unusable = FleetTarget("c", None, {**(members[0].variables or {}), "STEWARD_ADMIN_URLS": ""})
        with pytest.raises(KeyboardInterrupt):
            side_by_side([*members, unusable], [], 3, 60, interrupted)

    assert len(processes) == 2
    assert [each for each in processes if each.is_running()] == []


def test_a_check_up_that_crashes_is_a_row_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no error of Steward's own is told with its code and last line, and without the token."""
    monkeypatch.setattr(fleet, "COMMAND", ("-c", f"import sys; print('{TOKEN}', file=sys.stderr); sys.exit(9)"))
    member = FleetTarget("east", "eu", AdminSettings((NOWHERE,)).in_environment({"STEWARD_ADMIN_TOKEN": TOKEN}))
    variables = {**(member.variables or {}), "STEWARD_ADMIN_TOKEN": TOKEN}
    (found,) = side_by_side([member._replace(variables=variables)], [], 1, 60, lambda _: None)
    assert (found.health, found.could_not_look) == (ClusterHealth.UNKNOWN, "its check-up ended with 9: ***")
    said: list[str] = []
    side_by_side([FleetTarget("early", None, None, "its token is not there")], [], 1, 60, said.append)
    assert said[1:] == ["early: unknown (1 of 1 looked at)"]


@pytest.mark.usefixtures("few_checks")
def test_one_cluster_by_two_names_counts_once(steward: Steward, tmp_path: Path) -> None:
    """By its identity and its brokers, where its addresses differ."""
    with running_simulator(ClusterSpec(brokers=1)) as cluster:
        (url,) = cluster.admin_urls
        urls = {"a": url, "b": url.replace("127.0.0.1", "localhost")}
        ended = steward("checkup", "--fleet", written(tmp_path, *(each(name, [one]) for name, one in urls.items())))
    lines = ended.out.splitlines()
    assert lines[0].startswith("Check-up of 1 cluster of")
    assert "a and b are the same cluster, which counts once" in " ".join(lines)


@pytest.mark.usefixtures("few_checks")
def test_clusters_that_call_themselves_the_same_keep_a_row_each(
    steward: Steward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of one Helm chart in two places: name, metadata store and brokers are alike, and one of them is ill."""
    add_broker, maps = ClusterState.add_broker, defaultdict[ClusterState, dict[str, str]](dict)

    def as_everywhere(state: ClusterState, host: str, port: int) -> Broker:
        broker = add_broker(state, "pulsar-broker", 8080 + len(state.brokers))
        maps[state][broker.broker_id] = f"http://{host}:{port}"
        return broker

    monkeypatch.setattr(ClusterState, "add_broker", as_everywhere)
    with running_simulator(), running_simulator(ClusterSpec(tc_owner=0)), running_simulator():
        ways = zip("abc", maps.values(), strict=True)
        clusters = [each(name, way.values()) | {"address_map": way} for name, way in ways]
        ended = steward("checkup", "--fleet", written(tmp_path, *clusters))
    said = " ".join(ended.out.split())
    assert (ended.code, "RESULT: 1 critical, 2 healthy" in said) == (1, True)
    assert "a and b, c call themselves the same cluster: if they are, leave only one" in said


def test_connections_of_airflow_are_the_fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with its own settings, and never with a token of this process; one that is not usable keeps its reason."""
    own = AdminSettings((NOWHERE,)).in_environment({})
    told = [ConnectedCluster(cluster="east", variables=own), ConnectedCluster(cluster="west", trouble="names no host")]
    monkeypatch.setattr(fleet, "airflow_is_set_up", lambda: True)
    monkeypatch.setattr(fleet, "ask_airflow", lambda _, names, __: told if names == ("east", "west") else None)
    monkeypatch.setenv("STEWARD_CLUSTER", "east, west")
    monkeypatch.setenv("STEWARD_ADMIN_TOKEN", TOKEN)
    east, west = members_of("connections", Policy())
    assert east.variables is not None
    assert TOKEN not in east.variables.values()
    assert (east.variables["STEWARD_ADMIN_URLS"], "PATH" in east.variables) == (NOWHERE, True)
    assert (west.variables, west.trouble) == (None, "names no host")
    for clusters, words in (("north", "cannot be read here"), ("", "STEWARD_CLUSTER is not set")):
        monkeypatch.setenv("STEWARD_CLUSTER", clusters)
        with pytest.raises(ConfigurationError, match=words):
            members_of("connections", Policy())


@row_by_row(
    "text, words",
    ("clusters: []", "clusters: is empty: name a cluster"),
    ("[{name: a, admin_url: http://b:1}]", "fleet.yaml:1:1: the document: has to begin with `clusters:`"),
    ("", "fleet.yaml:1:1: clusters: is missing"),
    ("clusters: [a]", "fleet.yaml:1:12: clusters.0: has to be a mapping"),
    (
        "clusters: [{name: a, admin_url: 'pulsar://b:1'}]",
        "fleet.yaml:1:33: clusters.0.admin_url: 'pulsar://b:1' is not",
    ),
    (
        "clusters: [{name: a, admin_url: http://b:1, token_file: x, basic_file: y}]",
        "fleet.yaml:1:72: clusters.0.basic_file: token_file and basic_file are several kinds of credentials",
    ),
    ("clusters: [{name: a, admin_url: http://b:1, proxy: socks://p:1}]", "is no forward proxy"),
    (
        "clusters: [{name: a, admin_url: http://b:1}, {name: c, admin_url: http://B:1/}]",
        "fleet.yaml:1:67: clusters.1.admin_url: a and c are the same cluster",
    ),
    ("clusters: [{name: a}]", "give either admin_url or, of a Kafka cluster, kafka"),
    (
        "clusters: [{name: a, admin_url: http://b:1, token: x}]",
        "clusters.0.token: no such key; did you mean token_file?",
    ),
    (
        "clusters: [{name: a, admin_url: http://b:1, password: x}]",
        "a cluster has name, admin_url, kafka, kafka_config, region",
    ),
    ("cluster: [{name: a, admin_url: http://b:1}]", "no such key; did you mean clusters?"),
    ("clusters: [{name: ../up, admin_url: http://b:1}]", "use letters, digits"),
    ("clusters: [{name: a, admin_url: http://b:1}, {name: a, admin_url: http://c:1}]", "a stands twice"),
    (
        "clusters: [{name: a, admin_url: http://b:1, front_door: perhaps}]",
        "front_door: has to be true or false",
    ),
    ("[", "cannot be read as YAML"),
)
def test_a_file_that_does_not_hold_up_is_told_by_place(tmp_path: Path, text: str, words: str) -> None:
    """Nobody is looked at as long as a key is unknown: a misspelt file with credentials would silently be none."""
    file = tmp_path / "fleet.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(PolicyError) as caught:
        members_of(str(file), Policy())
    assert words in str(caught.value)
    with pytest.raises(PolicyError, match="no such file"):
        members_of(str(tmp_path / "none"), Policy())


def test_one_address_by_two_ways_is_two_clusters(tmp_path: Path) -> None:
    """What `localhost` is depends on the proxy, and where a broker is on the map; only a host has no case."""
    plain: dict[str, object] = {"name": "a", "admin_url": "http://Localhost:8080"}
    ways: tuple[dict[str, object], ...] = (
        {"proxy": "http://east:3128"},
        {"proxy": "http://west:3128"},
        {"address_map": {"pulsar-broker-0:8080": "http://east:8080"}},
        {"address_map": {"pulsar-broker-0:8080": "http://west:8080"}},
        {"front_door": True},
    )
    file = written(tmp_path, plain, *(plain | {"name": f"c{number}"} | way for number, way in enumerate(ways)))
    assert len(members_of(str(file), Policy())) == 6
    twice = written(tmp_path, plain | ways[0], {"name": "b", "admin_url": "HTTP://localhost:8080/"} | ways[0])
    with pytest.raises(PolicyError, match="a and b are the same cluster"):
        members_of(str(twice), Policy())


def test_what_cannot_be_used_is_a_row_and_paths_are_of_the_files_folder(tmp_path: Path) -> None:
    """A token that is not there, a token that would travel unencrypted; the variable of this process is of none."""
    file = written(
        tmp_path,
        {"name": "a", "admin_url": NOWHERE, "token_file": "token"},
        {"name": "b", "admin_url": "http://127.0.0.1:2", "token_file": "missing"},
        {"name": "c", "admin_url": "http://far.example.org:8080", "token_file": "token"},
    )
    found = {one.name: one for one in members_of(str(file), Policy())}
    assert found["a"].variables is not None
    assert found["a"].variables["STEWARD_ADMIN_TOKEN"] == TOKEN
    assert [one.variables for one in found.values()][1:] == [None] * 2
    assert f"the token file {tmp_path / 'missing'} cannot be read" in found["b"].trouble
    assert "would travel unencrypted" in found["c"].trouble
    assert "`allow_unencrypted_token`" in found["c"].trouble


@row_by_row(
    "options",
    ["--admin-url", NOWHERE],
    ["--snapshot", "s"],
    ["--html", "out.html"],
    ["--since", "8h"],
    ["--logs", "out.log"],
    ["--master", "local[1]"],
    ["--token-file", "token"],
)
def test_what_is_about_one_cluster_is_refused(steward: Steward, tmp_path: Path, options: list[str]) -> None:
    """In one line that says how to have it of one cluster of the fleet."""
    ended = steward("checkup", "--fleet", written(tmp_path, each("a", [NOWHERE])), *options)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith(f"error: {options[0]} is about one cluster")
    assert "--keep DIR" in ended.err
