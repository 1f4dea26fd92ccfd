"""ZooKeeper's own metrics: a real server tells the series that Steward reads, and the simulator tells the same."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import httpx
import pytest

from lab.cluster import running_lab
from lab.ports import LOOPBACK, Ports
from lab.simulator import ZooKeeperSpec, running_servers
from lab.testing import need_lab
from pulsar_steward.collect.metrics import LATER_NAMES, SERIES, read_endpoint
from pulsar_steward.model.measures import ZOOKEEPER_VERSION
from pulsar_steward.pulsar.metrics import Exposition
from pulsar_steward.pulsar.settings import AdminSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

READ = SERIES["zookeeper"].keys() - {*LATER_NAMES, ZOOKEEPER_VERSION}

PROVIDER = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
TOLD_WITHIN_S = 30


def told(url: str) -> dict[str, float]:
    """Values of the series that are read; of one with several samples the largest."""
    body = httpx.get(url, trust_env=False).content
    values: dict[str, float] = {}
    for sample in Exposition(iter([body]), len(body) + 1).samples(dict.fromkeys(READ)):
        values[sample.series] = max(sample.value, values.get(sample.series, sample.value))
    return values


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The addresses of the metrics and of the admin server of a real ZooKeeper that a broker works with."""
    need_lab()
    ports = Ports(None)
    port, admin = ports.take(LOOPBACK, "ZooKeeper's metrics"), ports.take(LOOPBACK, "ZooKeeper's admin server")
    settings = {
        "metricsProvider.className": PROVIDER,
        "metricsProvider.httpHost": LOOPBACK,
        "metricsProvider.httpPort": str(port),
        "admin.enableServer": "true",
        "admin.serverAddress": LOOPBACK,
        "admin.serverPort": str(admin),
    }
    home: Path = tmp_path_factory.mktemp("zookeeper-metrics")
    with running_lab("zookeeper-metrics", home=home, brokers=1, zookeeper_settings=settings):
        yield f"http://{LOOPBACK}:{port}/metrics", f"http://{LOOPBACK}:{admin}"


def until(seen: Callable[[], bool]) -> bool:
    """Whether it comes to be so within the time limit: summaries are added up by a thread of the provider."""
    deadline = time.monotonic() + TOLD_WITHIN_S
    while not seen():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


@pytest.mark.live
@pytest.mark.extended("tests/contract/test_metrics.py")
def test_a_real_server_tells_every_series_that_is_read(real: tuple[str, str]) -> None:
    """A real ZooKeeper server reports every series that Steward reads, also the one that counts log lines."""
    assert set(told(real[0])) == set(READ)


@pytest.mark.live
@pytest.mark.extended("tests/contract/test_metrics.py")
def test_a_real_admin_server_tells_its_version(real: tuple[str, str]) -> None:
    """Which its metrics do not."""
    (piece,) = read_endpoint(AdminSettings(urls=(real[1],)), f"zookeeper_admin={real[1]}", 1)
    assert piece.rows.column("labels_json").to_pylist() == ['{"version":"3.9.3"}']


@pytest.mark.live
@pytest.mark.extended("tests/contract/test_metrics.py")
def test_a_broker_makes_a_real_server_count(real: tuple[str, str]) -> None:
    """A running broker makes a real ZooKeeper server count reads, writes, forced writes and nodes."""
    assert until(
        lambda: all(told(real[0])[f"{name}_count"] > 0 for name in ("readlatency", "updatelatency", "fsynctime"))
    )
    values = told(real[0])
    assert values["znode_count"] > 10
    assert values["outstanding_requests"] >= 0
    for name in ("readlatency", "updatelatency", "fsynctime"):
        assert 0 <= values[f"{name}_sum"] < values[f"{name}_count"] * 60_000, "no operation takes a minute on average"
    assert time.time() - 600 < values["process_start_time_seconds"] <= time.time()


def test_the_simulator_tells_the_same() -> None:
    with running_servers(ZooKeeperSpec(debug_lines=0)) as servers:
        assert set(told(servers.metrics_urls[0].partition("=")[2])) == set(READ)
