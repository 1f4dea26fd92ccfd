"""The configuration files that the parts are started with."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from lab import java, plan, settings
from lab.bookie import ADMIN_API
from lab.errors import LabError
from lab.model import LabSpec, LabState


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
