"""Only what was approved, and closed by default: whatever is not exactly right keeps every call from the cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from sqlalchemy import delete, update

from pulsar_steward.errors import LedgerError, LedgerTampered, NotInLedger, Refused
from pulsar_steward.ledger import tables
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.model.plan import approval_digest
from tests.apply.worksite import RUN, said
from tests.builders import a_batch, a_plan, a_step

if TYPE_CHECKING:
    from sqlalchemy import Executable

    from tests.apply.worksite import Worksite

OTHER_RUN = "pulsar_remediate/manual/1"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({"decision": Decision.REJECTED}, "rejected: made up", id="rejected"),
        pytest.param({"decision": Decision.SNOOZED}, "snoozed: made up", id="snoozed"),
        pytest.param({"decision": Decision.NEVER}, "never: made up", id="never to be asked"),
        pytest.param({"decision": Decision.NO_ANSWER}, "no answer: made up", id="nobody answered"),
        pytest.param({"decision": Decision.MALFORMED}, "malformed: made up", id="malformed"),
        pytest.param({"answered_by": None}, "no person's name", id="without a name"),
        pytest.param({"answered_by": " "}, "no person's name", id="with a blank name"),
        pytest.param({"step_ids": ()}, "covers no step", id="every step unticked"),
        pytest.param({"digest": None}, "digest is not that", id="without a digest"),
        pytest.param({"digest": "0" * 64}, "digest is not that", id="with a made-up digest"),
        pytest.param({"step_ids": ("b1.s02",)}, "digest is not that", id="with the digest of other steps"),
        pytest.param({"expires_at": None}, "does not say until when", id="without an end"),
        pytest.param({"run": OTHER_RUN}, "holds no answer", id="of another run"),
        pytest.param({"batch_id": "b2"}, "holds no answer", id="of another batch"),
    ],
)
def test_an_answer_that_is_no_approval_opens_nothing(site: Worksite, fields: dict[str, Any], reason: str) -> None:
    """Each way in which an answer can fall short of an approval is refused with its reason, and nothing is called."""
    plan = site.plan(site.move(0), site.move(1))
    site.approve(plan, "b1.s01", **fields)
    with pytest.raises(Refused, match=reason):
        site.carry_out(plan)
    assert site.untouched()


def test_without_an_answer_nothing_is_called(site: Worksite) -> None:
    """A batch without an answer is refused, and nothing is called."""
    plan = site.plan(site.move(0))
    with pytest.raises(Refused, match="holds no answer"):
        site.carry_out(plan)
    assert site.untouched()


def test_an_approval_of_another_plan_opens_nothing(site: Worksite) -> None:
    """An approval with the digest of another plan is refused, even if both plans have the same steps."""
    plan = site.plan(site.move(0))
    other = msgspec.structs.replace(plan, notes=("seen an hour later",))
    site.approve(plan, digest=approval_digest(other, "b1", ["b1.s01"]))
    with pytest.raises(Refused, match="digest is not that"):
        site.carry_out(plan)
    assert site.untouched()


def test_an_approval_that_names_an_unknown_step_opens_nothing(site: Worksite) -> None:
    """An approval that names a step that is not in the plan is an error, and nothing is called."""
    plan = site.plan(site.move(0))
    site.approve(plan, step_ids=("b1.s01", "b1.s99"))
    with pytest.raises(NotInLedger, match=r"b1\.s99"):
        site.carry_out(plan)
    assert site.untouched()


def test_an_expired_approval_opens_nothing(site: Worksite) -> None:
    """A batch is refused, and nothing is called, once its approval has expired."""
    plan = site.approved(site.move(0), site.move(1))
    site.clock.advance(minutes=61)
    with pytest.raises(Refused, match="has expired"):
        site.carry_out(plan)
    assert site.untouched()
    assert site.recorded(plan) == [("b1.s01", "refused"), ("b1.s02", "refused")]


def test_a_superseded_plan_opens_nothing(site: Worksite) -> None:
    """An approved batch of a superseded plan is refused, and the reason names the newer plan."""
    plan = site.approved(site.move(0))
    newer = a_plan(a_batch(a_step(site.move(1))))
    site.writes.record_plan(newer, site.clock(), supersede=[plan.plan_id])
    with pytest.raises(Refused, match=newer.plan_id):
        site.carry_out(plan)
    assert site.untouched()


def test_an_approval_that_another_run_uses_opens_nothing(site: Worksite) -> None:
    """A batch is refused if another run uses its approval already."""
    plan = site.approved(site.move(0))
    site.writes.use_answer(1, OTHER_RUN, site.clock())
    with pytest.raises(Refused, match=f"used already, by run {OTHER_RUN}"):
        site.carry_out(plan)
    assert site.untouched()


def test_the_last_answer_counts(site: Worksite) -> None:
    """A batch is refused if its last answer is a rejection, even if an earlier one was an approval."""
    plan = site.approved(site.move(0))
    site.approve(plan, decision=Decision.REJECTED)
    with pytest.raises(Refused, match="rejected"):
        site.carry_out(plan)
    assert site.untouched()


def test_a_later_answer_stops_a_batch_on_its_way(site: Worksite) -> None:
    """A rejection during the first step stops the batch before the second step."""
    plan = site.approved(site.move(0), site.move(1))

    def withdraw(_: object) -> None:
        if len(site.ledger.answers(plan.plan_id, "b1")) == 1:
            site.approve(plan, decision=Decision.REJECTED)

    outcomes = site.carry_out(plan, after=withdraw)
    assert said(outcomes) == ["done", "refused"]
    assert "later answer" in outcomes[1].reason
    assert site.changes() == [f"unload {site.tc_bundles[0]}"]


def test_an_approval_that_expires_on_the_way_stops_the_batch(site: Worksite) -> None:
    """An approval that expires during the first step stops the batch before the second step."""
    plan = site.approved(site.move(0), site.move(1))

    def time_flies(_: object) -> None:
        site.clock.ahead = timedelta(minutes=61)

    outcomes = site.carry_out(plan, after=time_flies)
    assert said(outcomes) == ["done", "refused"]
    assert "expired" in outcomes[1].reason
    assert site.changes() == [f"unload {site.tc_bundles[0]}"]


@pytest.mark.parametrize("hidden", [False, True], ids=["document only", "document and digest"])
def test_a_plan_that_was_changed_in_the_ledger_opens_nothing(site: Worksite, *, hidden: bool) -> None:
    """A recorded plan that was edited in the ledger is reported as tampered with, even if its digest was adapted."""
    plan = site.approved(site.move(0))
    forged = msgspec.structs.replace(plan, batches=(a_batch(a_step(site.move(0, target=2))),))
    values = {"document": forged.encoded().decode(), **({"digest": forged.digest} if hidden else {})}
    with site.engine.begin() as connection:
        connection.execute(update(tables.PLANS).values(values))
    with pytest.raises(LedgerError, match=r"the ledger was tampered with: row .* of plans"):
        site.carry_out(plan)
    assert site.untouched()


def test_steps_that_were_added_to_a_recorded_approval_open_nothing(site: Worksite) -> None:
    """An approval to which a step was added in the ledger is reported as tampered with, and nothing is called."""
    plan = site.approve(site.plan(site.move(0), site.move(1)), "b1.s01")
    with site.engine.begin() as connection:
        connection.execute(update(tables.ANSWERS).values(step_ids='["b1.s01","b1.s02"]'))
    with pytest.raises(LedgerTampered, match=r"row \[1\] of answers \(link \d+\) was changed after it was written"):
        site.carry_out(plan)
    assert site.untouched()


def test_an_approval_with_another_digest_opens_nothing(site: Worksite) -> None:
    """An approval is refused if its digest covers fewer steps than it names."""
    plan = site.plan(site.move(0), site.move(1))
    site.approve(plan, "b1.s01", "b1.s02", digest=approval_digest(plan, "b1", ["b1.s01"]))
    with pytest.raises(Refused, match="digest is not that"):
        site.carry_out(plan)
    assert site.untouched()


@pytest.mark.parametrize(
    "forgery",
    [
        delete(tables.ANSWER_USES),
        update(tables.ANSWERS).values(expires_at=datetime(2999, 1, 1, tzinfo=UTC)),
        update(tables.ANSWERS).values(answered_by="mallory"),
        delete(tables.CHAIN).where(tables.CHAIN.c.sequence == 1),
        update(tables.HEAD).values(hash="0" * 64),
    ],
    ids=["use removed", "expiry put off", "another person", "link removed", "head changed"],
)
def test_a_ledger_that_is_changed_between_two_steps_stops_the_batch(site: Worksite, forgery: Executable) -> None:
    """Tampering with the ledger between two steps is found before the next call, and stops the batch."""
    plan = site.approved(site.move(0), site.move(1))

    def forge(_: object) -> None:
        with site.engine.begin() as connection:
            connection.execute(forgery)

    with pytest.raises(LedgerTampered):
        site.carry_out(plan, after=forge)
    assert site.changes() == [f"unload {site.tc_bundles[0]}"]
    with pytest.raises(LedgerTampered):
        site.carry_out(plan)
    assert site.changes() == [f"unload {site.tc_bundles[0]}"]


def test_a_ledger_that_cannot_be_read_opens_nothing(site: Worksite) -> None:
    """A batch makes no call if the answers in the ledger cannot be read."""
    plan = site.approved(site.move(0))
    with site.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE answers RENAME TO elsewhere")
    with pytest.raises(LedgerError):
        site.carry_out(plan)
    assert site.untouched()


def test_a_ledger_that_takes_no_intent_lets_nothing_be_called(site: Worksite) -> None:
    """A step is not called if its intent cannot be written to the ledger."""
    plan = site.approved(site.move(0))
    with site.engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER full BEFORE INSERT ON intents BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        )
    with pytest.raises(LedgerError, match="the disk is full"):
        site.carry_out(plan)
    assert site.untouched()


def test_another_approval_of_a_plan_that_was_tried_opens_nothing(site: Worksite) -> None:
    """A new run with a new approval of a plan that was tried is refused, and the refusal is recorded."""
    plan = site.approved(site.move(0), site.move(1))
    site.carry_out(plan)
    site.simulator.requests.clear()
    site.approve(plan, run=OTHER_RUN)
    with pytest.raises(Refused, match="tried before"):
        site.carry_out(plan, OTHER_RUN)
    assert site.untouched()
    rows = site.ledger.outcomes(plan.plan_id, "b1")
    assert [(row.step_id, row.outcome) for row in rows if row.run == OTHER_RUN] == [
        ("b1.s01", "refused"),
        ("b1.s02", "refused"),
    ]
    assert site.user_of(1) == RUN
