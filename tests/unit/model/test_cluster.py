"""The configuration store by which clusters are known to be meant as one."""

from __future__ import annotations

from pulsar_steward.model.cluster import configuration_store_id as store_of


def test_a_store_is_known_by_its_addresses_in_any_order() -> None:
    """Brokers without an address of one use their metadata store; other servers, or another root, are another store."""
    own = {"metadataStoreUrl": "zk:a:2181"}
    east = store_of(own | {"configurationMetadataStoreUrl": "zk:g1:2181,g2:2181/"})
    assert east == store_of({"metadataStoreUrl": "zk:b:2181", "configurationStoreServers": "g2:2181, g1:2181"})
    assert store_of(own) == store_of({"zookeeperServers": "a:2181", "configurationMetadataStoreUrl": ""})
    assert len({east, store_of(own), store_of(own | {"globalZookeeperServers": "g1:2181,g2:2181/pulsar"})}) == 3
    assert store_of({}) is None
