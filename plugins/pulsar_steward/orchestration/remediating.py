"""Choice of the plans and batches for which a run of ``pulsar_remediate`` requests approval."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.apply.precheck import rehearse
from pulsar_steward.decoding import convert
from pulsar_steward.errors import ConfigurationError, NotInLedger, OutdatedPlan, PolicyError, Refused
from pulsar_steward.ledger.rows import Decision
from pulsar_steward.model.cluster import NamedCluster
from pulsar_steward.model.system import System
from pulsar_steward.orchestration import connections
from pulsar_steward.orchestration.batches import BatchRef
from pulsar_steward.orchestration.context import TaskContext, open_context, open_context_of_plan
from pulsar_steward.orchestration.home import chosen_cluster
from pulsar_steward.outside_text import shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from pulsar_steward.errors import StewardError
    from pulsar_steward.model.plan import Batch, Plan

log = logging.getLogger(__name__)

MAX_BATCHES = 1000
"""Airflow expands a task at most 1,024 times (``[core] max_map_length``)."""

PASSED_OVER = (NotInLedger, OutdatedPlan, PolicyError, ConfigurationError, Refused)
"""Errors of one plan that do not concern other plans."""


class RemediateParams(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a run.

    Attributes:
        cluster: The cluster's name in Steward's connections.
        plan_id: The plan; None: the cluster's newest plan that is no rollback.
        kinds: Kinds of batches to ask about; empty means all.
        published: True if the plan's publication triggered the run; ended questions are then left out silently.
    """

    cluster: str
    plan_id: str | None
    kinds: tuple[str, ...] = ()
    published: bool = False


def wanted_by(params: Mapping[str, Any], published: Iterable[Mapping[str, Any]]) -> tuple[RemediateParams, ...]:
    """Plans of a run: all published plans that triggered it, or the plan in its parameters.

    Several publications can trigger one run; the questions of the older plans are open as well.

    Args:
        params: The run's parameters.
        published: The extra of each asset event that triggered the run, oldest first.
    """
    kinds = tuple(params.get("kinds") or ())
    plans = dict.fromkeys((event.cluster, plan_id) for event in map(_read, published) for plan_id in event.plan_ids)
    if plans:
        return tuple(
            RemediateParams(cluster=cluster, plan_id=plan_id, kinds=kinds, published=True)
            for cluster, plan_id in sorted(plans, key=lambda plan: plan[0])
        )
    return (RemediateParams(cluster=chosen_cluster(params), plan_id=params.get("plan_id") or None, kinds=kinds),)


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """Extra of the asset event with which an observation publishes plans."""

    cluster: str = ""
    plan_ids: tuple[str, ...] = ()


def _read(extra: Mapping[str, Any]) -> Published:
    """An event's plans; none if somebody posted an event with other content."""
    try:
        return convert(extra, Published)
    except msgspec.ValidationError as error:
        log.warning("passed over an event that names no plan: %s", shown(str(error)))
        return Published()


def choose(wanted: Sequence[RemediateParams], run: str) -> list[dict[str, str]]:
    """Batches to request approval for, most urgent first; none of a Kafka cluster, as the log says.

    A published plan that nobody can be asked about is skipped, for the sake of others in the same run. If there are
    more batches than Airflow can expand in one run, a later run asks about the rest: their plans are published again.

    Raises:
        NotInLedger: If there is no such plan, or none of the published plans is there.
        Refused: If a person named a plan, and no batch of it is to be asked about; contains the reasons.
        PolicyError: If the cluster's policy does not exist, or is not valid.
        ConfigurationError: If a person named more batches than Airflow can expand in one run.
    """
    refs: list[BatchRef] = []
    passed_over: list[StewardError] = []
    for each in wanted:
        try:
            refs += _refs(each, run)
        except PASSED_OVER as error:
            if not each.published:
                raise
            log.warning("passed over plan %s of cluster %s: %s", shown(each.plan_id or ""), shown(each.cluster), error)
            passed_over.append(error)
    if passed_over and len(passed_over) == len(wanted):
        raise _nobody_asked(passed_over)
    if len(refs) > MAX_BATCHES:
        if not wanted[0].published:
            raise ConfigurationError(f"more than {MAX_BATCHES} batches in one run, {len(refs)}: choose by `kinds`")
        log.warning("%d batches are left to a later run: Airflow expands %d", len(refs) - MAX_BATCHES, MAX_BATCHES)
    return [msgspec.to_builtins(ref) for ref in refs[:MAX_BATCHES]]


def _nobody_asked(passed_over: Sequence[StewardError]) -> StewardError:
    """Error of a run in which nobody could be asked about any published plan."""
    first = passed_over[0]
    if not all(isinstance(each, NotInLedger) for each in passed_over):
        return first
    remedy = "the tasks of pulsar_observe and pulsar_remediate need the same connection steward_ledger and STEWARD_HOME"
    return NotInLedger(f"nobody is asked: {first}, and none of the others that were published with it; {remedy}")


def is_of(batch: Batch, kinds: Collection[str]) -> bool:
    """True if a run that asks about these kinds alone, or about all of them, asks about the batch.

    One that splits bundles and moves their parts is of both kinds: a run that leaves moves out leaves it out.
    """
    own = batch.kinds if batch.planned_as == batch.kind else (batch.kind,)
    return not kinds or set(own) <= set(kinds)


def dry_run(wanted: Sequence[RemediateParams], run: str) -> str:
    """Text of the calls that would be made to the live clusters now; recorded in the ledger, nothing is changed."""
    texts = []
    for each in wanted:
        if why := _only_looked_at(each):
            texts.append(why)
            continue
        with _opened(each, run) as task, task.reading_here() as context:
            plan = _plan(task, each)
            batches = [batch for batch in plan.batches if is_of(batch, each.kinds)]
            over = {batch.batch_id: task.ledger.questions.over(plan.plan_id, batch.batch_id) for batch in batches}
            if batches and all(over.values()):
                raise Refused(f"nothing of plan {plan.plan_id} stands: {'; '.join(filter(None, over.values()))}")
            batches = [batch for batch in batches if not over[batch.batch_id]]
            text = "\n\n".join(rehearse(context, plan, batch) for batch in batches)
            text = text or shown(f"plan {plan.plan_id} changes nothing: {'; '.join(plan.notes)}")
            task.ledger_writer.record_dry_run(plan.plan_id, run, text, task.clock())
            texts.append(text)
    return "\n\n".join(texts)


def _opened(wanted: RemediateParams, run: str) -> AbstractContextManager[TaskContext]:
    """Opens the resources for a plan; a published plan may be under another name of the cluster."""
    if wanted.published and wanted.plan_id is not None:
        return open_context_of_plan(wanted.plan_id, run)
    return open_context(wanted.cluster, run)


def _only_looked_at(wanted: RemediateParams) -> str | None:
    """Sentence that nothing in the cluster that a person named is ever changed; None: it may be."""
    system = System.PULSAR if wanted.published else connections.system_of(wanted.cluster)
    return None if system is System.PULSAR else f"{wanted.cluster}: {system.only_looked_at}"


def _refs(wanted: RemediateParams, run: str) -> list[BatchRef]:
    if why := _only_looked_at(wanted):
        log.info("%s", why)
        return []
    with _opened(wanted, run) as task:
        plan = _plan(task, wanted)
        batches = [batch for batch in plan.batches if is_of(batch, wanted.kinds)]
        against = {batch.batch_id: _why_not(task, plan, batch, run) for batch in batches}
        reasons = [f"{batch_id}: {reason}" for batch_id, reason in against.items() if reason]
        for reason in reasons:
            log.info("plan %s, %s", plan.plan_id, shown(reason))
        refs = [BatchRef.of(plan, batch) for batch in batches if not against[batch.batch_id]]
        if reasons and not refs and not wanted.published:
            raise Refused(f"nothing of plan {plan.plan_id} is to be asked: {'; '.join(reasons)}")
        return refs


def _why_not(task: TaskContext, plan: Plan, batch: Batch, run: str) -> str | None:
    """Reason why a run does not ask about a batch; None: it asks."""
    record, now = task.ledger.batch(plan.plan_id, batch.batch_id), task.clock()
    if record.over:
        return record.over
    if record.called:
        return "it was carried out, or tried"
    if other := record.asked_by_another(f"{run}/", now):
        return f"run {other} asks about it"
    for silence in task.ledger.questions.silences(NamedCluster(task.cluster), now):
        if (silence.plan_id, silence.batch_id) == record.key and silence.decision is not Decision.REJECTED:
            back = f"`steward questions ask-again {silence.answer_id}` takes that back"
            return f"nobody is to be asked ({silence.words}); {back}"
    approval = record.approval(now, besides=run)
    return None if approval is None else f"it was approved in run {approval.run}"


def _plan(task: TaskContext, wanted: RemediateParams) -> Plan:
    if wanted.plan_id is None:
        rows = task.ledger.plans(wanted.cluster, limit=1, ways_back=False)
        if not rows:
            raise NotInLedger(f"the ledger holds no plan for cluster {wanted.cluster!r}: run pulsar_observe first")
        return task.ledger.plan(rows[0].plan_id)
    row = task.ledger.plan_row(wanted.plan_id)
    if row.cluster != task.cluster:
        raise Refused(f"plan {row.plan_id} is for cluster {row.cluster!r}, not {task.cluster!r}")
    plan = task.ledger.plan(row.plan_id)
    if any(batch.is_rollback for batch in plan.batches):
        undone = sorted({(step.undoes or "").rpartition("/")[0] for batch in plan.batches for step in batch.steps})
        raise Refused(
            f"plan {plan.plan_id} takes back what was done, and the run of pulsar_rollback that made it asks about it:"
            f" for a new way back start pulsar_rollback with plan_id {', '.join(undone)}"
        )
    return plan
