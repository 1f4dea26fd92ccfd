"""A dry run: the guards on the live cluster and the exact calls, with nothing sent that changes anything."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pulsar_steward.apply.changes import kind_of
from pulsar_steward.apply.perform import Result
from pulsar_steward.apply.precheck import look_before
from pulsar_steward.model.step import ChangeSetting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from pulsar_steward.apply.look import Look
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.model.step import Step
    from pulsar_steward.policy.schema import Policy


def rehearse(
    look: Look, ledger: LedgerReader, plan: Plan, batch: Batch, policy: Policy, clock: Callable[[], datetime]
) -> str:
    """What carrying out a batch would call now, as text.

    Args:
        look: Reads the cluster.
        ledger: Knows which bundles were moved lately.
        plan: The plan.
        batch: The batch of it.
        policy: Thresholds and limits.
        clock: The present, UTC.
    """
    now = clock()
    moved = ledger.moves_since(plan.cluster, now - timedelta(minutes=policy.tc_skew.cooldown_minutes))
    lines = [f"{batch.batch_id}: {batch.title} ({plan.plan_id})"]
    for step in batch.steps:
        change = step.change
        moved_at = None if isinstance(change, ChangeSetting) else moved.get(f"{change.namespace}/{change.bundle}")
        lines += [
            f"  {step.step_id}: {step.effect}",
            *(f"    {line}" for line in _lines(look, step, policy, now, moved_at)),
        ]
    return "\n".join(lines)


def _lines(look: Look, step: Step, policy: Policy, now: datetime, moved_at: datetime | None) -> Iterator[str]:
    kind = kind_of(step.change)
    completion = None
    if step.after:
        yield f"after {', '.join(step.after)}: its guards can look only then"
    else:
        before = look_before(look, step, policy, now, moved_at)
        if isinstance(before, Result):
            yield f"would be {before.outcome}: {before.reason}"
            return
        completion = kind.completion(before)
        yield f"before: {', '.join(f'{name}={value}' for name, value in before.items())}"
    yield str(kind.call())
    if completion is not None:
        yield str(completion)
    yield f"undo: {step.undo_note}"
