"""Rollbacks: of which batch, and what was rolled back is not proposed again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.changes import kind_of
from pulsar_steward.errors import NotInLedger, OutdatedPlan, Refused
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.plan import ROLLBACK, Plan
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.orchestration import rolling_back
from pulsar_steward.orchestration.remediating import RemediateParams
from pulsar_steward.orchestration.remediating import choose as choose_remedy
from pulsar_steward.orchestration.rolling_back import (
    RollbackParams,
    RolledBack,
    rolled_back_lately,
    wanted_by,
    without_rolled_back,
)
from pulsar_steward.policy.approval import ApprovalPolicy
from tests.apply.worksite import Worksite, said
from tests.builders import CLUSTER, NAMED, NOW, a_batch, a_move, a_plan, a_step, an_outcome, broker
from tests.cases import cases
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Engine

    from tests.golden import Golden

LAST = RollbackParams(cluster=CLUSTER, plan_id=None, batch_id=None)
RUN = "pulsar_rollback/manual"


@cases(
    "params, plan_id, batch_id",
    ("the batch carried out last", {"cluster": "east"}, None, None),
    ("an empty name is none", {"cluster": "east", "plan_id": "", "batch_id": ""}, None, None),
    ("a named batch", {"cluster": "east", "plan_id": "p1", "batch_id": "b2"}, "p1", "b2"),
)
def test_what_a_way_back_is_about(params: dict[str, Any], plan_id: str | None, batch_id: str | None) -> None:
    """A rollback's parameters are a cluster, a plan and a batch, and an empty name counts as none."""
    assert wanted_by(params) == RollbackParams(cluster="east", plan_id=plan_id, batch_id=batch_id)


def moved(site: Worksite, bundle: int = 0) -> Plan:
    """A plan that was approved and carried out, and moved one bundle."""
    plan = site.approved(site.move(bundle))
    assert said(site.carry_out(plan)) == ["done"]
    site.simulator.requests.clear()
    return plan


def test_the_plan_of_the_way_back_is_recorded_and_its_batch_named(site: Worksite) -> None:
    """Choosing a rollback records its plan and changes no broker; the same choice again supersedes the first plan."""
    plan = moved(site)
    (first,) = rolling_back.choose(LAST, RUN)
    (second,) = rolling_back.choose(LAST, RUN)

    assert site.untouched()
    recorded = site.ledger.plan(first["plan_id"])
    assert [step.undoes for step in recorded.batches[0].steps] == [f"{plan.plan_id}/b1.s01"]
    assert (recorded.cluster, first["batch_id"]) == (CLUSTER, "b1")
    assert first["label"] == f"{CLUSTER} b1: {recorded.batches[0].title}"
    assert site.ledger.plan_row(first["plan_id"]).superseded_by == second["plan_id"]
    assert site.ledger.plan_row(plan.plan_id).superseded_by is None


def test_ways_back_of_different_batches_wait_side_by_side(site: Worksite) -> None:
    one, other = moved(site, 0), moved(site, 1)
    refs = [
        rolling_back.choose(RollbackParams(cluster=CLUSTER, plan_id=plan.plan_id, batch_id="b1"), RUN)[0]
        for plan in (one, other)
    ]
    assert [site.ledger.plan_row(ref["plan_id"]).superseded_by for ref in refs] == [None, None]


def test_remediation_does_not_take_a_way_back_for_the_newest_plan(site: Worksite) -> None:
    """Remediation takes the newest proposal, though a rollback was planned since, and says that it was carried out."""
    plan = moved(site)
    rolling_back.choose(LAST, RUN)
    with pytest.raises(Refused, match=f"nothing of plan {plan.plan_id} is to be asked: b1: it was carried out"):
        choose_remedy([RemediateParams(cluster=CLUSTER, plan_id=None)], "pulsar_remediate/manual")


def test_a_dry_run_of_a_way_back_is_kept_and_supersedes_nothing(site: Worksite) -> None:
    plan = site.approve(site.split_and_moves())
    site.carry_out(plan)
    site.simulator.requests.clear()
    (asked,) = rolling_back.choose(LAST, RUN)
    text = rolling_back.dry_run(LAST, RUN)

    half = site.split(0).halves[1]
    assert f"PUT /admin/v2/namespaces/pulsar/system/{half}/unload?destinationBroker={site.brokers[0]}" in text
    assert "b1.s01: the split of" in text
    assert site.untouched()
    newest = site.ledger.plans(CLUSTER, ways_back=True)[0]
    assert [each.text for each in site.ledger.dry_runs(newest.plan_id)] == [text]
    assert site.ledger.plan_row(asked["plan_id"]).superseded_by is None


def test_while_the_cluster_is_being_changed_nothing_is_taken_back(site: Worksite) -> None:
    """A rollback is refused while another run holds the cluster's lease, and the error names that run."""
    moved(site)
    site.writes.take_lease(NAMED, "pulsar_remediate/busy/0", 300, site.clock())
    with pytest.raises(Refused, match="pulsar_remediate/busy/0 is changing cluster east"):
        rolling_back.choose(LAST, RUN)


def test_what_was_never_carried_out_is_refused(site: Worksite) -> None:
    """A rollback is refused where no batch was carried out, or where the ledger lacks the plan."""
    with pytest.raises(Refused, match=r"carried out in cluster east; .*: nothing"):
        rolling_back.choose(LAST, RUN)
    with pytest.raises(NotInLedger, match="nowhere"):
        rolling_back.choose(RollbackParams(cluster=CLUSTER, plan_id="nowhere", batch_id=None), RUN)


def test_plans_of_another_version_keep_nobody_from_the_way_back(
    site: Worksite, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Plans that another version recorded, rollbacks too, are passed over; only one that is meant is refused."""
    old = moved(site, 0)
    (way_back,) = rolling_back.choose(LAST, RUN)
    site.approve(site.ledger.plan(way_back["plan_id"]), run=RUN)
    assert said(site.carry_out(site.ledger.plan(way_back["plan_id"]), RUN)) == ["done"]
    (waiting,) = rolling_back.choose(RollbackParams(cluster=CLUSTER, plan_id=way_back["plan_id"], batch_id=None), RUN)
    site.clock.advance(days=1)
    new = moved(site, 1)
    unread = {old.plan_id, way_back["plan_id"], waiting["plan_id"]}
    really_read = LedgerReader.plan

    def read(ledger: LedgerReader, plan_id: str) -> Plan:
        if plan_id in unread:
            raise OutdatedPlan(f"plan {plan_id} is of another version")
        return really_read(ledger, plan_id)

    monkeypatch.setattr(LedgerReader, "plan", read)

    (chosen,) = rolling_back.choose(LAST, RUN)

    (step,) = site.ledger.plan(chosen["plan_id"]).batches[0].steps
    assert step.undoes == f"{new.plan_id}/b1.s01"
    assert all(f"plan {plan_id} is of another version" in caplog.text for plan_id in unread)
    a_day_ago = site.clock() - timedelta(days=1)
    (lately,) = rolled_back_lately(site.ledger, NAMED, site.policy.approval, a_day_ago)
    assert (lately.plan_id, lately.subjects) == (way_back["plan_id"], frozenset())
    with pytest.raises(OutdatedPlan):
        rolling_back.choose(RollbackParams(cluster=CLUSTER, plan_id=old.plan_id, batch_id=None), RUN)


POLICY = ApprovalPolicy(ask_again_minutes=120)
HALVES = ("0x00000000_0x08000000", "0x08000000_0x10000000")
BACK = a_plan(
    a_batch(
        a_step(a_move(bundle=HALVES[0], source=broker(1), target=broker(0)), step_id="b1.s01", undoes="older/b1.s02"),
        a_step(a_move(bundle=HALVES[1], source=broker(1), target=broker(0)), step_id="b1.s02", undoes="older/b1.s01"),
        kind=ROLLBACK,
    ),
    snapshot_id="back",
)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """A ledger in which the first step of a way back is done, and the second refused."""
    engine = ledger_at(f"sqlite:///{tmp_path / 'ledger.db'}")
    write = LedgerWriter(engine)
    write.record_plan(BACK, NOW)
    for step_id, outcome in (("b1.s01", Outcome.DONE), ("b1.s02", Outcome.REFUSED)):
        write.record_outcome(an_outcome(BACK, step_id, outcome, run="pulsar_rollback/manual/0"))
    yield engine
    engine.dispose()


def test_what_is_done_of_a_way_back_rests_as_long_as_a_rejection(engine: Engine) -> None:
    """A bundle that was moved back rests as long as a rejection; one whose step was refused does not."""
    expected = RolledBack(
        plan_id=BACK.plan_id,
        subjects=frozenset({("pulsar/system", HALVES[0])}),
        rests_until=NOW + timedelta(minutes=120),
    )
    times = [NOW + timedelta(minutes=minutes) for minutes in (0, 119, 120)]
    found = [rolled_back_lately(LedgerReader(engine), NAMED, POLICY, now) for now in times]
    assert found == [(expected,), (expected,), ()]


LATELY = (
    RolledBack(
        plan_id="back",
        subjects=frozenset({("pulsar/system", HALVES[0]), ("shop/orders", "time to live")}),
        rests_until=NOW,
    ),
)
MOVE = a_step(a_move(bundle=HALVES[0], target=broker(2)))
OTHER_MOVE = a_step(a_move(bundle=HALVES[1]), step_id="b1.s02")


def test_a_batch_of_nothing_but_what_was_taken_back_is_left_out(golden: Golden) -> None:
    ttl = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=61))
    kept = a_batch(OTHER_MOVE, batch_id="b3", title="kept")
    plan = a_plan(a_batch(MOVE, title="moves"), a_batch(a_step(ttl), batch_id="b2", title="settles"), kept)
    left = without_rolled_back(plan, LATELY)
    assert left.batches == (kept,)
    assert [note.partition(":")[0] for note in left.notes] == ["moves", "settles"]
    golden("\n".join(left.notes))


@cases("lately", ("with something else", LATELY), ("nothing was taken back", ()))
def test_what_also_changes_something_else_is_proposed(lately: tuple[RolledBack, ...]) -> None:
    """A batch that also changes something else stays, and the plan is the same to the byte."""
    plan = a_plan(a_batch(MOVE, OTHER_MOVE))
    assert without_rolled_back(plan, lately).encoded() == plan.encoded()


def test_a_subject_is_the_bundle_or_the_setting_of_its_holder() -> None:
    topic = "persistent://shop/orders/t"
    change = ChangeSetting(namespace="shop/orders", topic=topic, name=SettingName.TTL, before=None, after=None)
    assert kind_of(change).subject == (topic, "time to live")
    assert kind_of(a_move(bundle=HALVES[0])).subject == ("pulsar/system", HALVES[0])
