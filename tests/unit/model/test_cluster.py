"""Stores that a broker's configuration tells: by which clusters are meant as one, and of which kind they are."""

from __future__ import annotations

from pulsar_steward.model.cluster import configuration_store_id as store_of
from pulsar_steward.model.cluster import metadata_store_of
from tests.cases import row_by_row


def test_a_store_is_known_by_its_addresses_in_any_order() -> None:
    """Brokers without an address of one use their metadata store; other servers, or another root, are another store."""
    own = {"metadataStoreUrl": "zk:a:2181"}
    east = store_of(own | {"configurationMetadataStoreUrl": "zk:g1:2181,g2:2181/"})
    assert east == store_of({"metadataStoreUrl": "zk:b:2181", "configurationStoreServers": "g2:2181, g1:2181"})
    assert store_of(own) == store_of({"zookeeperServers": "a:2181", "configurationMetadataStoreUrl": ""})
    assert len({east, store_of(own), store_of(own | {"globalZookeeperServers": "g1:2181,g2:2181/pulsar"})}) == 3
    assert store_of({}) is None


@row_by_row(
    "address, kind",
    ("zk:10.0.0.1:2181,10.0.0.2:2181/pulsar", "zk"),
    ("zk-1.example.org:2181/pulsar", "zk"),
    ("localhost:2181", "zk"),
    ("zookeeper", "zk"),
    ("oxia://oxia:6648/broker", "oxia"),
    ("etcd:http://user:s3cr3t@10.0.0.1:2379", "etcd"),
    ("etcd:10.0.0.1:2379", "etcd"),
    ("rocksdb:///data/metadata", "rocksdb"),
    ("\x1b[2J://s3cr3t", None),
    ("", None),
)
def test_of_the_metadata_stores_address_only_its_kind_is_told(address: str, kind: str | None) -> None:
    assert metadata_store_of({"metadataStoreUrl": address}) == kind


def test_the_older_setting_is_zookeepers() -> None:
    assert metadata_store_of({"metadataStoreUrl": "", "zookeeperServers": "10.0.0.1:2181"}) == "zk"
