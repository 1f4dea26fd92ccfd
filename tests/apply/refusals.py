"""Assertions that a batch, or a step, is stopped for the right reason, and that nothing was called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.errors import Refused
from tests.apply.worksite import RUN, a_worksite

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lab.simulator import ClusterSpec
    from pulsar_steward.ledger.rows import StepOutcome
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.step import Change, Step
    from tests.apply.worksite import Worksite


def assert_refused(
    site: Worksite,
    plan: Plan,
    words: str | None = None,
    *,
    run: str = RUN,
    error: type[Exception] | tuple[type[Exception], ...] = Refused,
) -> None:
    """Asserts that the gate opens nothing for a batch: an error, which matches these words, and no call."""
    with pytest.raises(error, match=words):
        site.carry_out(plan, run)
    assert site.untouched()


def assert_stopped(site: Worksite, plan: Plan, outcome: str, *words: str, run: str = RUN) -> None:
    """Asserts that a batch's only step comes to this outcome, with these words in its reason, and no call."""
    (row,) = site.carry_out(plan, run)
    assert (row.outcome.value, site.untouched()) == (outcome, True), row.reason
    for each in words:
        assert each in row.reason


def outcome_on(
    folder: Path, spec: ClusterSpec, step: Change | Step | Callable[[Worksite], Change | Step], **fields: Any
) -> StepOutcome:
    """Outcome of an approved step on a cluster of its own, where nothing is called for a step that is refused.

    Args:
        folder: Of the ledger.
        spec: The cluster.
        step: The step, or what makes it once the brokers have names.
        **fields: Fields of `Worksite`.
    """
    with a_worksite(folder, spec, **fields) as site:
        (row,) = site.carry_out(site.approved(step(site) if callable(step) else step))
        assert site.untouched() is (row.outcome.value != "done"), row.reason
    return row


def assert_done_unless(row: StepOutcome, words: str | None) -> None:
    """Asserts that a step was refused with these words, or, where there are none, that it was done."""
    assert row.outcome.value == ("done" if words is None else "refused"), row.reason
    assert words is None or words in row.reason, row.reason
