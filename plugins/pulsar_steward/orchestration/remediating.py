"""Choice of the plans and batches that a run of ``pulsar_remediate`` requests approval for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.apply.rehearse import rehearse
from pulsar_steward.errors import ConfigurationError, NotInLedger, Refused
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.orchestration.batches import BatchRef
from pulsar_steward.orchestration.context import TaskContext, open_context
from pulsar_steward.outside_text import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from pulsar_steward.model.plan import Batch, Plan

log = logging.getLogger(__name__)

MAX_BATCHES = 1000
"""Airflow expands a task at most 1,024 times (``[core] max_map_length``)."""


class RemediateParams(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a run.

    Attributes:
        cluster: The cluster's name in Steward's connections.
        plan_id: The plan; None: the newest of the cluster that is no rollback.
        kinds: Kinds of batches to ask about; empty means all.
        published: True if the plan's publication triggered the run; what of it stands no more is left out silently.
    """

    cluster: str
    plan_id: str | None
    kinds: tuple[str, ...] = ()
    published: bool = False


def wanted_by(params: Mapping[str, Any], published: Iterable[Mapping[str, Any]]) -> tuple[RemediateParams, ...]:
    """Plans that a run is about: all whose publication triggered it, or its parameters.

    Publications that came together start one run, and the questions of the older plans stand as well.

    Args:
        params: The run's parameters.
        published: The extra of each asset event that triggered the run, oldest first.
    """
    kinds = tuple(params.get("kinds") or ())
    plans = dict.fromkeys((event["cluster"], event["plan_id"]) for event in published if "plan_id" in event)
    if plans:
        return tuple(
            RemediateParams(cluster=cluster, plan_id=plan_id, kinds=kinds, published=True)
            for cluster, plan_id in sorted(plans, key=lambda plan: plan[0])
        )
    return (RemediateParams(cluster=params["cluster"], plan_id=params.get("plan_id") or None, kinds=kinds),)


def choose(wanted: Sequence[RemediateParams], run: str) -> list[dict[str, str]]:
    """Batches to request approval for, most urgent first.

    Raises:
        NotInLedger: If there is no such plan.
        Refused: If nothing of a plan that a person named is to be asked, with the reasons.
        ConfigurationError: If there are more batches than Airflow can expand in one run.
    """
    chosen = [msgspec.to_builtins(ref) for each in wanted for ref in _refs(each, run)]
    if len(chosen) > MAX_BATCHES:
        raise ConfigurationError(f"more than {MAX_BATCHES} batches in one run, {len(chosen)}: choose by `kinds`")
    return chosen


def dry_run(wanted: Sequence[RemediateParams], run: str) -> str:
    """Text of the calls that would be made on the live clusters now; recorded in the ledger, changes nothing."""
    texts = []
    for each in wanted:
        with open_context(each.cluster, run) as task, task.reading_here() as context:
            plan = _plan(task, each)
            batches = [batch for batch in plan.batches if not each.kinds or batch.kind in each.kinds]
            over = {batch.batch_id: task.ledger.questions.over(plan.plan_id, batch.batch_id) for batch in batches}
            if batches and all(over.values()):
                raise Refused(f"nothing of plan {plan.plan_id} stands: {'; '.join(filter(None, over.values()))}")
            batches = [batch for batch in batches if not over[batch.batch_id]]
            text = "\n\n".join(rehearse(context, plan, batch) for batch in batches)
            text = text or shown(f"plan {plan.plan_id} changes nothing: {'; '.join(plan.notes)}")
            task.ledger_writer.record_dry_run(plan.plan_id, run, text, task.clock())
            texts.append(text)
    return "\n\n".join(texts)


def _refs(wanted: RemediateParams, run: str) -> list[BatchRef]:
    with open_context(wanted.cluster, run) as task:
        plan = _plan(task, wanted)
        batches = [batch for batch in plan.batches if not wanted.kinds or batch.kind in wanted.kinds]
        against = {batch.batch_id: _why_not(task, plan, batch, run) for batch in batches}
        reasons = [f"{batch_id}: {reason}" for batch_id, reason in against.items() if reason]
        for reason in reasons:
            log.info("plan %s, %s", plan.plan_id, shown(reason))
        refs = [BatchRef.of(plan, batch) for batch in batches if not against[batch.batch_id]]
        if reasons and not refs and not wanted.published:
            raise Refused(f"nothing of plan {plan.plan_id} is to be asked: {'; '.join(reasons)}")
        return refs


def _why_not(task: TaskContext, plan: Plan, batch: Batch, run: str) -> str | None:
    """Reason why a run does not ask about a batch: it ended, is silent, or another run asks it; None: it does."""
    name = (plan.plan_id, batch.batch_id)
    if over := task.ledger.questions.over(*name):
        return over
    if task.ledger.questions.asked_in(plan.plan_id) is None:
        return None  # a plan of an earlier Steward is asked about whole, as often as somebody wants
    if task.ledger.intents(*name):
        return "it was carried out, or tried"
    now, mine = task.clock(), f"{run}/"
    for waiting in task.ledger.waiting(*name, now):
        if not waiting.run.startswith(mine):
            return f"run {waiting.run} asks about it"
    return _answered(task, name, mine, now)


def _answered(task: TaskContext, name: tuple[str, str], mine: str, now: datetime) -> str | None:
    """Reason why a batch is not asked about after what was answered already: it is silent, or another run's."""
    for silence in task.ledger.questions.silences(task.cluster, now):
        if (silence.plan_id, silence.batch_id) == name and silence.decision is not Decision.REJECTED:
            back = f"`steward questions ask-again {silence.answer_id}` takes that back"
            return f"nobody is to be asked ({silence.words}); {back}"
    for answer in task.ledger.answers(*name):
        valid = answer.decision is Decision.APPROVED and answer.expires_at is not None and now < answer.expires_at
        if valid and not answer.run.startswith(mine):
            return f"it was approved in run {answer.run}"
    return None


def _plan(task: TaskContext, wanted: RemediateParams) -> Plan:
    if wanted.plan_id is None:
        rows = task.ledger.plans(wanted.cluster, limit=1, ways_back=False)
        if not rows:
            raise NotInLedger(f"the ledger holds no plan for cluster {wanted.cluster!r}: run pulsar_observe first")
        return task.ledger.plan(rows[0].plan_id)
    row = task.ledger.plan_row(wanted.plan_id)
    if row.cluster != wanted.cluster:
        raise Refused(f"plan {row.plan_id} is for cluster {row.cluster!r}, not {wanted.cluster!r}")
    return task.ledger.plan(row.plan_id)
