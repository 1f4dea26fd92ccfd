"""Three check-ups of a catalog of their own, so that no word of a check's advice changes how they look."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console

from pulsar_steward.checks.check import CheckWords
from pulsar_steward.cli.output import print_lines
from pulsar_steward.model.finding import Finding, Outlook, Severity, Verdict
from pulsar_steward.model.plan import Batch
from pulsar_steward.policy.schema import Policy
from pulsar_steward.report.checkup.compose import (
    check_reports,
    counts_of,
    outcome_of,
    planning_of,
    trouble_report,
    troubles_found,
)
from pulsar_steward.report.checkup.document import FORMAT, VERSION, About, Checkup, Unread
from pulsar_steward.report.checkup.measures import Measures
from pulsar_steward.report.checkup.terminal import lines
from tests.builders import a_plan, a_step

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LONG = "persistent://acme/orders/refused-by-the-payment-provider-and-waiting-for-a-clerk-partition-0"

SKEW = CheckWords(
    check_id="tc-skew",
    title="Transaction coordinators are unevenly spread over the brokers",
    advice=("Move bundles of pulsar/system to the broker with the fewest coordinators.", "Look again after a restart."),
    source="docs/knowledge.md A",
    remedied_by="tc_balance",
)
HOLES = CheckWords(
    check_id="ack-holes",
    title="Consumed messages would come again after a restart or move: too many ack holes",
    advice=("Find who holds the first message that is not acknowledged: `pulsar-admin topics stats-internal TOPIC`.",),
    source="docs/knowledge.md C",
)
LATENCY = CheckWords(check_id="metadata-latency", title="ZooKeeper is slow", advice=("Look at its disks.",), source="")
CATALOG = {info.check_id: info for info in (LATENCY, HOLES, SKEW)}

EVEN = "broker-00:8080 holds 6 of 16 transaction coordinators (37 %), broker-02:8080 holds 5."
UNEVEN = "broker-00:8080 holds 16 of 16 transaction coordinators (100 %), broker-01:8080 holds 0."
NOT_TOLD = "No bookie and no ZooKeeper was named whose metrics could be read (collect.metrics_urls)."


def healthy() -> Checkup:
    """A check-up without a finding, one check without its data."""
    verdicts = (
        Verdict(check_id="ack-holes", outlook=Outlook.CLEAR, reason="No subscription has 80 % of what is persisted."),
        Verdict(check_id="tc-skew", outlook=Outlook.CLEAR, reason=EVEN),
        Verdict(check_id="metadata-latency", outlook=Outlook.UNKNOWN, reason=NOT_TOLD),
    )
    return _checkup((), verdicts)


def troubled() -> Checkup:
    """A check-up of each severity, one with a remedy, one of them old, one with more than is listed."""
    holed = [_finding(HOLES, Severity.WARNING, f"{LONG} subscription s{number}", number) for number in range(7)]
    skewed = _finding(SKEW, Severity.CRITICAL, "east", 4, evidence=UNEVEN)
    info = _finding(LATENCY, Severity.INFO, "broker-01:8080", 0, evidence="A read took 120 ms on average.")
    verdicts = (
        Verdict(check_id="ack-holes", outlook=Outlook.FOUND, reason="Holes. And 1,206 more.", more=1200),
        Verdict(check_id="tc-skew", outlook=Outlook.FOUND, reason=UNEVEN),
        Verdict(check_id="metadata-latency", outlook=Outlook.FOUND, reason="A read took 120 ms on average."),
    )
    batch = Batch(
        batch_id="b1",
        kind="tc_balance",
        title="Even out 16 transaction coordinators over 3 brokers: 0 to 16 each now, 5 to 6 after",
        findings=(skewed,),
        steps=(a_step(step_id="b1.s01"), a_step(step_id="b1.s02")),
    )
    return _checkup((*holed, skewed, info), verdicts, (batch,))


def partial() -> Checkup:
    """A broker and a namespace could not be read; what was found stands, and the planner says what it lacks."""
    verdicts = (
        Verdict(check_id="ack-holes", outlook=Outlook.UNKNOWN, reason=f"{NOT_TOLD} But not everything could be read."),
        Verdict(check_id="tc-skew", outlook=Outlook.FOUND, reason=UNEVEN),
        Verdict(check_id="metadata-latency", outlook=Outlook.UNKNOWN, reason=NOT_TOLD),
    )
    unread = (
        Unread(kind="broker", name="broker-02:8080", reason="connection refused"),
        Unread(kind="namespace", name="acme/orders", reason=None),
    )
    note = "Transaction coordinators: nothing is proposed, as the snapshot is partial."
    found = (_finding(SKEW, Severity.CRITICAL, "east", 1, evidence=UNEVEN),)
    return _checkup(found, verdicts, unread=unread, notes=(note,))


EXAMPLES = {"healthy": healthy, "troubled": troubled, "partial": partial}
LOOKS = {"80-plain": (80, False, False), "120-colour": (120, True, False), "80-verbose": (80, False, True)}
"""Columns, whether in colour, and whether everything is told."""


def looks(name: str, look: str) -> str:
    """The check-up of that name as a terminal shows it."""
    columns, colour, verbose = LOOKS[look]
    written = io.StringIO()
    console = Console(
        file=written,
        width=columns,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        highlight=False,
        _environ={},
    )
    print_lines(lines(EXAMPLES[name](), columns, verbose=verbose), console)
    return written.getvalue()


def _finding(info: CheckWords, severity: Severity, subject: str, row: int, evidence: str = "") -> Finding:
    return Finding(
        check_id=info.check_id,
        severity=severity,
        subject=subject,
        evidence=evidence
        or f"It has {9_900 - row:,} ack holes, {99 - row} % of the 10,000 that broker-00:8080 persists.",
        first_seen=NOW.replace(hour=8),
        snapshots_in_a_row=max(row, 1),
    )


def _checkup(
    findings: Sequence[Finding],
    verdicts: Sequence[Verdict],
    batches: tuple[Batch, ...] = (),
    *,
    unread: tuple[Unread, ...] = (),
    notes: tuple[str, ...] = (),
) -> Checkup:
    plan = a_plan(snapshot_id="east-1", taken_at=NOW, policy_digest="d", batches=batches, notes=notes)
    checks = check_reports(findings, verdicts, CATALOG)
    counts = counts_of(checks)
    told = [trouble_report(each, plan.batches) for each in troubles_found(checks)]
    return Checkup(
        format=FORMAT,
        version=VERSION,
        steward_version="1.0",
        policy_digest="d",
        outcome=outcome_of(counts),
        about=_about(unread),
        counts=counts,
        no_longer_judged=(),
        troubles=tuple(each for each in told if each.severity is not Severity.INFO),
        information=tuple(each for each in told if each.severity is Severity.INFO),
        checks=checks,
        planning=planning_of(plan, checks, Policy()),
        measures=Measures(brokers=(), crowded=(), backlog=(), limited=(), ack_holes=(), delayed=(), trends=()),
        since=None,
    )


def _about(unread: tuple[Unread, ...]) -> About:
    return About(
        snapshot_id="east-1",
        cluster="east",
        pulsar_cluster="local",
        pulsar_version="4.0.7",
        load_manager="ExtensibleLoadManagerImpl",
        taken_at=NOW,
        complete=not unread,
        unread=unread,
        brokers=3,
        brokers_read=3 - sum(each.kind == "broker" for each in unread),
        namespaces=12,
        bundles=240,
        topics=1_000_300,
        coordinators=16,
        client_versions=(),
    )
