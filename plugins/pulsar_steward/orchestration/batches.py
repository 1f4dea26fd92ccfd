"""Processing of one batch after its approval request, for all DAGs: apply, verify, report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import msgspec

from pulsar_steward.apply.execute import carry_out
from pulsar_steward.apply.pace import opening_waited_for
from pulsar_steward.apply.verify import verify
from pulsar_steward.changes.headline import headline
from pulsar_steward.decoding import convert
from pulsar_steward.errors import ConfigurationError, OutdatedPlan, Refused
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.orchestration import connections
from pulsar_steward.orchestration.context import open_context_of_plan
from pulsar_steward.outside_text import shown
from pulsar_steward.report.outcome import story, troubles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.ledger.batch_record import BatchRun
    from pulsar_steward.ledger.rows import Proof, StepOutcome
    from pulsar_steward.model.plan import Batch, Plan


class BatchRef(msgspec.Struct, frozen=True, kw_only=True):
    """Reference to one batch, passed from task to task: names only, everything else is read from the ledger.

    A person who can change the reference can name another plan, but that plan was not approved in this run.
    """

    plan_id: str
    batch_id: str
    label: str

    @classmethod
    def read(cls, handed_on: Mapping[str, str]) -> Self:
        """Decodes the reference that a task passed on.

        Raises:
            ConfigurationError: If it is not valid.
        """
        try:
            return convert(dict(handed_on), cls)
        except (msgspec.ValidationError, TypeError, ValueError) as error:
            raise ConfigurationError(f"task `choose` passed on no valid name of a batch: {error}") from error

    @classmethod
    def of(cls, plan: Plan, batch: Batch) -> Self:
        """Reference to a plan's batch."""
        label = shown(f"{plan.cluster} {batch.batch_id}: {headline(batch)}")
        return cls(plan_id=plan.plan_id, batch_id=batch.batch_id, label=label)


def apply_batch(ref: BatchRef, run: str) -> tuple[StepOutcome, ...]:
    """Carries out the approved steps of a batch.

    Raises:
        Refused: If nothing may be changed, with the reason.
    """
    try:
        with open_context_of_plan(ref.plan_id, run) as task, task.applying_here() as context:
            return carry_out(context, ref.plan_id, ref.batch_id)
    except OutdatedPlan as error:  # unlike other errors of the ledger, a retry cannot repair it
        raise Refused(str(error)) from error


def opening_of(ref: BatchRef, run: str) -> datetime | None:
    """Opening of the maintenance window that an approved batch waits for; None: it is carried out now.

    Raises:
        LedgerError: If the ledger cannot be read, or was tampered with.
    """
    try:
        with open_context_of_plan(ref.plan_id, run) as task:
            return opening_waited_for(task, ref.plan_id, ref.batch_id)
    except OutdatedPlan:  # `apply_batch` refuses it and names the remedy
        return None


def ended_unbegun(ref: BatchRef, run: str) -> str | None:
    """Reason why an approved batch's question ended while it waited; None: it is still open, or the run acted on it."""
    if not was_approved(ref, run):
        return None
    recorded = _recorded(ref, run)
    return recorded.record.over if recorded.ended_waiting else None


def was_approved(ref: BatchRef, run: str) -> bool:
    """True if the ledger contains an approval of a batch by this run."""
    answer = _recorded(ref, run).answer
    return answer is not None and answer.decision is Decision.APPROVED


def _recorded(ref: BatchRef, run: str) -> BatchRun:
    engine = connections.ledger()
    try:
        return LedgerReader(engine).batch(ref.plan_id, ref.batch_id).of_run(run)
    finally:
        engine.dispose()


def verify_batch(ref: BatchRef, run: str) -> Proof:
    """Verifies the changes of a batch on the brokers."""
    with open_context_of_plan(ref.plan_id, run) as task, task.reading_here() as context:
        return verify(context, ref.plan_id, ref.batch_id)


def tell(refs: Sequence[BatchRef], run: str) -> tuple[str, tuple[str, ...]]:
    """Report of a run, in Markdown, and the problems that an operator has to look at.

    Args:
        refs: The run's batches, in the order in which they were expanded.
        run: The run without a map index, ``dag/run``.
    """
    told = [_recorded(ref, f"{run}/{index}") for index, ref in enumerate(refs)]
    return story(told), tuple(trouble for each in told for trouble in troubles(each))
