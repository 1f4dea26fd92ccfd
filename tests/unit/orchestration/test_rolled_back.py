"""Changes taken back lately are left out of new plans, for as long as a rejection holds."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.changes import kind_of
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.plan import ROLLBACK
from pulsar_steward.model.setting import SettingName, TimeToLive
from pulsar_steward.model.step import ChangeSetting
from pulsar_steward.orchestration.rolling_back import RolledBack, rolled_back_lately, without_rolled_back
from pulsar_steward.policy.approval import ApprovalPolicy
from tests.builders import NAMED, NOW, a_batch, a_move, a_plan, a_step, an_outcome, broker
from tests.ledgers import ledger_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Engine

    from tests.golden import Golden

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
    """A batch that only changes what was taken back is left out, also with another value, and a note says why."""
    ttl = ChangeSetting(namespace="shop/orders", name=SettingName.TTL, before=None, after=TimeToLive(seconds=61))
    kept = a_batch(OTHER_MOVE, batch_id="b3", title="kept")
    plan = a_plan(a_batch(MOVE, title="moves"), a_batch(a_step(ttl), batch_id="b2", title="settles"), kept)
    left = without_rolled_back(plan, LATELY)
    assert left.batches == (kept,)
    assert [note.partition(":")[0] for note in left.notes] == ["moves", "settles"]
    golden("\n".join(left.notes))


@pytest.mark.parametrize("lately", [LATELY, ()], ids=["with something else", "nothing was taken back"])
def test_what_also_changes_something_else_is_proposed(lately: tuple[RolledBack, ...]) -> None:
    """A batch that also changes something else stays, and the plan is the same to the byte."""
    plan = a_plan(a_batch(MOVE, OTHER_MOVE))
    assert without_rolled_back(plan, lately).encoded() == plan.encoded()


def test_a_subject_is_the_bundle_or_the_setting_of_its_holder() -> None:
    """A change's subject is its bundle, or its setting together with the topic that holds it."""
    topic = "persistent://shop/orders/t"
    change = ChangeSetting(namespace="shop/orders", topic=topic, name=SettingName.TTL, before=None, after=None)
    assert kind_of(change).subject == (topic, "time to live")
    assert kind_of(a_move(bundle=HALVES[0])).subject == ("pulsar/system", HALVES[0])
