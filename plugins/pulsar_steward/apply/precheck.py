"""Last check before a change, for dry and real runs alike: the guards, then the values that it will replace."""

from __future__ import annotations

from contextlib import suppress
from time import sleep
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pulsar_steward.apply.context import Result
from pulsar_steward.apply.live_cluster import LiveCluster
from pulsar_steward.changes import kind_of
from pulsar_steward.changes.kind import Before, Drifted
from pulsar_steward.errors import AdminError, ConfigurationError, InvalidName, Refused
from pulsar_steward.guards.evaluate import objection_to
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.outside_text import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pulsar_steward.apply.context import ReadContext
    from pulsar_steward.apply.live_reader import LiveReader
    from pulsar_steward.changes.kind import ChangeKind
    from pulsar_steward.facts.protocol import ClusterFacts
    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.model.step import Step
    from pulsar_steward.policy.schema import Policy


Looked = TypeVar("Looked")


def look_before(reader: LiveReader, step: Step, facts: ClusterFacts, policy: Policy) -> Before | Result:
    """The live values that a step replaces, or its result if it must not be done.

    Args:
        reader: Reads the cluster.
        step: The step.
        facts: Facts right before it.
        policy: Thresholds and limits.

    Raises:
        LedgerError: If the ledger cannot be read.
    """

    def looked() -> Before | Result:
        if veto := _veto(step, facts, policy):
            return veto
        kind = kind_of(step.change)
        before: Before = kind.record(reader)
        _require_callable(kind, before)
        return before

    return _or_reason(looked)


def look_ahead(step: Step, facts: ClusterFacts, policy: Policy) -> Result | None:
    """The result of a step that waits for others, if it is known already that it must not be done.

    Raises:
        LedgerError: If the ledger cannot be read.
    """
    return _or_reason(lambda: _veto(step, facts, policy, ahead=True))


def _veto(step: Step, facts: ClusterFacts, policy: Policy, *, ahead: bool = False) -> Result | None:
    objection = objection_to(step, facts, policy, ahead=ahead)
    return Result(outcome=Outcome(objection[0].value), reason=objection[1]) if objection else None


def _or_reason(look: Callable[[], Looked]) -> Looked | Result:
    """What a look gives, or the result of a step that could not be looked at."""
    try:
        return look()
    except Drifted as drift:
        return Result(outcome=Outcome.DRIFTED, reason=str(drift))
    except Refused as refusal:
        return Result(outcome=Outcome.REFUSED, reason=str(refusal))
    except InvalidName as error:
        return Result(outcome=Outcome.REFUSED, reason=f"it cannot be called: {error}")
    except (AdminError, ConfigurationError) as error:
        return Result(outcome=Outcome.REFUSED, reason=f"the cluster could not be looked at first: {error}")


def _require_callable(kind: ChangeKind[Any, Any], before: Before) -> None:
    """Checks that names from outside make valid paths, before any call is made.

    Raises:
        InvalidName: If a name does not.
    """
    kind.call()
    kind.completion(before)


def rehearse(context: ReadContext, plan: Plan, batch: Batch) -> str:
    """The calls that a batch would make now, as text.

    Args:
        context: The cluster, its ledger and its policy.
        plan: The plan.
        batch: Its batch.
    """
    cluster = LiveCluster(context.reader, context.policy, context.ledger, plan, batch.batch_id)
    lines, waited = [f"{batch.batch_id}: {batch.title} ({plan.plan_id})"], False
    for number, step in enumerate(batch.steps, start=1):
        cluster.begin()
        with suppress(AdminError):  # the guards report a broker that cannot be read
            waited = waited or cluster.wait_until_told(step, context.clock, sleep)
        facts = cluster.before(step, context.clock(), number)
        lines += [f"  {step.step_id}: {step.effect}", *(f"    {line}" for line in _lines(context, step, facts))]
    return "\n".join(map(shown, lines))


def _lines(context: ReadContext, step: Step, facts: ClusterFacts) -> Iterator[str]:
    kind = kind_of(step.change)
    if step.after:
        before: Before | Result | None = look_ahead(step, facts, context.policy)
    else:
        before = look_before(context.reader, step, facts, context.policy)
    if isinstance(before, Result):
        yield f"would be {before.outcome}: {before.reason}"
        return
    if before is None:
        yield f"waits for {', '.join(step.after)}: most guards of its own bundle can check it only after that"
    else:
        values = msgspec.to_builtins(before)
        yield f"before: {', '.join(f'{name}={value}' for name, value in values.items())}"
    yield str(kind.call())
    if before is not None and (completion := kind.completion(before)) is not None:
        yield str(completion)
    yield f"undo: {step.undo_note}"
