"""The stop switch in the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.errors import Halted
from pulsar_steward.ledger.chain import appending
from pulsar_steward.ledger.cluster_names import add_name
from pulsar_steward.ledger.halts import EVERY_CLUSTER, Halt, halt_of, say
from pulsar_steward.model.cluster import ClusterIdentity, NamedCluster
from pulsar_steward.policy.schema import Policy
from tests.builders import ASKED_DIGEST, an_intended_call
from tests.unit.ledger.test_records import APPROVED, AT, PLAN, RUN

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.ledger.write import LedgerWriter


A = NamedCluster("a")


def halt(cluster: str, *, halted: bool = True) -> Halt:
    """A halt, or its end, by Bob."""
    return Halt(cluster=cluster, at=AT, halted=halted, said_by="bob", reason="brokers are being upgraded")


def test_the_last_word_holds(engine: Engine) -> None:
    """A cluster stays halted until a later word ends the halt."""
    assert halt_of(engine, A) is None
    say(engine, halt("a"))
    assert halt_of(engine, A) == halt("a")
    say(engine, halt("a", halted=False))
    assert halt_of(engine, A) is None


def test_every_cluster_is_halted_at_once(engine: Engine) -> None:
    """The end of one cluster's halt does not lift a halt of every cluster."""
    say(engine, halt(EVERY_CLUSTER))
    say(engine, halt("a", halted=False))
    assert halt_of(engine, A) == halt(EVERY_CLUSTER)


def test_no_call_can_be_intended_while_halted(engine: Engine, write: LedgerWriter, read: LedgerReader) -> None:
    """No intent of a call can be recorded while its cluster is halted."""
    write.record_plan(PLAN, AT)
    write.record_request(PLAN, "b1", RUN, AT, asked_digest=ASKED_DIGEST, policy=Policy())
    answer_id = write.record_answer(APPROVED)
    lease = write.take_lease(PLAN.named_cluster, RUN, 600, AT)
    step = PLAN.batch("b1").step("b1.s01")
    intended = an_intended_call(PLAN, step, APPROVED, answer_id)
    say(engine, halt(PLAN.cluster))
    with pytest.raises(Halted, match=r"by bob at 2026-01-01 12:00:00 UTC: brokers are"):
        write.record_intent(intended, lease, AT)
    assert read.intents(PLAN.plan_id, "b1") == ()
    say(engine, halt(PLAN.cluster, halted=False))
    assert write.record_intent(intended, lease, AT)


EAST, WEST, NORTH = (
    NamedCluster(name, ClusterIdentity(name="local", metadata_id=store))
    for name, store in (("east", "0"), ("west", "0"), ("north", "1"))
)


@pytest.mark.parametrize(
    ("halted", "stopped"),
    [("east", {"east", "west"}), ("west", {"east", "west"}), ("north", {"north"}), ("nrth", {"east", "west", "north"})],
)
def test_a_halt_stops_its_cluster_under_every_name(engine: Engine, halted: str, stopped: set[str]) -> None:
    """A halt stops all names of its cluster, and all clusters where nobody has seen which one its name is."""
    with appending(engine) as chain:
        for cluster in (EAST, WEST, NORTH):
            add_name(chain, cluster, AT)
    say(engine, halt(halted))
    assert {each.name for each in (EAST, WEST, NORTH) if halt_of(engine, each)} == stopped
    assert halt_of(engine, NamedCluster(halted)) == halt(halted)
