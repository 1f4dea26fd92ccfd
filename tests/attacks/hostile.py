"""Hostile text, things of the project that hold it everywhere, and outlets that show them."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console

from pulsar_steward.cli.output import print_lines
from pulsar_steward.errors import AdminError, ConfigurationError, LedgerTampered, PolicyError, ServerError
from pulsar_steward.ledger.rows import Decision, Outcome, Proof, RecordedAnswer
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.loss import Loss, TopicLoss
from pulsar_steward.model.plan import ROLLBACK, Placement
from pulsar_steward.model.setting import BacklogQuota, QuotaPolicy, SettingName
from pulsar_steward.model.step import ChangeSetting, GuardResult
from pulsar_steward.orchestration.batches import BatchRef
from pulsar_steward.planners.from_snapshot import Moves, planning_facts_of
from pulsar_steward.planners.registry import make_plan
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report import approval
from pulsar_steward.report.checkup import terminal
from pulsar_steward.report.checkup.compose import checkup_of
from pulsar_steward.report.checkup.html import as_html
from pulsar_steward.report.checkup.text import plan_lines
from pulsar_steward.report.outcome import story, troubles
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import NOW, a_batch, a_batch_run, a_move, a_plan, a_step, an_outcome
from tests.unit.report_checkup.snapshots import a_finding, a_verdict, meta, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pulsar_steward.ledger.batch_record import BatchRun
    from pulsar_steward.model.plan import Batch, Plan
    from pulsar_steward.report.checkup.document import Checkup

HIDDEN = (
    # characters that turn the order of letters round
    "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    # characters without any width, and variation selectors
    "\u200b\u200c\u200d\u2060\u2064\ufeff\u00ad\u180e\u034f\U000e0061\ufe00\ufe0f\u180b\U000e0100"
    # what looks like a blank and is none
    "\u00a0\u1680\u2003\u202f\u205f\u3000\u3164\u115f\uffa0\u2800"
    # controls, and what ends a line
    "\x01\x07\x08\t\n\r\x0b\x0c\x1b\x1c\x7f\x85\x9b\u2028\u2029"
    # what nobody assigned, or everybody privately
    "\ue000\uffff"
)
SPELLED = {each: each.encode("unicode_escape").decode() for each in HIDDEN}
"""Each character that may not reach a person's eyes, and how it is spelled."""

FORGED = "FORGED"
HOSTILE = "".join(f"a{each}" for each in SPELLED) + f"\n{FORGED}\u202e\x1b[31m"
READ = "".join(f"a{each}" for each in SPELLED.values()) + rf"\n{FORGED}\u202e\x1b[31m"
"""A name of all of them, which also forges a line of its own and colours it; and how it is read."""

SCRIPTS = "Grüße-注文-заказ-注文-سفارش-הזמנה-ऑर्डर-주문-cafe\u0301-a\u0327-🚚"
"""Letters of many scripts, marks above and below letters among them: they stay as they are."""


def unseen(text: str, *, lines: bool = False) -> set[str]:
    """The characters of a text that should have been spelled out; line breaks are its own where it has `lines`."""
    return {each for each in text if each in SPELLED and not (lines and each == "\n")}


def namespace(name: str) -> str:
    """A namespace of a name, which a slash would divide."""
    return f"shop/{name.replace('/', ':')}"


def a_change(name: str) -> ChangeSetting:
    """A quota of a namespace of this name, which evicts."""
    quota = BacklogQuota(limit_bytes=1000, policy=QuotaPolicy.EVICT)
    return ChangeSetting(namespace=namespace(name), name=SettingName.SIZE_QUOTA, before=None, after=quota)


def a_batch_of(name: str) -> Batch:
    """A batch in which everything that comes from outside has this name."""
    move = a_step(
        a_move(namespace=namespace(name), bundle=name, source=name, target=f"{name}:2"),
        step_id="b1.s01",
        why=name,
        effect=name,
        undo_note=name,
        guards=(GuardResult(guard="owner", passed=False, reason=name),),
    )
    quota = a_step(
        a_change(name),
        step_id="b1.s02",
        why=name,
        effect=name,
        undo_note=name,
        loss=Loss(topics=(TopicLoss(topic=name, messages=1, bytes=1),), more=1, messages=2, bytes=2),
        after=("b1.s01",),
    )
    return a_batch(
        move,
        quota,
        title=name,
        unit=name,
        findings=(Finding(check_id="tc-skew", severity=Severity.WARNING, subject=name, evidence=name, figures={}),),
        before=(Placement(name, 1),),
        after=(Placement(name, 2),),
    )


def a_group_of(name: str) -> Batch:
    """A batch of so many steps in two namespaces that it is told by sums."""
    batch = a_batch_of(name)
    elsewhere = [
        msgspec.structs.replace(
            step, step_id=f"{step.step_id}-{n}", change=msgspec.structs.replace(step.change, namespace=f"{name}/{n}")
        )
        for step in batch.steps
        for n in range(20)
    ]
    steps = (*batch.steps, *elsewhere)
    return msgspec.structs.replace(batch, steps=steps, parts=(len(batch.steps), len(elsewhere)))


def a_plan_of(name: str) -> Plan:
    """A plan of that batch, of a cluster of this name."""
    return a_plan(a_batch_of(name), cluster=name, snapshot_id=name, notes=(name, f"{name}: not taken back"))


def an_answer_of(name: str) -> RecordedAnswer:
    """An approval by somebody of this name, with the same as a comment."""
    return RecordedAnswer(
        answer_id=1,
        plan_id="p1",
        batch_id="b1",
        run=name,
        decision=Decision.APPROVED,
        answered_by=name,
        answered_at=NOW,
        reason=name,
        comment=name,
        step_ids=("b1.s01",),
    )


def a_run_of(name: str) -> BatchRun:
    """That batch in a run, done in part and not proved."""
    plan = a_plan_of(name)
    shown: dict[str, Any] = {"placement": {name: {name: 1}}}
    proof = Proof(plan_id="p1", batch_id="b1", run=name, at=NOW, proved=False, reason=name, shown=shown)
    outcomes = tuple(
        an_outcome(plan, step.step_id, Outcome.DONE if number else Outcome.FAILED, run=name, reason=name)
        for number, step in enumerate(plan.batches[0].steps)
    )
    return a_batch_run(plan, name, answers=(an_answer_of(name),), outcomes=outcomes, proofs=(proof,))


def a_checkup_of(name: str, folder: Path) -> Checkup:
    """A check-up in which cluster, brokers, namespaces, topics, findings and reasons have this name."""
    snapshot = open_snapshot(
        written(
            folder,
            snapshot=meta(
                cluster=name,
                pulsar_cluster=name,
                pulsar_version=name,
                unread_brokers=[f"{name}:1"],
                unread_namespaces=[f"shop/{name}"],
            ),
            brokers=[
                {"broker": f"{name}:0", "read": True, "leader": True, "topics": 3, "read_milliseconds": 3},
                {"broker": f"{name}:1", "read": False, "leader": False, "failure": name, "read_milliseconds": 3},
            ],
            bundles=[{"namespace": f"shop/{name}", "bundle": name, "owner_known": True, "topics": 900}],
            namespaces=[{"namespace": f"shop/{name}", "bundles": 1, "boundaries": []}],
            topics=[{"topic": f"persistent://shop/{name}", "namespace": f"shop/{name}", "backlog_bytes": 9}],
            transaction_coordinators=[],
            findings=[a_finding(subject=name, evidence=name)],
            verdicts=[a_verdict("tc-skew", "found", name), a_verdict("bundle-topic-skew", "unknown", f"`{name}`")],
        )
    )
    return checkup_of(snapshot, make_plan(planning_facts_of(snapshot, Policy(), Moves())), Policy())


def printed(lines: Iterable[Any]) -> str:
    """Text as a terminal gets it, with Rich's own colours taken away."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80, highlight=False)
    with console.capture() as capture:
        print_lines(lines, console)
    return re.sub(r"\x1b\[[0-9;]*m", "", capture.get())


MANY_LINES: dict[str, Callable[[str, Path], str]] = {
    "the approval": lambda name, _: approval.body(a_plan_of(name), a_batch_of(name), Policy()),
    "the second person's approval": lambda name, _: approval.body(
        a_plan_of(name), a_batch_of(name), Policy(), first=an_answer_of(name)
    ),
    "the approval of a group": lambda name, _: approval.body(a_plan_of(name), a_group_of(name), Policy()),
    "the approval of a way back": lambda name, _: approval.body(
        a_plan_of(name), msgspec.structs.replace(a_batch_of(name), kind=ROLLBACK), Policy()
    ),
    "the run's report": lambda name, _: story([a_run_of(name)]),
    "a check-up in a terminal": lambda name, folder: printed(terminal.lines(a_checkup_of(name, folder), 80)),
    "a plan in a terminal": lambda name, _: printed(plan_lines(a_plan_of(name), (name,), 80)),
    "a check-up's page": lambda name, folder: as_html(a_checkup_of(name, folder)),
}
ONE_LINE: dict[str, Callable[[str], str]] = {
    "the approval's subject": lambda name: approval.subject(a_plan_of(name), a_batch_of(name)),
    "a row of Airflow's lists": lambda name: BatchRef.of(a_plan_of(name), a_batch_of(name)).label,
    "a tick's label": lambda name: "".join(approval.labels(a_batch_of(name)).values()),
    "why a run failed": lambda name: "; ".join(troubles(a_run_of(name))),
    "a call that failed": lambda name: str(AdminError("GET", name, name, name)),
    "a call that was answered 500": lambda name: str(ServerError("GET", name, name, name, 500)),
    "an error of a policy": lambda name: str(PolicyError(name, name)),
    "an error of a setting": lambda name: str(ConfigurationError(f"there is no connection {name}")),
    "an error of the ledger": lambda name: str(LedgerTampered(name)),
}


def broken(*_: object, **__: object) -> int:
    """Fails as a library may that quotes names."""
    raise KeyError("x") from ValueError(HOSTILE)
