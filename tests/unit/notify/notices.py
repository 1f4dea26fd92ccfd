"""Rows of the ledger and snapshots' findings to make notices of, each with a harmless default."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from pulsar_steward.ledger.halts import HaltRow
from pulsar_steward.ledger.questions import WaitingQuestion
from pulsar_steward.ledger.rows import Decision, Outcome, Proof, RecordedAnswer, StepOutcome
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.notice import Notice, Occasion, notice_key
from pulsar_steward.policy.notify import NotifyPolicy
from pulsar_steward.report.checkup.compose import check_reports, trouble_report, troubles_found
from pulsar_steward.report.since import Look
from tests.builders import CLUSTER, NOW, a_batch_run, a_plan, an_outcome

if TYPE_CHECKING:
    from pulsar_steward.ledger.batch_record import BatchRun

RUN = "pulsar_remediate/manual__1/0"
TITLE = "move 3 bundles of transaction coordinators"
PLAN = a_plan()
AIRFLOW = "https://airflow.example.org"
NASTY = 'a/<b>&"x"\n\u202e[evil](http://evil.example)'
"""A name that nobody may take for markup, a line of its own or a link."""


def a_question(**fields: Any) -> WaitingQuestion:
    """A question that waits until tomorrow."""
    usual: dict[str, Any] = {
        "cluster": CLUSTER,
        "plan_id": "plan-1",
        "batch_id": "b1",
        "kind": "tc_balance",
        "title": TITLE,
        "steps": 3,
        "run": RUN,
        "voice": 1,
        "asked_at": NOW,
        "ends_at": NOW + timedelta(days=1),
    }
    return WaitingQuestion(**{**usual, **fields})


def a_step(outcome: Outcome = Outcome.DONE, number: int = 1, **fields: Any) -> StepOutcome:
    """The end of a step."""
    usual: dict[str, Any] = {"reason": "as the brokers show", "run": RUN}
    return an_outcome(PLAN, f"b1.s{number:02d}", outcome, **{**usual, **fields})


def an_end(
    *steps: StepOutcome,
    proved: bool | None = True,
    proof_reason: str = "the brokers show it",
    approved: int | None = None,
    **fields: Any,
) -> BatchRun:
    """The end of a batch, all of whose steps were approved."""
    names = tuple(f"b1.s{number:02d}" for number in range(1, (len(steps) if approved is None else approved) + 1))
    answer = RecordedAnswer(
        answer_id=1,
        plan_id="plan-1",
        batch_id="b1",
        run=RUN,
        decision=Decision.APPROVED,
        answered_by="operator",
        answered_at=NOW,
        reason="made up",
        step_ids=names,
    )
    proof = Proof(plan_id="plan-1", batch_id="b1", run=RUN, at=NOW, proved=bool(proved), reason=proof_reason, shown={})
    named: dict[str, Any] = {"plan_id": "plan-1", "kind": "tc_balance", "title": TITLE, **fields}
    run = a_batch_run(PLAN, RUN)
    record = msgspec.structs.replace(
        run.record, answers=(answer,), outcomes=steps, proofs=() if proved is None else (proof,), **named
    )
    return record.of_run(RUN)


def a_halt(**fields: Any) -> HaltRow:
    """A halt of the cluster, by Bob."""
    usual: dict[str, Any] = {
        "cluster": CLUSTER,
        "at": NOW,
        "halted": True,
        "said_by": "bob",
        "reason": "an upgrade",
        "halt_id": 7,
    }
    return HaltRow(**{**usual, **fields})


def a_snapshot(
    number: int, *subjects: str, judged: tuple[str, ...] = ("quota-stuck",), check_id: str = "quota-stuck"
) -> Look:
    """The critical trouble of a snapshot that meets these, a quarter of an hour after the one before."""
    findings = [
        Finding(check_id=check_id, severity=Severity.CRITICAL, subject=each, evidence="made up", figures={})
        for each in subjects
    ]
    troubles = troubles_found(check_reports(findings, ()))
    return Look(
        snapshot_id=f"{CLUSTER}-{number}",
        taken_at=NOW + number * timedelta(minutes=15),
        troubles=tuple(trouble_report(each, ()) for each in troubles),
        counted=frozenset(judged),
        judged=frozenset(judged),
    )


def a_notice(occasion: Occasion = Occasion.WAITING, name: str = "1", **fields: Any) -> Notice:
    """A notice; `name` tells it from others."""
    usual = Notice(
        key=notice_key(occasion, CLUSTER, name),
        occasion=occasion,
        cluster=CLUSTER,
        severity=Severity.INFO,
        at=NOW,
        subject=f"[{CLUSTER}] made up {name}",
        text=f"text of {name}",
        path=f"/steward/plans/{name}",
        plan_id=None,
    )
    return msgspec.structs.replace(usual, **fields)


def a_notify_policy(**recipients: dict[str, Any]) -> NotifyPolicy:
    """Section with recipients; each is a webhook with a connection of its name unless it says otherwise."""
    usual: dict[str, Any] = {name: {"connection": f"steward_notify_{name}", "kind": "webhook"} for name in recipients}
    return NotifyPolicy.model_validate({"recipients": {name: usual[name] | recipients[name] for name in recipients}})
