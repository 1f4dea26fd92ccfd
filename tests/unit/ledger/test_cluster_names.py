"""Names of clusters: which are those of one cluster, and when a row is added."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.ledger.chain import appending
from pulsar_steward.ledger.cluster_names import add_name, cluster_names, known_cluster, shared_names
from pulsar_steward.model.cluster import ClusterIdentity, NamedCluster
from tests.unit.ledger.test_records import AT

if TYPE_CHECKING:
    from sqlalchemy import Engine


def seen(name: str, metadata: str | None = "0", *brokers: str, pulsar: str = "local") -> NamedCluster:
    """A cluster as somebody saw it."""
    return NamedCluster(name, ClusterIdentity(name=pulsar, metadata_id=metadata), frozenset(brokers))


def add(engine: Engine, *clusters: NamedCluster) -> None:
    """Adds their names, one after the other."""
    for cluster in clusters:
        with appending(engine) as chain:
            add_name(chain, cluster, AT)


def names(engine: Engine, cluster: NamedCluster) -> set[str]:
    """Names that lead to a cluster now."""
    with engine.connect() as connection:
        return set(known_cluster(connection, cluster).names)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (seen("west"), True),
        (seen("west", None), True),
        (seen("west", "1"), False),
        (seen("west", "1", "b:8080", "c:8080"), True),
        (seen("west", "1", "c:8080"), False),
        (seen("west", pulsar="prod"), False),
        (seen("west", "0", "b:8080", pulsar="prod"), False),
        (NamedCluster("west"), False),
    ],
    ids=["one", "no metadata", "two", "a common broker", "no common broker", "its name", "only brokers", "unknown"],
)
def test_clusters_are_one_by_their_own_name_and_by_metadata_or_brokers(
    engine: Engine, other: NamedCluster, *, same: bool
) -> None:
    """Two names are of one cluster if Pulsar's name is the same, and the metadata store or a broker as well."""
    east = seen("east", "0", "a:8080", "b:8080")
    add(engine, east, other)
    expected = {"east", "west"} if same else {"east"}
    assert names(engine, east) == names(engine, NamedCluster("east")) == expected
    with engine.connect() as connection:
        assert shared_names(connection) == ([("east", "west")] if same else [])


def test_names_are_one_by_way_of_a_third(engine: Engine) -> None:
    """Two names that have nothing in common are of one cluster if both have something in common with a third."""
    add(engine, seen("east", "0", "a:8080"), seen("north", "1", "a:8080", "b:8080"), seen("west", "1"))
    assert names(engine, NamedCluster("west")) == {"east", "north", "west"}


def test_a_name_that_leads_elsewhere_by_now_is_no_name_of_the_former_cluster(engine: Engine) -> None:
    """A name belongs to the cluster that it led to last, and what was done by it before stays the former one's."""
    add(engine, seen("east"), seen("west"), seen("west", "1"))
    with engine.connect() as connection:
        east = known_cluster(connection, NamedCluster("east"))
        assert (set(east.names), set(east.name_ids), east.name_id) == ({"east"}, {1, 2}, 1)
        assert known_cluster(connection, seen("west", "0")).names == {"east", "west"}  # a batch that is still under way


@pytest.mark.parametrize(
    ("then", "rows"),
    [
        (seen("east", "0", "b:8080", "c:8080"), 1),
        (seen("east"), 1),
        (NamedCluster("east"), 1),
        (seen("east", "0", "c:8080"), 2),
        (seen("east", "1", "a:8080"), 2),
        (seen("east", None, "a:8080"), 2),
        (seen("west", "0", "a:8080"), 2),
    ],
)
def test_a_row_is_added_where_the_last_one_says_something_else(engine: Engine, then: NamedCluster, rows: int) -> None:
    """A name gets another row if it leads to another cluster, or if no broker of its last row is listed any more."""
    add(engine, seen("east", "0", "a:8080", "b:8080"), then)
    with engine.connect() as connection:
        assert len(cluster_names(connection)) == rows
