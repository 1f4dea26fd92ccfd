"""Batches that were carried out in a cluster, and their steps that can be rolled back, from the ledger alone."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.changes import kind_of
from pulsar_steward.errors import NotInLedger, Refused
from pulsar_steward.ledger.rows import CarriedOut, Outcome, RecordedAnswer
from pulsar_steward.model.cluster import ClusterIdentity, NamedCluster
from pulsar_steward.model.plan import ROLLBACK, Batch
from pulsar_steward.model.step import Change, Step
from pulsar_steward.model.units import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pulsar_steward.ledger.chain import Head
    from pulsar_steward.ledger.read import LedgerReader
    from pulsar_steward.ledger.rows import Intent, StepOutcome
    from pulsar_steward.model.plan import Plan

MAX_LISTED = 20


class DoneStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step that was done.

    Attributes:
        step: The step as it was approved.
        change: The change as it was made in the end: Pulsar may have moved a bundle elsewhere first.
        former: The live values before its first call, from the ledger.
        at: Time of its first call, UTC.
    """

    step: Step
    change: Change
    former: dict[str, Any]
    at: datetime

    @property
    def can_be_undone(self) -> bool:
        """False without an inverse, and for a move to a group: once the group is taken back, nothing has to leave."""
        return kind_of(self.change).undoable and not isinstance(self.step.group, str)


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """A batch with at least one call.

    Attributes:
        cluster: The cluster's name in Steward's connections.
        plan_id: The batch's plan.
        pulsar_cluster: The Pulsar cluster of the plan.
        batch: The batch.
        answer: The approval of the call.
        done: Its done steps, in the order in which they were done.
        doubts: Steps with a call but an unknown outcome, in words.
        rolled_back: Steps that were rolled back since, each with the plan that did it.
    """

    cluster: str
    plan_id: str
    pulsar_cluster: ClusterIdentity
    batch: Batch
    answer: RecordedAnswer
    done: tuple[DoneStep, ...]
    doubts: tuple[str, ...]
    rolled_back: dict[str, str]

    @property
    def named_cluster(self) -> NamedCluster:
        """The cluster by its name in Steward's connections, and by its identity."""
        return NamedCluster(self.cluster, self.pulsar_cluster)

    @property
    def can_be_rolled_back(self) -> bool:
        """True if a step is left to roll back, by the ledger."""
        return any(each.can_be_undone and each.step.step_id not in self.rolled_back for each in self.done)

    @property
    def approval(self) -> str:
        """The approval in words: person and time."""
        return f"approved by {self.answer.answered_by} at {self.answer.answered_at:%Y-%m-%d %H:%M:%S} UTC"

    @property
    def words(self) -> str:
        """One line for a list to choose from."""
        final = sum(not each.can_be_undone for each in self.done)
        counts = [
            f"{len(self.done)} of {counted(len(self.batch.steps), 'step')} done",
            *([f"{final} cannot be undone"] if final else []),
            *([f"{len(self.rolled_back)} taken back already"] if self.rolled_back else []),
            *([] if self.can_be_rolled_back else ["nothing left to take back"]),
        ]
        return (
            f"plan {self.plan_id} batch {self.batch.batch_id}, {self.approval}: {self.batch.title}; {', '.join(counts)}"
        )


def applied_batches(ledger: LedgerReader, cluster: str) -> tuple[Applied, ...]:
    """The latest batches that were carried out, newest first, at most `MAX_LISTED`."""
    back = _rolled_back(ledger, cluster)
    rows = ((row.batch_id, ledger.readable_plan(row.plan_id)) for row in ledger.carried_out(cluster)[:MAX_LISTED])
    return tuple(_what_was_done(ledger, plan, batch_id, back) for batch_id, plan in rows if plan is not None)


def choose_applied(
    ledger: LedgerReader, cluster: str, plan_id: str | None, batch_id: str | None, *, noted: Collection[Head] = ()
) -> Applied:
    """The chosen batch among those that were carried out in a cluster.

    Args:
        ledger: The ledger.
        cluster: The cluster.
        plan_id: Its plan; None: the plan that was carried out last, without rollbacks.
        batch_id: The batch; None: the plan's batch that was carried out last.
        noted: Ends of the ledger's chain that were recorded outside of the ledger.

    Raises:
        LedgerTampered: If a row was changed: the values to restore might be false.
        NotInLedger: If there is no such plan.
        Refused: If no such batch was carried out; names those that were.
    """
    ledger.require_untampered(plan_id or "", noted=noted)
    if plan_id is not None and (there := ledger.plan_row(plan_id).cluster) != cluster:
        raise Refused(f"plan {plan_id} is for cluster {there!r}, not {cluster!r}")
    rows = ledger.carried_out(cluster)
    wanted = plan_id or next((row.plan_id for row in rows if row.kind != ROLLBACK), None)
    for row in rows:
        if row.plan_id == wanted and batch_id in {None, row.batch_id}:
            return what_was_done(ledger, row.plan_id, row.batch_id)
    meant = " of ".join([f"batch {batch_id}" if batch_id else "no batch", f"plan {wanted}" if wanted else "any plan"])
    listed = "; ".join(each.words for each in applied_batches(ledger, cluster)) or "nothing"
    raise Refused(f"{meant} was carried out in cluster {cluster}; carried out was: {listed}")


def what_was_done(ledger: LedgerReader, plan_id: str, batch_id: str) -> Applied:
    """One batch that was carried out, with its steps in the order in which they were done.

    Raises:
        NotInLedger: If there is no such batch.
        OutdatedPlan: If another version of Steward recorded it, in a format that this one does not read.
        Refused: If no call was made for it.
    """
    plan = ledger.plan(plan_id)
    return _what_was_done(ledger, plan, batch_id, _rolled_back(ledger, plan.cluster))


def _what_was_done(ledger: LedgerReader, plan: Plan, batch_id: str, back: Mapping[str, str]) -> Applied:
    plan_id = plan.plan_id
    try:
        batch = plan.batch(batch_id)
    except KeyError as error:
        raise NotInLedger(f"plan {plan_id} holds no batch {error}") from error
    intents = ledger.intents(plan_id, batch_id)
    if not intents:
        raise Refused(f"nothing was called for batch {batch_id} of plan {plan_id}: there is nothing to take back")
    answers = {answer.answer_id: answer for answer in ledger.answers(plan_id, batch_id)}
    came_to = {row.step_id: row for row in ledger.outcomes(plan_id, batch_id) if row.intent_id is not None}
    first = {intent.step_id: intent for intent in reversed(intents)}
    last = {intent.step_id: intent for intent in intents}
    called = sorted(first, key=lambda step_id: first[step_id].intent_id)
    return Applied(
        cluster=plan.cluster,
        plan_id=plan_id,
        pulsar_cluster=plan.pulsar_cluster,
        batch=batch,
        answer=answers[intents[0].answer_id],
        done=tuple(_done(batch, first[name], last[name]) for name in called if _is_done(came_to.get(name))),
        doubts=tuple(_doubt(name, came_to.get(name)) for name in called if not _is_done(came_to.get(name))),
        rolled_back={
            step.step_id: by for step in batch.steps if (by := back.get(f"{plan_id}/{step.step_id}")) is not None
        },
    )


def done_steps(ledger: LedgerReader, row: CarriedOut) -> Sequence[Step]:
    """The done steps of a batch, in the plan's order; none if the plan is in another version's format."""
    plan = ledger.readable_plan(row.plan_id)
    if plan is None:
        return []
    done = {each.step_id for each in ledger.outcomes(row.plan_id, row.batch_id) if _is_done(each)}
    return [step for step in plan.batch(row.batch_id).steps if step.step_id in done]


def _rolled_back(ledger: LedgerReader, cluster: str) -> Mapping[str, str]:
    """Steps (``<plan id>/<step id>``) that were rolled back, each with the plan that did it."""
    back: dict[str, str] = {}
    # Newest first: a rollback that was itself rolled back does not count.
    for row in ledger.carried_out(cluster, ways_back=True):
        for step in done_steps(ledger, row):
            if step.undoes is not None and f"{row.plan_id}/{step.step_id}" not in back:
                back.setdefault(step.undoes, row.plan_id)
    return back


def _is_done(outcome: StepOutcome | None) -> bool:
    return outcome is not None and outcome.outcome is Outcome.DONE


def _done(batch: Batch, first: Intent, last: Intent) -> DoneStep:
    return DoneStep(step=batch.step(first.step_id), change=last.change, former=first.before, at=first.at)


def _doubt(step_id: str, outcome: StepOutcome | None) -> str:
    said = "its outcome was never recorded" if outcome is None else f"{outcome.outcome}: {outcome.reason}"
    return f"{step_id} was called and is not known to be done, so it is not taken back: look at it yourself ({said})"
