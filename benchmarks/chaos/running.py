"""One run: a plan is recorded, answered, carried out under its fault as Airflow would, read back and judged."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks.chaos import worker
from benchmarks.chaos.faults import FORBIDDING, ambush, jump, kill_at, outage, stopped_seconds
from benchmarks.chaos.ground import GROUP, MOST_COORDINATORS
from benchmarks.chaos.holdings import LOSING
from benchmarks.chaos.judging import Judged, judged
from benchmarks.chaos.plans import BATCH, KIND, plan_of
from benchmarks.chaos.tampering import tampered_with, with_trigger
from lab.bookie import set_read_only
from lab.postgres import create_database
from pulsar_steward.errors import LedgerTampered
from pulsar_steward.ledger.halts import Halt, say
from pulsar_steward.ledger.publishing import Ending, NewQuestion, QuestionChanges
from pulsar_steward.ledger.read import LedgerReader
from pulsar_steward.ledger.rows import EndReason, Origin
from pulsar_steward.ledger.store import open_ledger
from pulsar_steward.ledger.write import LedgerWriter
from pulsar_steward.model.plan import content_digest, goal_of
from pulsar_steward.model.step import DeleteSubscription
from pulsar_steward.orchestration.approval_response import ApprovalQuestion, interpret
from pulsar_steward.orchestration.question_form import APPROVE, COMMENT, LOSS, QUESTION, REJECT, STEPS
from pulsar_steward.policy.schema import Policy

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from sqlalchemy import Engine

    from benchmarks.chaos.detour import Detour
    from benchmarks.chaos.faults import Scenario
    from benchmarks.chaos.ground import Ground
    from benchmarks.chaos.worker import Report, Task
    from lab.postgres import Postgres, PostgresProcess
    from pulsar_steward.model.plan import Plan
    from pulsar_steward.model.step import Change

POLICY: dict[str, Any] = {
    "admin": {"connect_timeout_seconds": 2, "read_timeout_seconds": 3, "total_timeout_seconds": 10, "read_attempts": 2},
    "apply": {
        "proof_timeout_seconds": 8,
        "proof_wait_seconds": 0,
        "lease_seconds": 5,
        "lease_wait_seconds": 30,
        "intent_valid_seconds": 2,
    },
    "tc_skew": {"cooldown_minutes": 0},
    "guards": {"circle_minutes": 0, "most_coordinators": MOST_COORDINATORS, "least_brokers": 1},
    # Brokers on one machine each report all of its CPU.
    "cluster_placement": {"warning_cpu_percent_after_loss": 1000, "critical_cpu_percent_after_loss": 1000},
    "broker_drain_remedy": {"most_usage_percent": 1000},
    "brokers": {"groups": [GROUP]},
    "subscriptions": {"delete_abandoned": True},
    "health": {"return_seconds": 2},
}
"""As by default, with little patience: what a run waits for is not what is tried here."""

ANOTHER_TEXT = "0" * 64
"""Digest of a text that is not the plan's."""
RUN = "pulsar_remediate/chaos/0"
OTHER_RUN = "pulsar_remediate/chaos/1"
OUTLIVED_SECONDS = 20.0
TRIES = 3
"""As often as Airflow tries a task that has two retries."""
ANEW_SHARE = 0.5
"""Of the subscriptions that are another one after the answer; the others are reset."""


@dataclass(frozen=True)
class Servers:
    """Places of ledgers: files in a folder, or databases of a server that may be ended and started again."""

    home: Path
    binaries: Path
    postgres: Postgres
    program: PostgresProcess

    def ledger(self, scenario: Scenario) -> str:
        """The URL of a ledger of the run's own."""
        if not scenario.postgres:
            return f"sqlite:///{self.home / f'ledger-{scenario.number}.db'}"
        name = f"run_{scenario.number}"
        create_database(self.binaries, self.postgres, name)
        return self.postgres.url(name)


@dataclass
class ChaosRun:
    """One run on its way.

    Attributes:
        happened: Whether the fault came to pass; a run may be over before it.
        reports: What each worker said; None: it was killed.
        walk: Whether workers report the lines that they came by.
    """

    scenario: Scenario
    ground: Ground
    detour: Detour
    servers: Servers
    happened: bool = False
    reports: list[Report | None] = field(default_factory=list)
    walk: bool = False

    def judged(self) -> Judged:
        """Runs it, heals the cluster, and says what held."""
        began = time.monotonic()
        random = self.scenario.random
        self.ground.undo_groups()
        self.ground.subscriptions.replenish()
        before = self.ground.state()
        self.ground.logs.changing_calls()
        engine = open_ledger(url := self.servers.ledger(self.scenario))
        alters = self.scenario.fault.kind == "identity"
        changes = self.ground.changes(random, before, deletes=alters)
        if self.scenario.fault.kind == "losing":
            changes.append(LOSING[self.scenario.fault.name])
            self.happened = True
        plan, *others = self._asked(engine, changes)
        for step in plan.batch(BATCH).steps if alters else ():
            if isinstance(step.change, DeleteSubscription):
                self.ground.subscriptions.alter(step.change.topic, anew=random.random() < ANEW_SHARE)
                self.happened = True
        if self.scenario.fault.kind == "tampering":
            self.happened = tampered_with(engine, plan, self.scenario.fault.name, random)
        way = ambush(self.scenario, self._to_the_cluster, lambda: self._halt(engine, self._halted(plan)))
        with self.detour.through(way):
            self._apply([self._task(url, each) for each in (plan, *others)])
        self.servers.program.start()
        self.ground.heal()
        proof = worker.run(replace(self._task(url, plan), what="verify"))
        self.happened = self.happened or bool(way and way.met)
        engine.dispose()  # its connections may be to a server that went away
        verdict = judged(self, engine, [plan, *others], before, proof)
        engine.dispose()
        return replace(verdict, seconds=time.monotonic() - began)

    def _asked(self, engine: Engine, changes: list[Change]) -> list[Plan]:
        """Records a plan of these changes, and an answer to it; returns it, and the one by another name if there is."""
        now, writer = datetime.now(UTC), LedgerWriter(engine)
        policy, kind = Policy.model_validate(self._asked_under), self.scenario.fault.kind
        identity = self.ground.identity()
        if kind == "repointed":
            identity = msgspec.structs.replace(identity, metadata_id="0" * 16)
        plan = plan_of(f"chaos-{self.scenario.number}", changes, now, identity, policy, self.ground.reach)
        renamed = msgspec.structs.replace(plan, cluster=f"{plan.cluster}-too")
        plans = [plan, renamed] if self.scenario.fault.name == "two names" else [plan]
        for each in plans:
            batch = each.batch(BATCH)
            question = NewQuestion(batch_id=BATCH, content_digest=content_digest(each, batch), goal=goal_of(batch))
            writer.record_plan(each, now, policy=policy, questions=QuestionChanges(asked=(question,)))
        if self._halted(plan) == renamed.cluster:
            writer.record_plan(renamed, now, policy=policy)
        if kind == "trigger":
            with_trigger(engine)
        self.happened = self.happened or kind in FORBIDDING
        answered = [(plan, RUN), *((each, OTHER_RUN) for each in plans[1:])]
        if self.scenario.fault.name == "two runs of a plan":
            answered.append((plan, OTHER_RUN))
        for each, run in answered if self.scenario.answer != "never asked" else ():
            self._answer(writer, each, run, now)
        if self.scenario.answer == "superseded":
            newer = plan_of(plan.cluster, changes[:1], now + timedelta(seconds=1), identity, policy, self.ground.reach)
            standing = LedgerReader(engine).questions.standing(plan.named_cluster)
            (number,) = [each.question.question_id for each in standing if each.question is not None]
            end = Ending(question_id=number, reason=EndReason.CHANGED, words="it was seen otherwise")
            writer.record_plan(newer, now, policy=policy, questions=QuestionChanges(ended=(end,)))
        return plans

    def _answer(self, writer: LedgerWriter, plan: Plan, run: str, now: datetime) -> None:
        """Records that a run asked about the plan's batch, and what was answered."""
        policy, kind = Policy.model_validate(self._asked_under), self.scenario.fault.kind
        event, shown = self._event(plan, now), plan.digest  # stands for the digest of the text
        at = event.get("responded_at", now)
        writer.record_request(plan, BATCH, run, at, origin=Origin.SCHEDULE, policy=policy, asked_digest=shown)
        if kind == "cleared":
            shown = ANOTHER_TEXT
            writer.record_request(plan, BATCH, run, now, origin=Origin.SCHEDULE, policy=policy, asked_digest=shown)
        asked = ApprovalQuestion(plan=plan, batch_id=BATCH, run=run, origin=Origin.SCHEDULE, asked_digest=shown)
        answer = interpret(event, asked, policy.approval, now)
        with suppress(*[LedgerTampered] if kind == "trigger" else []):
            writer.record_answer(answer)

    @cached_property
    def _asked_under(self) -> dict[str, Any]:
        """The policy under which is planned and asked; the worker has it too, unless that is the fault."""
        if self.scenario.fault.kind != "policy":
            return POLICY
        stricter = self.scenario.random.choice(
            (
                {"approval": {"two_people_for": [KIND]}},
                {"apply": {**POLICY["apply"], "most_clients_per_step": 19_999}},
                {"guards": {**POLICY["guards"], "most_changes_per_run": 999}},
            )
        )
        return POLICY | stricter

    def _event(self, plan: Plan, now: datetime) -> dict[str, Any]:
        """Event that Airflow would resume the task with."""
        steps = [step.step_id for step in plan.batch(BATCH).steps]
        if self.scenario.answer == "some steps":
            steps = self.scenario.random.sample(steps, self.scenario.random.randint(1, len(steps)))
        event: dict[str, Any] = {
            "chosen_options": [REJECT if self.scenario.answer == "rejected" else APPROVE],
            "params_input": {QUESTION: plan.digest, STEPS: steps, COMMENT: "", LOSS: True},
            "responded_at": now - timedelta(hours=2 if self.scenario.answer == "expired" else 0),
            "responded_by_user": {"id": "1", "name": "operator"},
            "timedout": False,
        }
        match self.scenario.answer:
            case "no answer":
                return {"error": "timeout", "error_type": "timeout", "timedout": True}
            case "malformed":
                return event | {"params_input": {QUESTION: plan.digest, STEPS: ["b9.s01"]}}
            case "another text":
                return event | {"params_input": event["params_input"] | {QUESTION: ANOTHER_TEXT}}
            case _:
                return event

    def _task(self, url: str, plan: Plan) -> Task:
        return worker.Task(
            what="apply",
            ledger=url,
            cluster=plan.cluster,
            plan_id=plan.plan_id,
            batch_id=BATCH,
            run=RUN,
            urls=tuple(self.scenario.random.sample(self.ground.lab.admin_urls, len(self.ground.lab.admin_urls))),
            policy=POLICY,
            proxy=self.detour.url,
            result=self.servers.home / f"result-{self.scenario.number}.json",
        )

    def _apply(self, tasks: list[Task]) -> None:
        """Carries the batch out as Airflow does: again where the worker died or the ledger could not be used."""
        task = tasks[0]
        if self.scenario.fault.kind == "two":
            self._at_once(task, tasks[-1])
            return
        deaths = {"worker killed": 1, "worker killed twice": 2}.get(self.scenario.fault.name, 0)
        pid, stops = self.servers.program.pid, self.scenario.fault.kind == "stopped"

        def taken_over() -> None:
            """Another worker of the same run, while the first one sleeps; its own end is told by its report."""
            if self.scenario.fault.name == "worker stopped and given up":
                self.reports.append(worker.run(replace(task, result=task.result.with_suffix(".other"))))

        for number in range(TRIES):
            doomed = replace(
                task,
                kill_at=kill_at(self.scenario) if number < deaths or (stops and number == 0) else None,
                kill_line=self.scenario.line if number == 0 else None,
                stopped_seconds=stopped_seconds(self.scenario) if number == 0 else None,
                # Whoever takes over would wait for the dead one's lease: its clock says that this is over.
                ahead=OUTLIVED_SECONDS if self.scenario.line and number else 0,
                walk=self.walk,
                jump=jump(self.scenario) if number == 0 else None,
                outage=outage(self.scenario, pid) if number == 0 else None,
            )
            report = worker.run(doomed, taken_over)
            self.reports.append(report)
            self.happened = self.happened or report is None or report.happened
            self.servers.program.start()
            if report is not None and report.final:
                return

    def _at_once(self, task: Task, other: Task) -> None:
        """Two workers side by side, of the same run or of another that was answered as well."""
        run = RUN if self.scenario.fault.name == "two workers of a run" else OTHER_RUN
        tasks = [task, replace(other, run=run, result=task.result.with_suffix(".other"))]
        with ThreadPoolExecutor(2) as pool:
            self.reports += pool.map(worker.run, tasks)
        self.happened = True

    def _to_the_cluster(self, name: str, random: Random) -> None:
        lab, broker = self.ground.lab, random.choice(self.ground.brokers)
        match name:
            case "broker killed":
                lab.kill_broker(broker)
            case "broker restarted":
                lab.stop_broker(broker)
            case "broker paused":
                lab.pause_broker(broker)
            case "bookie read-only":
                set_read_only(lab, on=True)
            case "ZooKeeper paused":
                lab.pause_zookeeper()
                threading.Timer(6, lab.resume_zookeeper).start()
            case _:
                raise ValueError(name)

    def _halted(self, plan: Plan) -> str:
        """Name by which the cluster is halted, if it is."""
        return f"{plan.cluster}-too" if self.scenario.fault.name == "halted by another name" else plan.cluster

    @staticmethod
    def _halt(engine: Engine, cluster: str) -> None:
        say(engine, Halt(cluster=cluster, at=datetime.now(UTC), halted=True, said_by="chaos", reason="to see it stop"))
