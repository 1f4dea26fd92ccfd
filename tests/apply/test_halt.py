"""The stop switch: nothing more is called, within a second, whatever the batch waits for."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NoReturn

import pytest

from lab.simulator import Answer, Fault
from pulsar_steward.apply.halting import StopSwitch
from pulsar_steward.errors import Halted, LedgerError
from pulsar_steward.ledger.halts import EVERY_CLUSTER, Halt, say
from tests.apply.worksite import quick_policy, said
from tests.beside import lateness
from tests.builders import CLUSTER, NAMED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_steward.pulsar.calls import Call
    from tests.apply.worksite import Worksite

HONOURED_SECONDS = 1.0


def halt(site: Worksite, *, halted: bool = True, cluster: str = CLUSTER) -> None:
    """Bob says stop, or go on."""
    say(site.engine, Halt(cluster=cluster, at=site.clock(), halted=halted, said_by="bob", reason="disks are full"))


@pytest.mark.parametrize("cluster", [CLUSTER, EVERY_CLUSTER])
def test_a_halted_cluster_is_not_changed(site: Worksite, cluster: str) -> None:
    """A batch is refused during a halt, with who said it and why; after the halt the next batch is done."""
    plan = site.approved(site.move(0))
    halt(site, cluster=cluster)
    with pytest.raises(Halted, match=r"by bob at .* UTC: disks are full \(`"):
        site.carry_out(plan)
    assert site.untouched()
    assert site.recorded(plan) == [("b1.s01", "refused")]
    halt(site, halted=False, cluster=cluster)
    assert said(site.carry_out(site.approved(site.move(1)))) == ["done"]


def test_another_switch_stops_as_well(site: Worksite) -> None:
    """A batch is refused if another stop switch than the ledger says that changes are halted."""
    site.switch = lambda _name: "halted by a variable"
    with pytest.raises(Halted, match="halted by a variable"):
        site.carry_out(site.approved(site.move(0)))
    assert site.untouched()


def test_a_halt_between_two_steps_stops_before_the_next_call(site: Worksite) -> None:
    """A step under way during a halt is finished and proved, and the following steps are refused."""
    plan = site.approved(site.move(0), site.move(1), site.move(2))
    outcomes = site.carry_out(plan, after=lambda _: halt(site))
    assert said(outcomes) == ["done", "refused", "refused"]
    assert "halted by bob" in outcomes[1].reason
    assert site.changes() == [f"unload {site.tc_bundles[0]}"]
    assert site.owner(site.tc_bundles[0]) == site.brokers[1]


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
    """Bob."""
    bob = Bob(site)
    yield bob
    bob.end()


def test_a_batch_that_keeps_pace_stops_within_a_second(site: Worksite, bob: Bob) -> None:
    """A batch that waits to keep its pace stops within a second after a halt."""
    site.policy = quick_policy(apply={"bundle_moves_per_minute": 1})
    with lateness() as late:
        outcomes = site.carry_out(site.approved(site.move(0), site.move(1)), listener=bob.nudge)
        ended = time.monotonic()
    assert said(outcomes) == ["done", "refused"]
    assert "halted by bob" in outcomes[1].reason
    assert ended - bob.stopped_at < HONOURED_SECONDS + 2 * late()


def test_a_batch_that_waits_for_another_writer_stops_within_a_second(site: Worksite, bob: Bob) -> None:
    """A batch that waits for the lease of another writer stops within a second after a halt."""
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
    """A halt ends the wait for clients within a second, and the step is done and strained."""
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
    """A halt does not end the wait for a step's proof, and the step is done."""
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
