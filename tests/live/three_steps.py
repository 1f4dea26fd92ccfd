"""A plan of three cheap steps in Airflow, and whether brokers, ledger and cluster tell the same of it afterwards."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

from benchmarks.chaos.judging import call_for
from benchmarks.observing import settings_of
from lab.request_log import essence
from pulsar_steward.ledger.rows import Outcome
from pulsar_steward.ledger.verify import verify_ledger
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName
from pulsar_steward.model.step import ChangeSetting, UnloadBundle
from pulsar_steward.orchestration.home import now
from pulsar_steward.pulsar.reader import Reader
from tests.builders import a_batch, a_plan, a_policy, a_step
from tests.live.moves import loaded_bundle, owner_of

if TYPE_CHECKING:
    from lab.cluster import Lab
    from lab.request_log import RequestLogs
    from pulsar_steward.ledger.rows import StepOutcome
    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.model.step import Change
    from tests.live.care import Care

KIND = "bundle_balance"
STEPS = ("b1.s01", "b1.s02", "b1.s03")
GIB = 1 << 30

_numbers = itertools.count(1)


def a_batch_of_three(lab: Lab, batch_id: str = "b1") -> Batch:
    """The move of a loaded bundle and two quotas, in namespaces that nobody else uses."""
    # One bundle: where there are more, readers of topic policies may bring the moved one back before it is looked up.
    move = loaded_bundle(lab, f"public/faults-{next(_numbers)}", bundles=1)
    lab.make_topic(f"persistent://{move.namespace}-too/orders", bundles=1)
    changes: tuple[Change, ...] = (move, a_quota(move.namespace), a_quota(f"{move.namespace}-too"))
    steps = [a_step(change, step_id=f"{batch_id}.s{place:02d}") for place, change in enumerate(changes, start=1)]
    return a_batch(*steps, batch_id=batch_id, kind=KIND, title=move.namespace)


def a_quota(namespace: str) -> ChangeSetting:
    """One that nothing in the namespace comes near."""
    after = BacklogQuota(limit_bytes=next(_numbers) * GIB, policy=QuotaPolicy.HOLD)
    return ChangeSetting(namespace=namespace, name=SettingName.SIZE_QUOTA, before=None, after=after)


def asked(care: Care, batches: int = 1) -> Plan:
    """A recorded plan of so many batches."""
    made = [a_batch_of_three(care.lab, f"b{number}") for number in range(1, batches + 1)]
    plan = a_plan(*made, cluster=care.cluster, snapshot_id=f"{care.cluster}-made-{next(_numbers)}", taken_at=now())
    return care.record(plan)


def outcomes_of(care: Care, plan: Plan) -> list[StepOutcome]:
    return [row for batch in plan.batches for row in care.ledger.outcomes(plan.plan_id, batch.batch_id)]


def refusals(care: Care, plan: Plan) -> set[str]:
    """Why steps of a plan were refused."""
    return {row.reason for row in outcomes_of(care, plan) if row.outcome is Outcome.REFUSED}


def all_tell_the_same(care: Care, plan: Plan, logs: RequestLogs, *done: str) -> None:
    """Brokers, ledger and cluster say that exactly these steps were carried out, and each once."""
    rows = outcomes_of(care, plan)
    assert Counter(row.step_id for row in rows if row.outcome is Outcome.DONE) == Counter(done), rows
    intents = [row for batch in plan.batches for row in care.ledger.intents(plan.plan_id, batch.batch_id)]
    assert {intent.step_id for intent in intents} == set(done)
    made = Counter(essence(call) for call in logs.changing_calls())
    assert made == Counter(call_for(intent.change) for intent in intents)
    assert verify_ledger(care.engine).tampered == ()
    for step in (step for batch in plan.batches for step in batch.steps):
        assert shows(care.lab, step.change, done=step.step_id in done), step


def shows(lab: Lab, change: Change, *, done: bool) -> bool:
    """Whether the cluster shows a change, or what was before it."""
    if isinstance(change, UnloadBundle):
        return owner_of(lab, change) == (change.target if done else change.source)
    assert isinstance(change, ChangeSetting)
    with Reader(settings_of(lab, a_policy())) as reader:
        return reader.own_settings(change.namespace).get(change.name) == (change.after if done else change.before)
