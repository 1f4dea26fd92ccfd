"""Past changes decide as well: circles, limits, windows, old snapshots, batches that were not proved; and bookies."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import msgspec
import pytest

from lab.simulator import Answer, Fault
from pulsar_steward.apply.halting import StopSwitch
from tests.apply.refusals import assert_stopped
from tests.apply.worksite import quick_policy, said
from tests.builders import a_batch, a_plan, a_step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.apply.worksite import Worksite


def test_a_bundle_that_went_in_a_circle_stops_its_namespace(site: Worksite) -> None:
    site.policy = quick_policy(tc_skew={"cooldown_minutes": 0})
    there = site.move(0)
    back = msgspec.structs.replace(there, source=there.target, target=there.source)
    for change in (there, back):
        plan = site.approved(change)
        assert said(site.carry_out(plan)) == ["done"]
        site.proved(plan)
    (refused,) = site.carry_out(site.approved(site.move(1)))
    assert refused.outcome == "refused"
    assert f"circles: {there.bundle} of pulsar/system was moved away and back within 720 minutes" in refused.reason
    assert said(site.carry_out(site.approved(a_step(site.move(1), undoes="plan/b1.s01")))) == ["done"]


@pytest.mark.parametrize("limit", ["run", "hour"])
def test_no_more_changes_than_the_policy_permits(site: Worksite, limit: str) -> None:
    site.policy = quick_policy(guards={f"most_changes_per_{limit}": 1})
    if limit == "run":
        outcomes = site.carry_out(site.approved(site.move(0), site.move(1)))
        assert said(outcomes) == ["refused", "refused"]
    else:
        first = site.approved(site.move(0))
        assert said(site.carry_out(first)) == ["done"]
        site.proved(first)
        site.simulator.requests.clear()
        outcomes = site.carry_out(site.approved(site.move(1)))
        assert said(outcomes) == ["refused"]
    assert site.untouched()
    assert f"policy key guards.most_changes_per_{limit}" in outcomes[-1].reason


def test_outside_its_windows_a_cluster_is_left_alone(site: Worksite) -> None:
    tomorrow = site.clock() + timedelta(hours=20)
    opens = f"{tomorrow.minute} {tomorrow.hour} * * *"
    site.policy = quick_policy(guards={"windows": [{"opens": opens, "minutes": 10}]})
    assert_stopped(site, site.approved(site.move(0)), "refused", f"the next one opens at {tomorrow:%Y-%m-%d %H:%M} UTC")


def test_a_plan_that_rests_on_an_old_snapshot_has_drifted(site: Worksite) -> None:
    plan = site.record(a_plan(a_batch(a_step(site.move(0))), taken_at=site.clock() - timedelta(minutes=1501)))
    assert_stopped(site, site.approve(plan), "drifted", "fresh_snapshot: the cluster was seen at")


@contextmanager
def bookie(status: int) -> Iterator[str]:
    """Answers one series of a bookie's metrics; yields its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"# TYPE bookie_SERVER_STATUS gauge\nbookie_SERVER_STATUS {status}\n".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    serving = Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(1, "done"), (0, "refused"), (-1, "refused")],
    ids=["writable", "read-only", "not registered"],
)
def test_a_read_only_bookie_stops_everything(site: Worksite, status: int, outcome: str) -> None:
    with bookie(status) as url:
        site.policy = quick_policy(collect={"metrics_urls": (f"bookie={url}",)})
        (came_to,) = site.carry_out(site.approved(site.move(0)))
    assert came_to.outcome == outcome
    assert outcome == "done" or f"whole_cluster: read-only bookies: {url}" in came_to.reason


def test_a_bookie_that_does_not_answer_is_no_healthy_one(site: Worksite) -> None:
    site.policy = quick_policy(collect={"metrics_urls": ("bookie=http://127.0.0.1:1/metrics",)})
    assert_stopped(site, site.approved(site.move(0)), "refused")


def test_an_unproved_batch_stops_the_next_one(site: Worksite) -> None:
    site.policy = quick_policy(apply={"proof_wait_seconds": 0})
    first, second = site.approved(site.move(0)), site.approved(site.move(1))
    site.carry_out(first)
    (refused,) = site.carry_out(second)
    assert refused.outcome == "refused"
    assert f"batch b1 of plan {first.plan_id} changed the cluster, and its proof is not there yet" in refused.reason


def test_a_proof_that_comes_soon_is_waited_for(site: Worksite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch waits for the proof of the earlier batch, and is carried out once that is recorded."""
    first, second = site.approved(site.move(0)), site.approved(site.move(1))
    site.carry_out(first)
    rest, rests = StopSwitch.rest, list[float]()

    def proof_comes(switch: StopSwitch, seconds: float) -> None:
        rests.append(seconds)
        if len(rests) == 1:
            assert len(site.changes()) == 1
            site.proved(first)
        rest(switch, seconds)

    monkeypatch.setattr(StopSwitch, "rest", proof_comes)
    assert said(site.carry_out(second)) == ["done"]
    assert rests


def test_a_batch_that_failed_stops_plans_from_before_it(site: Worksite) -> None:
    first, second = site.approved(site.move(0)), site.approved(site.move(1))
    fault = site.simulator.faults.add(Fault(Answer(200), path="/unload", times=None))
    assert said(site.carry_out(first)) == ["failed"]
    site.simulator.faults.remove(fault)
    with pytest.raises(AssertionError):
        site.proved(first)
    (refused,) = site.carry_out(second)
    assert "was not proved: b1.s01 failed" in refused.reason
    site.clock.advance(seconds=2)
    assert said(site.carry_out(site.approved(site.move(1)))) == ["done"]


def test_a_batch_that_changed_nothing_needs_no_proof(site: Worksite) -> None:
    assert said(site.carry_out(site.approved(site.move("0x00000000_0x00000001")))) == ["drifted"]
    assert said(site.carry_out(site.approved(site.move(0)))) == ["done"]
