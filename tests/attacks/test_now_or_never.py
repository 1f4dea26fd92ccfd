"""Now or never: a call leaves within seconds of its intent, with all that permits it looked at in one look."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

import pytest

from lab.simulator import Answer, Fault
from pulsar_steward.apply.clearance import can_leave_until
from pulsar_steward.errors import Halted, Refused, Unreachable
from pulsar_steward.ledger.halts import Halt, say
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.pulsar.calls import Call
from pulsar_steward.pulsar.settings import AdminSettings
from pulsar_steward.pulsar.writer import Writer
from tests.apply.worksite import RUN, quick_policy, said
from tests.builders import CLUSTER, NAMED
from tests.http_serving import serving

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.model.plan import Plan
    from tests.apply.worksite import Worksite


def halted(site: Worksite, _plan: Plan) -> None:
    """Somebody says stop."""
    say(site.engine, Halt(cluster=CLUSTER, at=site.clock(), halted=True, said_by="bob", reason="stop"))


def rejected(site: Worksite, plan: Plan) -> None:
    """The person thinks better of it."""
    site.writes.record_answer(site.approval(plan, decision=Decision.REJECTED, reason="on second thought"))


def asked_again(site: Worksite, plan: Plan) -> None:
    """The question is put once more."""
    site.ask(plan)


def superseded(site: Worksite, plan: Plan) -> None:
    """A newer observation takes the plan's place."""
    newer = site.plan(site.move(3))
    site.writes.record_plan(newer, site.clock(), supersede=[plan.plan_id])


def question_ended(site: Worksite, plan: Plan) -> None:
    """An observation proposes something else in its place."""
    site.end(plan)


def lease_ended(site: Worksite, _plan: Plan) -> None:
    """The process slept through its lease, and another writer took the cluster."""
    later = site.clock() + timedelta(seconds=site.policy.apply.lease_seconds + 1)
    site.writes.take_lease(NAMED, "another", 60, later)


def slept(site: Worksite, _plan: Plan) -> None:
    """The machine was paused for longer than a call may take to leave."""
    site.clock.advance(seconds=site.policy.apply.intent_valid_seconds + 1)


def expired(site: Worksite, _plan: Plan) -> None:
    """The approval's hour is over, and another worker's row says so."""
    site.clock.advance(minutes=61)


HAPPENS = [halted, rejected, asked_again, superseded, question_ended, lease_ended, slept, expired]


@pytest.mark.parametrize("happens", HAPPENS)
def test_nothing_leaves_once_its_permission_ended(site: Worksite, happens: Callable[[Worksite, Plan], None]) -> None:
    """A step is refused and nothing is sent if its permission ends between the intent and the call."""
    plan = site.asked(site.move(0))
    outcomes = site.carry_out(plan, before=lambda _: happens(site, plan))
    assert said(outcomes) == ["refused"]
    assert outcomes[0].reason.startswith("nothing was sent: ")
    assert outcomes[0].intent_id is not None
    assert site.untouched()


@pytest.mark.parametrize("happens", [each for each in HAPPENS if each is not slept])
def test_an_intent_is_recorded_only_while_its_permission_stands(
    site: Worksite, happens: Callable[[Worksite, Plan], None]
) -> None:
    """A step is refused and has no intent if its permission ends while the guards look at the cluster."""
    plan = site.asked(site.move(0))
    asked = iter(range(100))

    def switch(_name: str) -> None:
        # Asked first before the lease is taken, and last when all guards have looked.
        if next(asked) == 1:
            happens(site, plan)

    site.switch = switch
    outcomes = site.carry_out(plan)
    assert said(outcomes) == ["refused"]
    assert outcomes[0].intent_id is None
    assert site.ledger.intents(plan.plan_id, "b1") == ()
    assert site.untouched()


def stopped_worker(site: Worksite, plan: Plan, point: str = "stop") -> subprocess.Popen[str]:
    """A process that carries a plan out, stopped between its intent and its call, or before it completes that."""
    url = site.engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "tests.apply.crashing", url, plan.plan_id, point, *site.simulator.admin_urls]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    while _state(worker.pid) != "T":
        assert worker.poll() is None
        time.sleep(0.05)
    return worker


def _state(pid: int) -> str:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:  # noqa: PTH123 - not a file that has a path of its own
        return file.read().rpartition(")")[2].split()[0]


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (None, "its intent is "),
        (halted, "cluster east was halted by bob"),
        (rejected, "a later answer took the approval's place: rejected"),
        (superseded, "superseded by the newer plan"),
        (question_ended, "the question ended at"),
        (lease_ended, "another writer holds cluster east"),
    ],
)
def test_a_worker_that_was_stopped_sends_nothing_when_it_wakes(
    site: Worksite, happens: Callable[[Worksite, Plan], None] | None, reason: str
) -> None:
    """A worker that is stopped before its call sends nothing if its intent or its permission ended meanwhile."""
    # Where something else happens, neither the intent nor the lease may end by themselves on a slow machine.
    site.policy = quick_policy(apply={"intent_valid_seconds": 1 if happens is None else 60, "lease_seconds": 120})
    plan = site.asked(site.move(0))
    worker = stopped_worker(site, plan)
    try:
        assert len(site.ledger.intents(plan.plan_id, "b1")) == 1
        if happens is None:
            time.sleep(1.1)
        else:
            happens(site, plan)
    finally:
        os.kill(worker.pid, signal.SIGCONT)
    out, _ = worker.communicate(timeout=60)
    assert out == "b1.s01 refused\n"
    (outcome,) = site.ledger.outcomes(plan.plan_id, "b1")
    assert outcome.reason.startswith(f"nothing was sent: {reason}")
    assert site.untouched()


def test_a_worker_that_was_stopped_does_not_repeat_what_a_retry_finished(site: Worksite) -> None:
    """A retry does the step once a stopped worker's call can no longer leave, and the worker sends nothing."""
    site.policy = quick_policy(apply={"intent_valid_seconds": 2, "lease_seconds": 5})
    plan = site.approved(site.move(0))
    worker = stopped_worker(site, plan)
    try:
        (intent,) = site.ledger.intents(plan.plan_id, "b1")
        site.clock.advance(seconds=21)
        assert said(site.carry_out(plan)) == ["done"]
        first, second = site.ledger.intents(plan.plan_id, "b1")
        with site.context() as context:
            assert second.at > can_leave_until(intent.at, context)
    finally:
        os.kill(worker.pid, signal.SIGCONT)
    worker.communicate(timeout=60)
    assert worker.returncode != 0
    assert site.changes() == [f"unload {site.tc_bundles[0]}"]
    assert first.intent_id == intent.intent_id
    assert site.recorded(plan) == [("b1.s01", "done")]


def test_a_redirected_call_leaves_only_while_its_permission_stands() -> None:
    """A redirected call is not sent on if its permission has ended."""
    asked, reached = [], []

    class Broker(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            reached.append(self.path)
            self.send_response(307)
            self.send_header("Location", f"http://{self.headers['Host']}{self.path}?authoritative=true")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    def once() -> None:
        asked.append(1)
        if len(asked) > 1:
            raise Halted("somebody said stop")

    call = Call(method="PUT", path="/admin/v2/namespaces/a/b/0x00000000_0xffffffff/unload")
    with serving(Broker) as address, Writer(AdminSettings(urls=(f"http://{address}",))) as writer:
        with pytest.raises(Unreachable, match="redirected here, and not sent: somebody said stop"):
            writer.send(call, once)
        assert len(reached) == 1
        with pytest.raises(Halted):
            writer.send(call, once)
    assert len(reached) == 1


def test_a_worker_that_was_stopped_completes_nothing_when_it_wakes(site: Worksite) -> None:
    """A worker that is stopped after its call and before its lookup sends no lookup later; its step fails."""
    site.policy = quick_policy(apply={"intent_valid_seconds": 1})
    worker = stopped_worker(site, site.approved(site.move(0)), "stop at lookup")
    try:
        time.sleep(site.policy.apply.proof_timeout_seconds + site.policy.apply.intent_valid_seconds + 0.2)
    finally:
        os.kill(worker.pid, signal.SIGCONT)
    out, _ = worker.communicate(timeout=60)
    assert out == "b1.s01 failed\n"
    assert (len(site.changes()), site.lookups()) == (1, [])


def test_a_call_that_is_redirected_without_an_address_may_have_been_done(site: Worksite) -> None:
    """A step is unknown and the batch stops if a broker answers the call with 307 that names no address."""
    site.simulator.faults.add(Fault(Answer(307, "elsewhere"), path="/unload", times=None))
    outcomes = site.carry_out(site.approved(site.move(0), site.move(1)))
    assert said(outcomes) == ["unknown", "refused"]
    assert "may still take effect (the call: " in outcomes[0].reason


def test_an_error_that_nobody_thought_of_after_a_call_is_an_outcome(site: Worksite) -> None:
    """An unexpected error after a call makes the step unknown, and the batch stops."""

    def broken(_: object) -> None:
        raise OverflowError("int too big to convert")

    plan = site.approved(site.move(0), site.move(1))
    outcomes = site.carry_out(plan, after=broken)
    assert said(outcomes) == ["unknown", "refused"]
    assert "a call may have been made, and then: OverflowError: int too big" in outcomes[0].reason
    with pytest.raises(Refused):
        site.carry_out(plan, "another/run/0")
    assert site.recorded(plan)[0] == ("b1.s01", "unknown")
    assert outcomes[0].run == RUN
