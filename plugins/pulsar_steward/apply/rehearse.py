"""A dry run: the guards on the live cluster and the exact calls, with nothing sent that changes anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.apply.changes import kind_of
from pulsar_steward.apply.past import past_of
from pulsar_steward.apply.perform import Result
from pulsar_steward.apply.precheck import look_before
from pulsar_steward.outside_text import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from pulsar_steward.apply.look import Look
    from pulsar_steward.apply.past import Past
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
        ledger: Knows what was done before.
        plan: The plan.
        batch: The batch of it.
        policy: Thresholds and limits.
        clock: The present, UTC.
    """
    now = clock()
    lines = [f"{batch.batch_id}: {batch.title} ({plan.plan_id})"]
    for number, step in enumerate(batch.steps, start=1):
        past = past_of(ledger, plan, batch.batch_id, step, policy, now, number)
        lines += [
            f"  {step.step_id}: {step.effect}",
            *(f"    {line}" for line in _lines(look, step, policy, past)),
        ]
    return "\n".join(map(shown, lines))


def _lines(look: Look, step: Step, policy: Policy, past: Past) -> Iterator[str]:
    kind = kind_of(step.change)
    completion = None
    if step.after:
        yield f"after {', '.join(step.after)}: its guards can look only then"
    else:
        before = look_before(look, step, policy, past)
        if isinstance(before, Result):
            yield f"would be {before.outcome}: {before.reason}"
            return
        completion = kind.completion(before)
        yield f"before: {', '.join(f'{name}={value}' for name, value in before.items())}"
    yield str(kind.call())
    if completion is not None:
        yield str(completion)
    yield f"undo: {step.undo_note}"
