"""A dry run prints what would be called, and calls nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from lab.simulator import Answer, Fault
from pulsar_steward.apply.precheck import rehearse
from tests.apply.worksite import said
from tests.builders import a_step

if TYPE_CHECKING:
    from pulsar_steward.model.plan import Plan
    from tests.apply.worksite import Worksite

SYSTEM = "/admin/v2/namespaces/pulsar/system"


def rehearsed(site: Worksite, plan: Plan) -> list[str]:
    """The lines of a dry run of the plan's only batch, without their margins."""
    with site.context() as context:
        text = rehearse(context, plan, plan.batch("b1"))
    return [line.strip() for line in text.splitlines()]


def test_a_dry_run_prints_exactly_what_is_called_later(site: Worksite) -> None:
    plan = site.approved(site.move(0), site.move(1))
    lines = rehearsed(site, plan)
    assert site.untouched()
    assert said(site.carry_out(plan)) == ["done", "done"]
    records = [record for record in site.simulator.requests.all() if record.writes or "/lookup/" in record.path]
    first_hops = [record for record in records if "authoritative" not in record.query]
    called = [f"{row.method} {row.path}{'?' if row.query else ''}{unquote(row.query)}" for row in first_hops]
    printed = [line for line in lines if line.startswith(("PUT ", "GET "))]
    assert list(dict.fromkeys(called)) == printed


def test_a_dry_run_says_what_was_before_and_how_to_go_back(site: Worksite) -> None:
    plan = site.plan(a_step(site.move(0), undo_note="move it back"))
    lines = rehearsed(site, plan)
    assert lines[0] == f"b1: made up ({plan.plan_id})"
    assert any(line.startswith(f"before: owner={site.brokers[0]}, topic=persistent://") for line in lines)
    assert lines[-1] == "undo: move it back"


def test_a_dry_run_of_a_split_shows_the_moves_that_wait_for_it(site: Worksite) -> None:
    lines = rehearsed(site, site.split_and_moves())
    halves = site.split(0).halves
    assert [line for line in lines if line.startswith("PUT")] == [
        f"PUT {SYSTEM}/{site.tc_bundles[0]}/split?unload=false&splitAlgorithmName=topic_count_equally_divide",
        f"PUT {SYSTEM}/{halves[0]}/unload?destinationBroker={site.brokers[1]}",
        f"PUT {SYSTEM}/{halves[1]}/unload?destinationBroker={site.brokers[2]}",
    ]
    assert lines.count("waits for b1.s01: most guards of its own bundle can check it only after that") == 2
    assert lines.count("undo: cannot be undone") == 3
    assert site.untouched()


def test_a_dry_run_tells_drift(site: Worksite) -> None:
    """A dry run says that a step would drift, and does not print its call."""
    plan = site.plan(site.move(0))
    site.simulator.pile_up_tcs(site.brokers[2])
    lines = rehearsed(site, plan)
    assert lines[-1].startswith("would be drifted: owner: ")
    assert not [line for line in lines if line.startswith("PUT")]
    assert site.untouched()


def test_a_dry_run_knows_what_was_moved_lately(site: Worksite) -> None:
    site.carry_out(site.approved(site.move(0)))
    site.simulator.pile_up_tcs(site.brokers[0])
    assert rehearsed(site, site.plan(site.move(0, 2)))[-1].startswith("would be refused: cooldown: ")


def test_a_dry_run_of_an_unreadable_cluster_says_so(site: Worksite) -> None:
    plan = site.plan(site.move(0))
    site.simulator.faults.add(Fault(Answer(503, "away"), times=None))
    assert "would be refused: the cluster" in rehearsed(site, plan)[-1]
