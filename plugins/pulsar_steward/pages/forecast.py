"""Remaining time of a batch under way, by its steps so far and by the policy's pace."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulsar_steward.ledger.rows import Intent, StepOutcome
    from pulsar_steward.model.step import Step
    from pulsar_steward.policy.recorded import Pace


class Remaining(msgspec.Struct, frozen=True, kw_only=True):
    """Remaining steps and time of a batch.

    Attributes:
        steps: Approved steps that have not ended.
        ends_at: Time at which they will have ended, if they take as long as the earlier ones.
        at_least: True: no step has ended yet, so that only the pace is known.
    """

    steps: int
    ends_at: datetime
    at_least: bool


def remaining(
    left: Sequence[Step], intents: Sequence[Intent], last: Mapping[str, StepOutcome], pace: Pace, now: datetime
) -> Remaining:
    """Forecast for a batch under way.

    Args:
        left: Steps that have not ended.
        intents: Calls so far, oldest first.
        last: Last outcome of each step, by its id.
        pace: The limits.
        now: Current time.
    """
    by_pace = now + pace.least([step.touched.clients for step in left])
    # If the approval was requested again, earlier calls do not count.
    began = min((call.at for call in intents if call.answer_id == intents[-1].answer_id), default=now)
    ended = [outcome.at for outcome in last.values() if outcome.at >= began]
    if not ended or not intents:
        return Remaining(steps=len(left), ends_at=by_pace, at_least=True)
    each = (max(ended) - began) / len(ended)
    return Remaining(steps=len(left), ends_at=max(max(ended) + each * len(left), by_pace), at_least=False)
