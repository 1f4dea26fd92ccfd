"""Clusters by name in a ledger, and their states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.ledger.chain import appending
from pulsar_steward.ledger.cluster_names import add_name, cluster_names, known_cluster, shared_names
from pulsar_steward.ledger.cluster_states import cluster_states
from pulsar_steward.ledger.halts import EVERY_CLUSTER, Halt, say
from pulsar_steward.ledger.store import one_moment
from pulsar_steward.model.cluster import ClusterIdentity, NamedCluster
from tests.cases import cases
from tests.unit.ledger.test_records import AT, LATER, PLAN

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


@cases(
    "other, same",
    ("one", seen("west"), True),
    ("no metadata", seen("west", None), True),
    ("two", seen("west", "1"), False),
    ("a common broker", seen("west", "1", "b:8080", "c:8080"), True),
    ("no common broker", seen("west", "1", "c:8080"), False),
    ("its name", seen("west", pulsar="prod"), False),
    ("only brokers", seen("west", "0", "b:8080", pulsar="prod"), False),
    ("unknown", NamedCluster("west"), False),
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


def test_an_empty_ledger_knows_no_cluster(engine: Engine) -> None:
    """A halt of every cluster applies to an observed cluster, and a halt alone makes a name no cluster."""
    with one_moment(engine) as connection:
        assert cluster_states(connection, AT, ["observed"]).halts == {"observed": None}
    halt = Halt(cluster=EVERY_CLUSTER, at=AT, halted=True, said_by="bob", reason="an upgrade")
    say(engine, halt)
    say(engine, Halt(cluster="lokal", at=AT, halted=True, said_by="bob", reason="misspelt"))
    with one_moment(engine) as connection:
        states = cluster_states(connection, AT, ["observed"])
    assert (states.clusters, states.halts) == (frozenset(), {"observed": halt})
    assert (states.waiting, states.running, states.changes) == ([], {}, {})


def test_the_last_change_counts_the_steps_of_its_batch(full: Engine) -> None:
    with one_moment(full) as connection:
        states = cluster_states(connection, LATER)
    assert states.clusters == {PLAN.cluster}
    change = states.changes[PLAN.cluster]
    assert (change.plan_id, change.outcomes) == (PLAN.plan_id, {"done": 1})
