"""A dry run: the guards on the live cluster and the exact calls, with nothing sent that changes anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_steward.apply.changes import kind_of
from pulsar_steward.apply.live_facts import LiveFacts
from pulsar_steward.apply.perform import Result
from pulsar_steward.apply.precheck import look_before
from pulsar_steward.apply.whole_look import WholeLook
from pulsar_steward.outside_text import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.model.step import Step
    from pulsar_steward.policy.schema import Policy


def rehearse(
    look: LiveReader, ledger: LedgerReader, plan: Plan, batch: Batch, policy: Policy, clock: Callable[[], datetime]
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
    now, whole = clock(), WholeLook(look, policy)
    lines = [f"{batch.batch_id}: {batch.title} ({plan.plan_id})"]
    for number, step in enumerate(batch.steps, start=1):
        whole.begin()
        facts = LiveFacts(whole, ledger, plan, batch.batch_id, step, now, number)
        lines += [
            f"  {step.step_id}: {step.effect}",
            *(f"    {line}" for line in _lines(look, step, facts, policy)),
        ]
    return "\n".join(map(shown, lines))


def _lines(look: LiveReader, step: Step, facts: ClusterFacts, policy: Policy) -> Iterator[str]:
    kind = kind_of(step.change)
    completion = None
    if step.after:
        yield f"after {', '.join(step.after)}: its guards can look only then"
    else:
        before = look_before(look, step, facts, policy)
        if isinstance(before, Result):
            yield f"would be {before.outcome}: {before.reason}"
            return
        completion = kind.completion(before)
        yield f"before: {', '.join(f'{name}={value}' for name, value in before.items())}"
    yield str(kind.call())
    if completion is not None:
        yield str(completion)
    yield f"undo: {step.undo_note}"
