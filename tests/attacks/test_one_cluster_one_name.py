"""One cluster is one, whatever it is called: a second name for the same brokers passes nothing."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from lab.simulator import running_simulator
from pulsar_steward.errors import Halted, LeaseLost
from pulsar_steward.ledger.halts import Halt, say
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.step import RaiseCoordinators
from tests.apply.refusals import assert_refused, assert_stopped
from tests.apply.worksite import COORDINATORS, SKEWED, Worksite, a_worksite, quick_policy, said
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.step import Change

WRITTEN_OTHERWISE = replace(SKEWED, own_settings=({}, {}, {"metadataStoreUrl": "zk:127.0.0.1:2181"}))
"""The third broker writes the address of the metadata store in another way: so real brokers of one cluster may."""


@pytest.fixture(params=["the same address", "another broker, which writes its metadata's address otherwise"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Worksite]:
    """The cluster by its first name."""
    with a_worksite(tmp_path, SKEWED if request.param == "the same address" else WRITTEN_OTHERWISE) as site:
        site.policy = quick_policy(apply={"lease_wait_seconds": 1, "proof_wait_seconds": 0})
        yield replace(site, broker=0)


@pytest.fixture
def west(site: Worksite) -> Worksite:
    """The same brokers by a second name, which leads to another one of them; the ledger has seen both."""
    west = replace(site, cluster="west", broker=2)
    for each in (site, west):
        each.plan(each.move(3))
    return west


def named(site: Worksite) -> NamedCluster:
    return NamedCluster(site.cluster, site.identity)


def done(site: Worksite, *changes: Change) -> Plan:
    """Changes that were approved, carried out and proved."""
    plan = site.approved(*changes)
    assert set(said(site.carry_out(plan))) == {"done"}
    return site.proved(plan)


def refusal(site: Worksite, *changes: Change) -> str:
    """Reason why approved changes are refused; nothing is called for them."""
    site.simulator.requests.clear()
    (outcome, *_) = site.carry_out(site.approved(*changes))
    assert (outcome.outcome, site.untouched()) == ("refused", True)
    return outcome.reason


def halt(site: Worksite, name: str) -> None:
    """Bob says stop."""
    say(site.engine, Halt(cluster=name, at=site.clock(), halted=True, said_by="bob", reason="disks are full"))


def test_two_names_are_never_written_to_at_once(site: Worksite, west: Worksite) -> None:
    """A batch waits for a writer that holds the same brokers by another name, and gives up in time."""
    plan = west.approved(west.move(0))
    site.writes.take_lease(named(site), "somebody else", 60, site.clock())
    assert_refused(west, plan, "somebody else is changing cluster east", error=LeaseLost)


@pytest.mark.parametrize("site", ["the same address"], indirect=True)
def test_two_names_are_never_written_to_at_once_in_postgresql(postgres_ledger: str, site: Worksite) -> None:
    """The same holds in PostgreSQL, where several names have rows, and locks, of their own."""
    engine = ledger_at(postgres_ledger)
    try:
        site = replace(site, engine=engine)
        west = replace(site, cluster="west", broker=2)
        plan = west.approved(west.move(0))
        site.plan(site.move(3))
        lease = site.writes.take_lease(named(site), "somebody else", 60, site.clock())
        with pytest.raises(LeaseLost, match="somebody else is changing cluster east"):
            west.carry_out(plan)
        site.writes.end_lease(lease, site.clock())
        assert said(west.carry_out(plan)) == ["done"]
        halt(site, "east")
        with pytest.raises(Halted, match="steward resume east"):
            west.carry_out(west.approved(west.move(1)))
    finally:
        engine.dispose()


def test_a_writer_that_slept_is_fenced_by_another_name(site: Worksite, west: Worksite) -> None:
    """A batch stops before its next call once another writer took the brokers by another name, whatever its clock."""
    plan = site.approved(site.move(0), site.move(1))

    def taken_over(_: object) -> None:
        later = west.clock() + timedelta(minutes=5)  # by the other one's clock this writer's lease has run out
        with suppress(LeaseLost):  # at the next call it is taken already
            west.writes.take_lease(named(west), "somebody else", 60, later)

    outcomes = site.carry_out(plan, after=taken_over)
    assert said(outcomes) == ["done", "refused"]
    assert "another writer holds cluster east by now" in outcomes[1].reason


def test_a_halt_of_one_name_stops_all_of_them(site: Worksite, west: Worksite) -> None:
    """A batch is refused where the same brokers were halted by another name, and the reason says what ends it."""
    plan = site.approved(site.move(0))
    halt(site, west.cluster)
    assert_refused(site, plan, r"cluster west was halted by bob at .* \(`steward resume west` ends it\)", error=Halted)


def test_a_halt_of_one_name_stops_a_batch_of_another_before_its_next_call(site: Worksite, west: Worksite) -> None:
    """The halt of another name in the middle of a batch stops it before the next call."""
    outcomes = site.carry_out(site.approved(site.move(0), site.move(1)), after=lambda _: halt(site, west.cluster))
    assert said(outcomes) == ["done", "refused"]
    assert "cluster west was halted by bob" in outcomes[1].reason


def test_a_halt_of_a_name_that_nobody_has_seen_stops_everything(site: Worksite) -> None:
    """A halt holds before any plan says which cluster its name is: it may be this one."""
    plan = site.approved(site.move(0))
    halt(site, "west")
    assert_refused(site, plan, r"cluster west was halted .*; east is, or may be, the same Pulsar cluster", error=Halted)


def test_another_switch_stops_every_name(site: Worksite, west: Worksite) -> None:
    """A batch is refused where Airflow's variable halts the same brokers by another name."""
    site.switch = lambda name: f"{name} is in the variable" if name == west.cluster else None
    assert_refused(site, site.approved(site.move(0)), "west is in the variable", error=Halted)


def test_the_pace_counts_calls_under_every_name(site: Worksite, west: Worksite) -> None:
    """The pace counts moves by another name: of one a minute, the second comes a minute after the first."""
    west.policy = quick_policy(apply={"bundle_moves_per_minute": 1})
    site.clock.ahead = timedelta(seconds=-58)
    first = done(site, site.move(0))
    site.clock.ahead = timedelta()
    second = west.approved(west.move(1))
    assert said(west.carry_out(second)) == ["done"]
    began, then = (site.ledger.intents(plan.plan_id, "b1")[0].at for plan in (first, second))
    assert then - began >= timedelta(minutes=1)


def test_changes_of_an_hour_are_those_under_every_name(site: Worksite, west: Worksite) -> None:
    """The limit of changes an hour counts those by another name."""
    done(site, site.move(0))
    west.policy = quick_policy(guards={"most_changes_per_hour": 1})
    assert "policy key guards.most_changes_per_hour" in refusal(west, west.move(1))


def test_a_bundle_rests_whoever_moved_it(site: Worksite, west: Worksite) -> None:
    """A bundle that was moved by another name rests as long as any."""
    done(site, site.move(0))
    back = msgspec.structs.replace(west.move(0), source=west.brokers[1], target=west.brokers[0])
    assert "cooldown: moved at" in refusal(west, back)


def test_circles_are_closed_under_every_name(site: Worksite, west: Worksite) -> None:
    """A bundle that was moved away by one name and back by another stops its namespace."""
    for each in (site, west):
        each.policy = quick_policy(tc_skew={"cooldown_minutes": 0})
    done(site, there := site.move(0))
    done(west, msgspec.structs.replace(there, source=there.target, target=there.source))
    for each in (site, west):
        assert "circles: 0x00000000_0x40000000 of pulsar/system was moved away and back" in refusal(each, each.move(1))


def test_what_is_not_proved_stops_every_name(site: Worksite, west: Worksite) -> None:
    """A batch is refused while one by another name that changed the same brokers is not proved."""
    plan = west.approved(west.move(1))
    first = site.approved(site.move(0))
    assert said(site.carry_out(first)) == ["done"]
    west.simulator.requests.clear()
    assert_stopped(
        west, plan, "refused", f"batch b1 of plan {first.plan_id} changed the cluster, and its proof is not there yet"
    )


def test_coordinators_rest_whoever_raised_their_number(site: Worksite, west: Worksite) -> None:
    """The number of coordinators that was raised by another name is not raised again until they rested."""
    for each in (site, west):
        each.policy = quick_policy(guards={"most_coordinators": 64})
    done(site, RaiseCoordinators(before=COORDINATORS, after=COORDINATORS + 4))
    assert "coordinators_rest: " in refusal(west, RaiseCoordinators(before=COORDINATORS + 4, after=COORDINATORS + 8))


@pytest.mark.parametrize("site", ["the same address"], indirect=True)
def test_another_cluster_of_the_same_name_is_left_alone(site: Worksite) -> None:
    """Lease, halt and rests of one cluster do not hold up another one that has the same name of its own."""
    elsewhere = replace(SKEWED, configuration={"metadataStoreUrl": "zk:elsewhere:2181"})
    with running_simulator(elsewhere) as simulator:
        other = replace(site, simulator=simulator, cluster="west")
        site.plan(site.move(3))
        plan = other.approved(other.move(0))
        site.writes.take_lease(named(site), "somebody else", 60, site.clock())
        halt(site, site.cluster)
        assert said(other.carry_out(plan)) == ["done"]
