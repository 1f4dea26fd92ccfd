"""The stop switch and the one writer: nothing more is called, whatever the batch waits for."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
import pytest
from sqlalchemy import update

from lab.simulator import Answer, Delay, Fault
from pulsar_steward.apply.halting import StopSwitch
from pulsar_steward.errors import Halted, LeaseLost, LedgerError
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.halts import EVERY_CLUSTER, Halt, say
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.policy.schema import ApplyPolicy
from tests.apply.refusals import assert_refused
from tests.apply.test_rollback import BACK, RAISED, back_of, done
from tests.apply.worksite import quick_policy, said
from tests.beside import lateness
from tests.builders import CLUSTER, NAMED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.pulsar.calls import Call
    from tests.apply.worksite import Worksite

HONOURED_SECONDS = 1.0


def halt(site: Worksite, *, halted: bool = True, cluster: str = CLUSTER) -> None:
    say(site.engine, Halt(cluster=cluster, at=site.clock(), halted=halted, said_by="bob", reason="disks are full"))


@pytest.mark.parametrize("cluster", [CLUSTER, EVERY_CLUSTER])
def test_a_halted_cluster_is_not_changed(site: Worksite, cluster: str) -> None:
    plan = site.approved(site.move(0))
    halt(site, cluster=cluster)
    assert_refused(site, plan, r"by bob at .* UTC: disks are full \(`", error=Halted)
    assert site.recorded(plan) == [("b1.s01", "refused")]
    halt(site, halted=False, cluster=cluster)
    assert said(site.carry_out(site.approved(site.move(1)))) == ["done"]


class Bob:
    """A person who halts the cluster half a second after the first nudge."""

    def __init__(self, site: Worksite) -> None:
        self.stopped_at = 0.0
        self._site = site
        self._timer = threading.Timer(0.5, self._stop)

    def nudge(self, *_: object) -> None:
        """He will say it soon."""
        if not self._timer.ident:
            self._timer.start()

    def _stop(self) -> None:
        halt(self._site)
        self.stopped_at = time.monotonic()

    def end(self) -> None:
        """Waits until he has said it, if he was nudged."""
        if self._timer.ident:
            self._timer.join()


@pytest.fixture
def bob(site: Worksite) -> Iterator[Bob]:
    bob = Bob(site)
    yield bob
    bob.end()


def test_a_batch_that_keeps_pace_stops_within_a_second(site: Worksite, bob: Bob) -> None:
    site.policy = quick_policy(apply={"bundle_moves_per_minute": 1})
    with lateness() as late:
        outcomes = site.carry_out(site.approved(site.move(0), site.move(1)), listener=bob.nudge)
        ended = time.monotonic()
    assert said(outcomes) == ["done", "refused"]
    assert "halted by bob" in outcomes[1].reason
    assert ended - bob.stopped_at < HONOURED_SECONDS + 2 * late()


def test_a_batch_that_waits_for_another_writer_stops_within_a_second(site: Worksite, bob: Bob) -> None:
    plan = site.approved(site.move(0))
    site.writes.take_lease(NAMED, "somebody else", 60, site.clock())
    site.switch = bob.nudge
    with lateness() as late:
        with pytest.raises(Halted):
            site.carry_out(plan)
        ended = time.monotonic()
    assert ended - bob.stopped_at < HONOURED_SECONDS + 2 * late()
    assert site.untouched()


BUNDLE = "0x00000000_0xffffffff"


def nobody_comes_back(site: Worksite, seconds: int) -> None:
    """Leaves bundles that move to the second broker without clients, who have so long to come back."""
    site.policy = quick_policy(health={"return_seconds": seconds})
    site.simulator.faults.add(Fault(Answer(404), path="/stats", broker_id=site.brokers[1], times=None))


def test_a_batch_that_waits_for_clients_stops_within_a_second(site: Worksite, bob: Bob) -> None:
    nobody_comes_back(site, 60)
    plan = site.approved(site.move(BUNDLE, namespace="shop/orders"), site.move(1))
    with lateness() as late:
        first, second = site.carry_out(plan, after=bob.nudge)
        ended = time.monotonic()
    assert said((first, second)) == ["done", "refused"]
    assert ended - bob.stopped_at < HONOURED_SECONDS + 2 * late()
    assert "a halt ended the watching" in first.reason
    assert (first.proof["health"]["level"], len(first.proof["health"]["before"]["topics"])) == ("strained", 2)
    assert "halted by bob" in second.reason
    assert site.owner(BUNDLE, "shop/orders") == site.brokers[1]


def test_a_ledger_that_cannot_tell_of_a_halt_ends_no_watching(site: Worksite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The effect of a change is watched and recorded even if the ledger cannot be asked for a halt meanwhile."""

    def unreadable(_switch: StopSwitch, _seconds: float) -> NoReturn:
        raise LedgerError("the ledger is away")

    nobody_comes_back(site, 1)
    monkeypatch.setattr(StopSwitch, "rest", unreadable)
    (outcome,) = site.carry_out(site.approved(site.move(BUNDLE, namespace="shop/orders")))
    assert outcome.outcome == "done"
    assert outcome.proof["health"]["level"] == "worse"


def test_a_halt_does_not_end_the_wait_for_a_proof(site: Worksite) -> None:
    site.policy = quick_policy(apply={"proof_timeout_seconds": 20})
    plan = site.approved(site.move(0))

    def slow_and_halted(call: Call) -> None:
        if call.method == "PUT":
            site.simulator.faults.add(Fault(Answer(503), path="/lookup/", times=4))
            halt(site)

    (outcome,) = site.carry_out(plan, after=slow_and_halted)
    assert outcome.outcome == "done"
    assert site.owner(site.tc_bundles[0]) == site.brokers[1]
    assert site.changes() == [f"unload {site.tc_bundles[0]}"]


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
