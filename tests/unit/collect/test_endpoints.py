"""What bookies tell beside their metrics."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from pulsar_steward.collect.metrics import read_endpoint
from pulsar_steward.pulsar.settings import AdminSettings
from tests.unit.pulsar.scripted import Reply, answer, scripted_brokers

METRICS = b"bookie_SERVER_STATUS 1.0\n"
SIZE = "dbStorage_writeCacheMaxSizeMb"
TOLD = {"zkServers": "zk:2181", "tlsKeyStorePassword": "secret", SIZE: "2048", "journalSyncData": "true"}


@pytest.mark.parametrize(
    ("told", "size"),
    [
        (answer(TOLD), 2048.0),
        (answer({"zkServers": "zk:2181"}), None),
        (answer({SIZE: ""}), None),
        (answer({SIZE: "2048MB"}), None),
        (answer({SIZE: "9" * 16}), None),
        (answer([SIZE]), None),
        (answer(b"<html>"), None),
        (answer(status=404), None),
    ],
    ids=["told", "not set", "empty", "no number", "too large", "no object", "no JSON", "no HTTP server of its own"],
)
@pytest.mark.parametrize("path", ["/metrics", "/metrics/", "/bookie-1/metrics"])
def test_a_bookie_tells_one_of_its_settings(told: Reply, size: float | None, path: str) -> None:
    """Where its HTTP server is on; nothing else of its settings is kept, and its metrics do not depend on that."""
    with scripted_brokers() as make:
        bookie = make()
        bookie.on(path, answer(METRICS))
        bookie.on(f"{path.rstrip('/').removesuffix('/metrics')}/api/v1/config/server_config", told)
        settings = AdminSettings(urls=("https://broker:8443",), token=SecretStr("a-made-up-token"))
        pieces = list(read_endpoint(settings, f"bookie={bookie.url}{path}", 10))
        rows = [(row["series"], row["value"]) for piece in pieces for row in piece.rows.to_pylist()]
        assert rows == [("bookie_SERVER_STATUS", 1.0), *([] if size is None else [(SIZE, size)])]
        assert [each.authorization for each in bookie.asked] == [None, None]


@pytest.mark.parametrize(
    ("told", "version"),
    [
        (answer({"version": "3.9.3-c26634f, built on 2024-10-17"}), "3.9.3"),
        (answer({"version": "<b>"}), None),
        (answer({}), None),
        (answer(status=404), None),
    ],
    ids=["told", "no version", "not told", "no admin server"],
)
def test_an_admin_server_of_zookeeper_tells_its_version(told: Reply, version: str | None) -> None:
    """And nothing else is asked or kept; its address may be given with or without a path."""
    with scripted_brokers() as make:
        server = make()
        server.on("/commands/srvr", told)
        settings = AdminSettings(urls=("https://broker:8443",), token=SecretStr("a-made-up-token"))
        for path in ("", "/", "/commands/srvr"):
            pieces = list(read_endpoint(settings, f"zookeeper_admin={server.url}{path}", 10))
            rows = [row for piece in pieces for row in piece.rows.to_pylist()]
            told_there = [(row["source_kind"], row["series"], row["labels_json"]) for row in rows]
            labels = f'{{"version":"{version}"}}'
            assert told_there == ([("zookeeper", "zookeeper_version", labels)] if version else [])
        assert {(each.path, each.authorization) for each in server.asked} == {("/commands/srvr", None)}


def test_only_bookies_are_asked_for_settings() -> None:
    """ZooKeeper has no such address."""
    with scripted_brokers() as make:
        server = make()
        server.on("/metrics", answer(b"znode_count 5.0\n"))
        settings = AdminSettings(urls=("http://broker:8080",))
        list(read_endpoint(settings, f"zookeeper={server.url}/metrics", 10))
        assert [each.path for each in server.asked] == ["/metrics"]
