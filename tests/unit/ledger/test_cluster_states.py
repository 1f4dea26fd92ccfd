"""The state of all clusters at once, as pages show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.ledger.counts import cluster_states
from pulsar_steward.ledger.halts import EVERY_CLUSTER, Halt, say
from pulsar_steward.ledger.store import one_moment
from tests.unit.ledger.test_records import AT, LATER, PLAN

if TYPE_CHECKING:
    from sqlalchemy import Engine


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
    """The last change of a cluster comes with the number of its batch's steps by outcome."""
    with one_moment(full) as connection:
        states = cluster_states(connection, LATER)
    assert states.clusters == {PLAN.cluster}
    change = states.changes[PLAN.cluster]
    assert (change.plan_id, change.outcomes) == (PLAN.plan_id, {"done": 1})
