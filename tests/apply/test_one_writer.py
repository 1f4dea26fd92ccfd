"""One writer a cluster: a lost lease stops a batch before its next call, and the pace holds across batches."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from sqlalchemy import update

from lab.simulator import Delay, Fault
from pulsar_steward.errors import LeaseLost
from pulsar_steward.ledger import tables
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.policy.schema import ApplyPolicy
from tests.apply.test_rollback import BACK, RAISED, back_of, done
from tests.apply.worksite import quick_policy, said
from tests.builders import NAMED

if TYPE_CHECKING:
    from tests.apply.worksite import Worksite

PAIR = {"primary": "east", "extensions": ["west"]}


def test_a_batch_waits_for_another_writer_and_gives_up_in_time(site: Worksite) -> None:
    site.policy = quick_policy(apply={"lease_wait_seconds": 1})
    plan = site.approved(site.move(0))
    site.writes.take_lease(NAMED, "somebody else", 60, site.clock())
    begun = time.monotonic()
    with pytest.raises(LeaseLost, match="somebody else is changing cluster east"):
        site.carry_out(plan)
    assert time.monotonic() - begun >= 1
    assert site.untouched()
    assert site.recorded(plan) == []  # so that the task can be tried again


def test_a_member_of_a_logical_cluster_waits_for_another(site: Worksite) -> None:
    """By default one of them is changed at a time, and a batch waits as it does for a writer of its own cluster."""
    sections: dict[str, Any] = {"apply": {"lease_wait_seconds": 1}, "logical_clusters": {"named": {"one": PAIR}}}
    site.policy = quick_policy(**sections)
    plan = site.approved(site.move(0))
    site.writes.take_lease(NamedCluster("west"), "somebody else", 60, site.clock())
    with pytest.raises(LeaseLost, match=r"west is being changed, in one logical cluster with east: at most 1"):
        site.carry_out(plan)
    assert site.untouched()


@pytest.mark.parametrize("named", ["east2", "EAST"])
def test_a_member_waits_under_another_of_its_names(site: Worksite, named: str) -> None:
    """The policy may name a member as another connection does, or in other letters."""
    pair = {"primary": named, "extensions": ["west"]}
    site.policy = quick_policy(apply={"lease_wait_seconds": 0}, logical_clusters={"named": {"one": pair}})
    plan = site.approved(site.move(0))
    other_name = msgspec.structs.replace(plan.named_cluster, name="east2")
    site.writes.take_lease(other_name, "earlier", 60, site.clock() - timedelta(hours=1))
    site.writes.take_lease(NamedCluster("west"), "somebody else", 60, site.clock())
    with pytest.raises(LeaseLost, match=r"west is being changed, in one logical cluster with east"):
        site.carry_out(plan)


def test_a_way_back_waits_for_no_other_member(site: Worksite) -> None:
    """It ends harm: only a writer of its own cluster may hold it up, and other members wait for it."""
    sections: dict[str, Any] = {"apply": {"lease_wait_seconds": 0}, "logical_clusters": {"named": {"one": PAIR}}}
    site.policy = quick_policy(**sections)
    back = back_of(site, done(site, RAISED))
    site.writes.take_lease(NamedCluster("west"), "somebody else", 60, site.clock())
    assert said(site.carry_out(site.approve(back, run=BACK), BACK)) == ["done"]


def test_a_lost_lease_stops_the_batch_before_the_next_call(site: Worksite) -> None:
    plan = site.approved(site.move(0), site.move(1))

    def another_writer_comes(_: object) -> None:
        with site.engine.begin() as connection:
            taken = {"holder": "somebody else", "fence": 99, "expires_at": site.clock() + timedelta(minutes=5)}
            connection.execute(update(tables.LEASES).values(**taken))

    outcomes = site.carry_out(plan, after=another_writer_comes)
    assert said(outcomes) == ["done", "refused"]
    assert outcomes[1].reason == "another writer holds cluster east by now"
    assert site.changes() == [f"unload {site.tc_bundles[0]}"]
    lease = site.ledger.lease(NAMED)
    assert lease is not None
    assert lease.holder == "somebody else"
    assert lease.expires_at > site.clock()


def test_a_long_batch_keeps_its_lease(site: Worksite) -> None:
    short = ApplyPolicy.model_construct(lease_seconds=2, lease_wait_seconds=0, proof_timeout_seconds=5)
    site.policy = quick_policy(admin={"read_timeout_seconds": 10}).model_copy(update={"apply": short})
    site.simulator.faults.add(Fault(Delay(2.5), path="/unload"))
    assert said(site.carry_out(site.approved(site.move(0), site.move(1)))) == ["done", "done"]


def test_the_pace_counts_the_moves_of_earlier_batches(site: Worksite) -> None:
    site.policy = quick_policy(apply={"bundle_moves_per_minute": 2})
    site.clock.ahead = timedelta(seconds=-58)
    plans = [site.approved(site.move(number)) for number in range(3)]
    for plan in plans[:2]:
        assert said(site.carry_out(plan)) == ["done"]
        site.proved(plan)
    site.clock.ahead = timedelta()
    assert said(site.carry_out(plans[2])) == ["done"]
    first, _, third = (site.ledger.intents(plan.plan_id, "b1")[0].at for plan in plans)
    assert third - first >= timedelta(minutes=1)
