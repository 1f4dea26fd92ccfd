"""A step's level of health is read back from its recorded proof."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pulsar_steward.apply.health import Level, recorded_level
from pulsar_steward.ledger.rows import Outcome, StepOutcome


@pytest.mark.parametrize(
    ("proof", "level"),
    [
        ({}, None),
        ({"owner": "b:1"}, None),
        ({"owner": "b:1", "health": {"level": "worse", "before": {}, "after": {}}}, Level.WORSE),
        ({"health": {"level": "strained"}}, Level.STRAINED),
        ({"health": {"level": "unheard of"}}, None),
        ({"health": "fine"}, None),
    ],
)
def test_the_level_that_was_recorded(proof: dict[str, Any], level: Level | None) -> None:
    row = StepOutcome(
        plan_id="p",
        batch_id="b1",
        step_id="b1.s01",
        intent_id=1,
        run="r",
        at=datetime(2026, 1, 1, tzinfo=UTC),
        outcome=Outcome.DONE,
        reason="done",
        proof=proof,
    )
    assert recorded_level(row) is level
