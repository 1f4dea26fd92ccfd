"""Steward's way from a plan to its proof on a lab, without Airflow: recorded, approved, carried out, read back."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from benchmarks.observing import settings_of
from lab import placement
from lab.errors import AdminCallError
from lab.waiting import wait_until
from pulsar_steward.apply.applied import choose_applied
from pulsar_steward.apply.context import ApplyContext, LedgerContext
from pulsar_steward.apply.execute import carry_out
from pulsar_steward.apply.halting import StopSwitch
from pulsar_steward.apply.journal import Journal
from pulsar_steward.apply.live_reader import LiveReader
from pulsar_steward.apply.rollback import rollback_plan
from pulsar_steward.apply.verify import verify
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import Answer, Decision, Origin, Outcome
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.loss import InFlight
from pulsar_steward.model.plan import Plan, approval_digest
from pulsar_steward.model.step import Step, UnloadBundle
from tests.builders import a_batch, a_plan, a_policy, a_step
from tests.questions import question

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any, Self

    from sqlalchemy import Engine

    from lab.cluster import Lab
    from lab.faults.real.ground import Ground
    from pulsar_steward.apply.journal import Listener
    from pulsar_steward.ledger.rows import Proof, StepOutcome
    from pulsar_steward.model.plan import Batch
    from pulsar_steward.model.step import Change
    from pulsar_steward.policy.schema import Policy
    from pulsar_steward.pulsar.settings import AdminSettings

PUT_WITHIN_S = 60.0
MUCH = InFlight(again=10**9, volatile_topics=10**3, lost=10**9)
"""Messages in flight beyond all that a test has: only the policy's own limit stops a move."""


@dataclass(frozen=True)
class Hands:
    """One lab under a name that Steward has no past of, with a ledger of its own.

    Attributes:
        lab: The cluster.
        home: A folder for the ledger, and for snapshots.
        cluster: Its name in Steward's connections.
        policy: Thresholds and limits.
        engine: The ledger's.
        settings: How Steward reaches the lab; None: as the lab's superuser, by the brokers' own addresses.
        listener: Gets each event; None: nobody does.
    """

    lab: Lab
    home: Path
    cluster: str
    policy: Policy
    engine: Engine
    settings: AdminSettings | None = None
    listener: Listener | None = None

    @classmethod
    @contextmanager
    def on(cls, lab: Lab, home: Path, policy: dict[str, Any] | None = None, **more: Any) -> Iterator[Self]:
        """Opens the ledger for the length of a block; `policy` holds sections that differ from the defaults.

        ``more`` are other attributes.
        """
        engine = open_ledger(f"sqlite:///{home / 'ledger.db'}")
        try:
            yield cls(lab=lab, home=home, cluster=home.name, policy=a_policy(**policy or {}), engine=engine, **more)
        finally:
            engine.dispose()

    @property
    def ledger(self) -> LedgerReader:
        """Reader of the ledger."""
        return LedgerReader(self.engine)

    def recorded(self, plan: Plan) -> Plan:
        """Writes a plan down as one of this cluster and policy, and returns it."""
        with LiveReader(self._settings) as look:
            identity, brokers = look.identity(), look.brokers()
        mine = msgspec.structs.replace(plan, pulsar_cluster=identity, policy_digest=self.policy.digest)
        LedgerWriter(self.engine).record_plan(mine, datetime.now(UTC), policy=self.policy, brokers=brokers)
        return mine

    def plan_of(self, change: Change | Step) -> Plan:
        """A plan of one change or step, as if it had been planned on a snapshot of this moment, with much in flight."""
        now = datetime.now(UTC)
        plan = a_plan(
            a_batch(change if isinstance(change, Step) else a_step(change, in_flight=MUCH)),
            cluster=self.cluster,
            snapshot_id=f"{self.cluster}-{now:%Y%m%dT%H%M%S%fZ}",
            taken_at=now,
            policy_digest=self.policy.digest,
        )
        return self.recorded(plan)

    def approval_text(self, plan: Plan, batch: Batch) -> str:
        """Text that a person reads."""
        return question(plan, batch, self.policy)

    def approve(self, plan: Plan, batch: Batch) -> None:
        """Writes down that a person approved all steps of a batch."""
        self._answer(plan, batch, Decision.APPROVED, tuple(step.step_id for step in batch.steps))

    def reject(self, plan: Plan, batch: Batch) -> None:
        """Writes down that a person rejected a batch."""
        self._answer(plan, batch, Decision.REJECTED, ())

    def _answer(self, plan: Plan, batch: Batch, decision: Decision, steps: tuple[str, ...]) -> None:
        now = datetime.now(UTC)
        answer = Answer(
            plan_id=plan.plan_id,
            batch_id=batch.batch_id,
            run=_run(plan, batch),
            decision=decision,
            answered_by="operator",
            answered_at=now,
            reason="",
            step_ids=steps,
            digest=approval_digest(plan, batch.batch_id, steps) if steps else None,
            expires_at=now + timedelta(minutes=self.policy.approval.valid_minutes) if steps else None,
            asked_digest=plan.digest,
        )
        writer = LedgerWriter(self.engine)
        writer.record_request(
            plan, batch.batch_id, answer.run, now, origin=Origin.SCHEDULE, policy=self.policy, asked_digest=plan.digest
        )
        writer.record_answer(answer)

    def apply(self, plan: Plan, batch: Batch) -> tuple[StepOutcome, ...]:
        """Carries an approved batch out."""
        with self._context(_run(plan, batch)) as context:
            return carry_out(context, plan.plan_id, batch.batch_id)

    def verify(self, plan: Plan, batch: Batch) -> Proof:
        """Reads a batch back."""
        with self._context(_run(plan, batch)) as context:
            return verify(context, plan.plan_id, batch.batch_id)

    def heal(self, plan: Plan) -> None:
        """Approves, carries out and proves every batch of a plan, in order."""
        for batch in plan.batches:
            self.approve(plan, batch)
            outcomes = self.apply(plan, batch)
            said = [(row.step_id, row.outcome.value, row.reason) for row in outcomes]
            assert {row.outcome for row in outcomes} == {Outcome.DONE}, said
            proof = self.verify(plan, batch)
            assert proof.proved, proof.reason

    def refusal_of(self, change: Change | Step) -> tuple[Outcome, str]:
        """Refusal of a change or step that is not to be made, though it is approved."""
        return self.refusal(self.plan_of(change))

    def refused_by(self, guard: str, change: Change | Step) -> str:
        """Asserts that a guard refuses a change though it is approved; returns its reason."""
        outcome, reason = self.refusal_of(change)
        assert (outcome, f"{guard}: " in reason) == (Outcome.REFUSED, True), reason
        return reason

    def refusal(self, plan: Plan) -> tuple[Outcome, str]:
        """Refusal of a plan of one step that is not to be done, though it is approved."""
        self.approve(plan, plan.batches[0])
        (outcome,) = self.apply(plan, plan.batches[0])
        assert outcome.outcome is not Outcome.DONE, outcome.reason
        return outcome.outcome, outcome.reason

    def rollback_plan(self, plan: Plan, batch: Batch) -> Plan:
        """The plan that takes a batch back, written down.

        Raises:
            Refused: If nothing of it can be taken back.
        """
        applied = choose_applied(self.ledger, self.cluster, plan.plan_id, batch.batch_id)
        with LiveReader(self._settings) as look:
            return self.recorded(rollback_plan(self.ledger, look, self.policy, applied, datetime.now(UTC)))

    @contextmanager
    def _context(self, run: str) -> Iterator[ApplyContext]:
        writer = LedgerWriter(self.engine)
        ledger_context = LedgerContext(
            cluster=self.cluster,
            run=run,
            ledger=self.ledger,
            ledger_writer=writer,
            journal=Journal(writer, self.cluster, self.listener),
            policy=self.policy,
            clock=lambda: datetime.now(UTC),
        )
        switch = StopSwitch(self.ledger, self.cluster)
        with ledger_context.applying(self._settings, switch) as context:
            yield context

    @property
    def _settings(self) -> AdminSettings:
        return self.settings or settings_of(self.lab, self.policy)


def _run(plan: Plan, batch: Batch) -> str:
    return f"live/{plan.plan_id}/{batch.batch_id}"


def move_of(here: Ground) -> UnloadBundle:
    """The move of the bundle of a ground's topic from its present owner to another broker that runs."""
    (topic, bundles) = here.topic(), here.admin.bundles(here.namespace)
    bundle = placement.bundle_of(topic, bundles)
    owned = here.lab.owned_bundles()
    source = placement.owners([topic], here.namespace, owned)[topic]
    target = next(broker for broker in owned if broker != source)
    return UnloadBundle(namespace=here.namespace, bundle=str(bundle), source=source, target=target)


def put_on(here: Ground, bundle: str, broker: str) -> None:
    """Moves the bundle of a ground's topic by hand; once more where another broker was quicker to take it."""
    topic = here.topic()

    def there() -> bool:
        if placement.owners([topic], here.namespace, here.lab.owned_bundles()).get(topic) == broker:
            return True
        here.admin.unload(here.namespace, bundle, broker)
        with suppress(AdminCallError):  # 500 where its former broker was quicker (docs/pulsar-behaviour.md)
            here.admin.look_up(topic)
        return False

    wait_until(there, f"{topic} is on {broker}", PUT_WITHIN_S, 0.5)
