"""The parts of a lab: which there are, the files that they start with, and the ports that they take."""

import random
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from lab import java, plan, ports, settings
from lab.bookie import ADMIN_API
from lab.errors import LabError, PortTakenError
from lab.model import Hosts, LabSpec, LabState
from lab.ports import LOOPBACK, Ports


@pytest.fixture
def state() -> LabState:
    """A lab that was asked for one more setting and one that differs."""
    wanted = {"loadBalancerSheddingEnabled": "true", "numIOThreads": "4"}
    return plan.new_state(LabSpec(name="a", brokers=2, hosts="distinct", broker_settings=wanted))


def test_a_broker_moves_nothing_of_its_own_accord() -> None:
    """A broker's shedding and automatic splits are off by default."""
    state = plan.new_state(LabSpec(name="a"))
    conf = settings.parsed(settings.broker(state, state.brokers[0], {}))
    assert conf["loadBalancerSheddingEnabled"] == "false"
    assert conf["loadBalancerAutoBundleSplitEnabled"] == "false"


def test_what_was_asked_for_wins(state: LabState) -> None:
    """A lab's own settings override those of authentication, and these override the template's."""
    extra = {"numIOThreads": "3", "numHttpServerThreads": "3"}
    conf = settings.parsed(settings.broker(state, state.brokers[0], extra))
    assert conf["loadBalancerSheddingEnabled"] == "true"
    assert (conf["numIOThreads"], conf["numHttpServerThreads"]) == ("4", "3")


@pytest.mark.parametrize(("version", "has_buckets"), [("4.0.7", True), ("3.0.7", True), ("2.10.4", False)])
def test_a_broker_is_set_to_what_its_version_has(version: str, *, has_buckets: bool) -> None:
    """In a lab of two versions each broker goes by its own."""
    state = plan.new_state(LabSpec(name="a", pulsar_version="4.2.4", broker_versions={2: version}))
    assert [broker.pulsar_version for broker in state.brokers] == ["4.2.4", version, "4.2.4"]
    conf = settings.parsed(settings.broker(state, state.brokers[1], {}))
    assert (settings.DELAYED_TRACKER in conf) is has_buckets
    assert (settings.NIC_SPEED in conf) is (version == "3.0.7")


def test_zookeeper_takes_more_settings(tmp_path: Path) -> None:
    wanted = {"admin.enableServer": "true", "metricsProvider.httpPort": "7000"}
    state = plan.new_state(LabSpec(name="a", zookeeper_settings=wanted))
    conf = settings.parsed(settings.zookeeper(state, tmp_path))
    assert wanted.items() <= conf.items()
    assert conf["clientPort"] == str(state.zookeeper.port)


def test_a_broker_with_a_link_is_found_by_it_and_by_its_own_port() -> None:
    """Other clusters ask for its listener of that name; a link leads to one broker."""
    state = plan.new_state(LabSpec(name="a", brokers=1, link_port=7000))
    (broker,) = state.brokers
    conf = settings.parsed(settings.broker(state, broker, {}))
    assert conf["advertisedListeners"] == f"internal:pulsar://{broker.service_address},link:pulsar://127.0.0.1:7000"
    assert (conf["advertisedAddress"], conf["internalListenerName"]) == (broker.host, "internal")
    with pytest.raises(LabError, match="a link leads to one broker"):
        LabSpec(name="a", link_port=7000)


@pytest.mark.parametrize("counted", [True, False])
def test_log_lines_are_counted_where_the_jars_can(*, counted: bool) -> None:
    document = ET.fromstring(settings.logging("DEBUG", counted=counted))  # noqa: S314 - written by the lab itself
    assert document.get("monitorInterval") == "1"
    assert [each.get("level") for each in document.iter("Root")] == ["DEBUG"]
    defined = {each.get("name") for each in document.iterfind("Appenders/*")}
    assert defined == {each.get("ref") for each in document.iter("AppenderRef")}
    assert ("lines" in defined) is counted


def test_a_broker_listens_where_the_plan_says(state: LabState) -> None:
    broker = state.brokers[1]
    conf = settings.parsed(settings.broker(state, broker, {}))
    assert (conf["bindAddress"], conf["advertisedAddress"]) == ("127.0.0.2", "127.0.0.2")
    assert (conf["brokerServicePort"], conf["webServicePort"]) == (str(broker.service_port), str(broker.web_port))


def test_a_broker_that_lists_itself_by_a_name(tmp_path: Path) -> None:
    state = plan.new_state(LabSpec(name="a", advertised="name"))
    broker = state.brokers[0]
    conf = settings.parsed(settings.broker(state, broker, {}))
    assert broker.broker_id == f"{conf['advertisedAddress']}:{broker.web_port}"
    assert (conf["bindAddress"], broker.admin_url) == ("127.0.0.1", f"http://127.0.0.1:{broker.web_port}")
    assert conf["advertisedListeners"] == f"internal:pulsar://127.0.0.1:{broker.service_port}"
    known = settings.hosts(plan.possible_names(state.spec)).splitlines()
    assert f"127.0.0.1 {conf['advertisedAddress']}" in known
    runtime = java.Runtime("java", tmp_path)
    assert f"-Djdk.net.hosts.file={tmp_path}" in java.broker(runtime, tmp_path, tmp_path, 512, tmp_path)


def test_the_bookie_registers_where_brokers_look(state: LabState, tmp_path: Path) -> None:
    conf = settings.parsed(settings.bookie(state, state.bookies[0], tmp_path))
    assert conf["metadataServiceUri"] == f"metadata-store:zk:127.0.0.1:{state.zookeeper.port}"
    assert conf["journalDirectory"].startswith(str(tmp_path))


def test_bookies_share_nothing(tmp_path: Path) -> None:
    state = plan.new_state(LabSpec(name="a", bookies=2, bookie_settings=ADMIN_API))
    first, second = (settings.parsed(settings.bookie(state, each, tmp_path)) for each in state.bookies)
    own = ("bookiePort", "httpServerPort", "journalDirectory", "ledgerDirectories", "indexDirectories")
    assert [name for name in own if first[name] == second[name]] == []
    assert len(plan.used_by(state)) == 1 + 2 * 2 + 3 * 2
    plain = plan.new_state(LabSpec(name="a"))
    assert "httpServerPort" not in settings.parsed(settings.bookie(plain, plain.bookies[0], tmp_path))


def test_zookeeper_listens_on_loopback_only(state: LabState, tmp_path: Path) -> None:
    conf = settings.parsed(settings.zookeeper(state, tmp_path))
    assert (conf["clientPortAddress"], conf["clientPort"]) == ("127.0.0.1", str(state.zookeeper.port))


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("pipe", [None, Path("/lab/slow-log")])
def test_every_line_goes_to_each_place_that_is_asked_for(counted: bool, pipe: Path | None) -> None:
    tree = ET.fromstring(settings.logging("DEBUG", counted=counted, pipe=pipe))  # noqa: S314 - our own
    names = [appender.get("name") for appender in tree.findall("Appenders/*")]
    assert names == ["console", *(["lines"] if counted else []), *(["pipe"] if pipe else [])]
    assert [each.get("ref") for each in tree.findall("Loggers/Root/AppenderRef")] == names
    assert [each.get("fileName") for each in tree.iter("File")] == ([str(pipe)] if pipe else [])


def test_every_part_has_ports_of_its_own() -> None:
    state = plan.new_state(LabSpec(name="a"))
    assert [part.name for part in state.parts] == ["broker-1", "broker-2", "broker-3", "bookie", "zookeeper"]
    assert len(plan.used_by(state)) == 8


@pytest.mark.parametrize(
    ("hosts", "expected"), [("same", ["127.0.0.1"] * 3), ("distinct", ["127.0.0.1", "127.0.0.2", "127.0.0.3"])]
)
def test_hosts(hosts: Hosts, expected: list[str]) -> None:
    """Brokers share one address or have one each, as the lab's option `hosts` says."""
    state = plan.new_state(LabSpec(name="a", hosts=hosts))
    assert [broker.host for broker in state.brokers] == expected


@pytest.mark.parametrize("base_port", [None, 21_500])
def test_a_broker_more_takes_new_ports(base_port: int | None) -> None:
    """A fourth broker is named by the next number and takes no port of another part, though none of them runs."""
    state = plan.new_state(LabSpec(name="a", base_port=base_port))
    grown = plan.with_one_more_broker(state)
    assert grown.brokers[:3] == state.brokers
    assert grown.brokers[3].name == "broker-4"
    assert len(plan.used_by(grown)) == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "../a"}, r"lab name '\.\./a'"),
        ({"name": ""}, "lab name ''"),
        ({"name": "a", "pulsar_version": "3.0.0"}, r"3\.0\.0 is not prepared: choose one of 4\.0\.7, 4\.2\.4"),
        ({"name": "a", "broker_versions": {2: "3.0.0"}}, r"3\.0\.0 is not prepared"),
        ({"name": "a", "brokers": 0}, "at least one broker"),
        ({"name": "a", "auth": "tls"}, "auth 'tls' needs listeners 'tls'"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(LabError, match=message):
        LabSpec(**options)


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server((LOOPBACK, 0)) as server:
        yield server.getsockname()[1]


def free_run(length: int) -> int:
    """The first of as many free ports in a row."""
    return next(
        first
        for first in range(ports.HIGHEST, ports.LOWEST, -length)
        if all(ports.is_free(LOOPBACK, port) for port in range(first, first + length))
    )


def test_ports_count_from_the_base() -> None:
    first = free_run(3)
    wanted = Ports(first)
    assert [wanted.take(LOOPBACK, "a part") for _ in range(3)] == [first, first + 1, first + 2]


def test_ports_that_are_spoken_for_are_passed_over() -> None:
    """A port in the set of used ports is passed over, though no server listens on it."""
    first = free_run(3)
    wanted = Ports(first, frozenset({first, first + 1}))
    assert wanted.take(LOOPBACK, "a part") == first + 2


def test_a_taken_port_that_was_asked_for_is_an_error_that_names_it(taken: int) -> None:
    """The error about a requested port in use says which port, what wanted it and which option to change."""
    with pytest.raises(PortTakenError, match=rf"port {taken} on 127\.0\.0\.1, wanted for the bookie, .*--base-port"):
        Ports(taken).take(LOOPBACK, "the bookie")


def test_free_ports_are_below_those_of_outgoing_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEWARD_LAB_PORTS", raising=False)
    assert ports.HIGHEST < 32_768
    for drawn in (0, 1):
        monkeypatch.setattr(random, "randint", lambda *bounds, drawn=drawn: bounds[drawn])
        assert ports.LOWEST <= Ports(None).take(LOOPBACK, "a part") < ports.HIGHEST


def test_a_listening_server_is_seen(taken: int) -> None:
    assert ports.answers(LOOPBACK, taken)
    assert not ports.is_free(LOOPBACK, taken)


def test_an_idle_port_is_seen() -> None:
    port = free_run(1)
    assert not ports.answers(LOOPBACK, port)
    assert ports.is_free(LOOPBACK, port)
