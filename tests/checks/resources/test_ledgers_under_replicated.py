"""Ledgers with too few copies: what the auditor found, less what was copied since, and its periodic checks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources import ledgers_under_replicated as check
from pulsar_steward.model.broker_defaults import WRITE_QUORUM
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED
from tests.builders import NOW, a_policy
from tests.checks.conftest import judge_rows, minutes_ago, samples, severity_of, told

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.checks.conftest import Rows
    from tests.golden import Golden

START = NOW.timestamp() - 30 * 86_400
WARNING, CRITICAL = Severity.WARNING, Severity.CRITICAL
BEFORE = 70
"""Ledgers that the first audit found, and that were copied, before the first snapshot."""


def process(
    source: str = "b1:8000",
    *,
    found: int | None = None,
    audits: int | None = None,
    copied: int = 0,
    failed: int = 0,
    deleted: int | None = None,
    gauges: dict[str, int] | None = None,
    started: float = START,
    kind: str = "bookie",
) -> list[dict[str, Any]]:
    """Samples of a process of auto recovery since its start; `found` None: it is not the auditor.

    Audits are one more than those of `IDLE` where there are any, unless it is said how many.
    """
    if audits is None and found is not None:
        audits = int(found > 0) + int(found > BEFORE)
    yes, no = '{"success":"true"}', '{"success":"false"}'
    values: list[tuple[str, str, float | None]] = [
        (STARTED, "{}", started),
        (check.FOUND, yes, found),
        (check.FOUND, no, None if found is None else 0),
        (check.AUDITS, yes, audits),
        (check.COPIED, yes, copied),
        (check.COPIED, no, failed),
        (check.DELETED, "{}", deleted),
        *((series, "{}", value) for series, value in (gauges or {}).items()),
    ]
    return [
        {"source": source, "source_kind": kind, "series": series, "labels_json": labels, "value": float(value)}
        for series, labels, value in values
        if value is not None
    ]


def rows(*processes: list[dict[str, Any]]) -> Rows:
    return {"metrics": [row for each in processes for row in each]}


IDLE = rows(process(found=BEFORE, copied=BEFORE), process("b2:8000"))

HISTORIES: dict[str, tuple[Sequence[Rows], Severity | None]] = {
    "nothing is found": ((IDLE, IDLE), None),
    "ledgers wait": ((rows(process(found=75, copied=70), process("b2:8000", copied=4)), IDLE), WARNING),
    "each found twice, and copied once": (
        (rows(process(found=94, audits=3, copied=78), process("b2:8000", copied=4)), IDLE),
        None,
    ),
    "each found twice, and some copied": (
        (rows(process(found=94, audits=3, copied=78), process("b2:8000", copied=3)), IDLE),
        WARNING,
    ),
    "found again by a later audit, and copied then": (
        (rows(process(found=90, audits=3, copied=80)), rows(process(found=80, audits=2, copied=70)), IDLE),
        None,
    ),
    "those of two bookies, of which none can be copied any more": (
        (rows(process(found=90, audits=3, copied=80, failed=9)), rows(process(found=90, audits=3, copied=80)), IDLE),
        WARNING,
    ),
    "tries that failed before all were copied": (
        (rows(process(found=80, copied=80, failed=5)), rows(process(found=80, copied=70, failed=5)), IDLE),
        None,
    ),
    "all are copied, by several": ((rows(process(found=75, copied=72), process("b2:8000", copied=3)), IDLE), None),
    "some were deleted before": ((rows(process(found=75, copied=72, deleted=3), process("b2:8000")), IDLE), None),
    "the auditor started anew, found more, and another one copied": (
        (rows(process(found=5, started=NOW.timestamp() - 60), process("b2:8000", copied=5)), IDLE),
        None,
    ),
    "and nobody copied": ((rows(process(found=5, started=NOW.timestamp() - 60), process("b2:8000")), IDLE), WARNING),
    "the auditor is gone, and what it found waits": (
        (rows(process("b2:8000", found=0)), rows(process(found=80, copied=70), process("b2:8000")), IDLE),
        WARNING,
    ),
    "a process that is new here, and not new": (
        (rows(process(found=70, copied=70), process("b3:8000", found=9)), IDLE),
        None,
    ),
    "auto recovery in processes of its own": (
        (rows(process(found=75, kind="autorecovery")), rows(process(found=70, kind="autorecovery"))),
        WARNING,
    ),
}


@pytest.mark.parametrize(("snapshots", "severity"), HISTORIES.values(), ids=HISTORIES)
def test_what_waits_is_found(snapshots: Sequence[Rows], severity: Severity | None) -> None:
    """Ledgers found with too few copies since the first snapshot are reported unless they were copied since."""
    now, *before = snapshots
    earlier = [minutes_ago(15 * (number + 1), each) for number, each in enumerate(before)]
    judgement = judge_rows(check.CHECK, now, earlier=earlier)
    assert severity_of(judgement) is severity
    assert judgement.cannot_tell is None


GAUGES: dict[str, tuple[str, Severity | None]] = {
    "no copy of an entry": (check.NO_COPY, CRITICAL),
    "fewer than the ack quorum": (check.BELOW_ACK_QUORUM, CRITICAL),
    "fewer than the write quorum": (check.BELOW_WRITE_QUORUM, WARNING),
    "waiting for too long": (check.OVERDUE, WARNING),
}


@pytest.mark.parametrize(("series", "severity"), GAUGES.values(), ids=GAUGES)
def test_periodic_checks_count_in_a_single_look(series: str, severity: Severity) -> None:
    """Ledgers that the auditor's periodic checks count are found without an earlier snapshot."""
    assert [each.severity for each in judge_rows(check.CHECK, rows(process(found=0, gauges={series: 1}))).findings] == [
        severity
    ]
    assert judge_rows(check.CHECK, rows(process(found=0, gauges={series: 0}))).findings == ()


def settings(bookies: int | None, *defaults: int, own: int | None = None) -> Rows:
    about = {"cluster": "lab", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": [], "bookies": bookies}
    policies = {} if own is None else {"persistence": {"bookkeeperEnsemble": 2, "bookkeeperWriteQuorum": own}}
    return {
        "snapshot": [about],
        "namespaces": [{"namespace": "acme/orders", "policies_json": json.dumps(policies)}],
        "configuration": [
            {"broker": f"b-{number}:8080", "key": WRITE_QUORUM, "value": str(value)}
            for number, value in enumerate(defaults)
        ],
    }


@pytest.mark.parametrize(
    ("told_by", "found"),
    [
        pytest.param(settings(5, 1), {"lab": WARNING}, id="the default"),
        pytest.param(settings(5, 2, 1), {"lab": WARNING}, id="the smallest of the brokers' counts"),
        pytest.param(settings(2, 2, own=1), {"acme/orders": Severity.INFO}, id="a namespace's own"),
        pytest.param(settings(5, 2, own=2), {}, id="two copies"),
        pytest.param(settings(1, 1, own=1), {}, id="one bookie alone"),
        pytest.param(settings(None, 1), {}, id="the number of bookies is not known"),
        pytest.param(settings(5), {}, id="no default was read"),
    ],
)
def test_settings_may_ask_for_too_few(told_by: Rows, found: dict[str, Severity]) -> None:
    """One copy is reported where there are more bookies: the loss of one would lose data (pulsar-helm-chart#567)."""
    assert {each.subject: each.severity for each in judge_rows(check.CHECK, told_by).findings} == found
    none = a_policy(ledgers_under_replicated={"warning_copies": 0})
    assert judge_rows(check.CHECK, told_by, none).findings == ()


def test_what_it_says(golden: Golden) -> None:
    """400 were found since the first snapshot and 40 copied: 360 wait; one without auto recovery is not missed."""
    gauges = {check.NO_COPY: 1, check.BELOW_WRITE_QUORUM: 20}
    now = rows(process(found=470, copied=100, failed=25, gauges=gauges), process("b2:8000", copied=10))
    halfway = rows(process(found=470, copied=80, failed=5), process("b2:8000"))
    idle = [minutes_ago(15, IDLE)]
    urls = ("bookie=http://b1:8000/metrics", "bookie=http://b2:8000/metrics", "autorecovery=http://r1:8000/metrics")
    named = a_policy(collect={"metrics_urls": urls})
    without = samples({STARTED: 1.0}, "r1:8000", "autorecovery")
    cases: dict[str, tuple[Any, ...]] = {
        "many wait": (now, None, [minutes_ago(15, halfway), minutes_ago(30, IDLE), minutes_ago(45, IDLE)]),
        "one that the policy names was not read": (IDLE, named, idle),
        "it was, and does not run auto recovery": (rows(IDLE["metrics"], without), named, idle),
        "a single one waits": (rows(process(found=72, copied=71), process("b2:8000")), None, idle),
        "all is well": (IDLE, None, idle),
        "all were copied": (
            rows(process(found=75, copied=75)),
            None,
            [minutes_ago(15, rows(process(found=70, copied=70)))],
        ),
        "nothing was read": (rows(),),
        "no auditor was": (rows(process()),),
        "a first snapshot": (IDLE,),
        "one copy by default and by a namespace": (settings(5, 1, own=1),),
    }
    golden(told({rule: judge_rows(check.CHECK, *case) for rule, case in cases.items()}))
