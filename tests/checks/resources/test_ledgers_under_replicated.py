"""Ledgers with too few copies: what the auditor found, less what was copied since, and its periodic checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources import ledgers_under_replicated as check
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED
from tests.builders import NOW, a_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.checks.conftest import JudgeRows, Rows
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
    """A snapshot of these processes."""
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
def test_what_waits_is_found(
    judged: JudgeRows, minutes_ago: Callable[[float, Rows], Rows], snapshots: Sequence[Rows], severity: Severity | None
) -> None:
    """Ledgers found with too few copies since the first snapshot are reported unless they were copied since."""
    now, *before = snapshots
    earlier = [minutes_ago(15 * (number + 1), each) for number, each in enumerate(before)]

    judgement = judged(check.CHECK, now, earlier=earlier)

    assert [finding.severity for finding in judgement.findings] == ([severity] if severity else [])
    assert judgement.cannot_tell is None


GAUGES: dict[str, tuple[str, Severity | None]] = {
    "no copy of an entry": (check.NO_COPY, CRITICAL),
    "fewer than the ack quorum": (check.BELOW_ACK_QUORUM, CRITICAL),
    "fewer than the write quorum": (check.BELOW_WRITE_QUORUM, WARNING),
    "waiting for too long": (check.OVERDUE, WARNING),
}


@pytest.mark.parametrize(("series", "severity"), GAUGES.values(), ids=GAUGES)
def test_periodic_checks_count_in_a_single_look(judged: JudgeRows, series: str, severity: Severity) -> None:
    """Ledgers that the auditor's periodic checks count are found without an earlier snapshot."""
    assert [each.severity for each in judged(check.CHECK, rows(process(found=0, gauges={series: 1}))).findings] == [
        severity
    ]
    assert judged(check.CHECK, rows(process(found=0, gauges={series: 0}))).findings == ()


def test_the_evidence_can_be_checked_by_hand(
    judged: JudgeRows, minutes_ago: Callable[[float, Rows], Rows], golden: Golden
) -> None:
    """The evidence states how many ledgers were found, since when, how many were copied and how many tries failed."""
    gauges = {check.NO_COPY: 1, check.BELOW_WRITE_QUORUM: 20}
    now = rows(process(found=470, copied=100, failed=25, gauges=gauges), process("b2:8000", copied=10))
    halfway = rows(process(found=470, copied=80, failed=5), process("b2:8000"))
    earlier = [minutes_ago(15, halfway), minutes_ago(30, IDLE), minutes_ago(45, IDLE)]

    (finding,) = judged(check.CHECK, now, earlier=earlier).findings

    assert finding.subject == "b1:8000"
    golden(finding.evidence)
    assert finding.figures == {
        "audits": 1,
        "below_ack_quorum": 0,
        "below_write_quorum": 20,
        "ledgers_copied": 40,
        "ledgers_found": 400,
        "ledgers_waiting": 360,
        "no_copy": 1,
        "overdue": 0,
        "tries_failed": 25,
    }


def test_a_server_that_the_policy_names_has_to_be_read(
    judged: JudgeRows, minutes_ago: Callable[[float, Rows], Rows]
) -> None:
    """The check cannot tell if a named server is not in the snapshot; one without auto recovery is no such server."""
    urls = ("bookie=http://b1:8000/metrics", "bookie=http://b2:8000/metrics", "autorecovery=http://r1:8000/metrics")
    policy = a_policy(collect={"metrics_urls": urls})
    earlier = [minutes_ago(15, IDLE)]
    without = {"source": "r1:8000", "source_kind": "autorecovery", "series": STARTED, "labels_json": "{}", "value": 1.0}

    lacking = judged(check.CHECK, IDLE, policy, earlier)
    assert lacking.cannot_tell == "The snapshot lacks metrics of r1:8000, named in collect.metrics_urls."
    assert judged(check.CHECK, rows(IDLE["metrics"], [without]), policy, earlier).cannot_tell is None


def test_a_single_ledger_waits(judged: JudgeRows, minutes_ago: Callable[[float, Rows], Rows]) -> None:
    """The evidence counts a single ledger that has its copies again, and a single one that waits, in the singular."""
    now = rows(process(found=72, copied=71), process("b2:8000"))

    (finding,) = judged(check.CHECK, now, earlier=[minutes_ago(15, IDLE)]).findings

    assert finding.evidence.endswith("; 1 has all of them again since: at least 1 waits.")


def test_what_was_looked_at_is_told(
    judged: JudgeRows, minutes_ago: Callable[[float, Rows], Rows], golden: Golden
) -> None:
    """The result covers no waiting ledger, no process, no auditor among the processes, and a first snapshot."""
    said = [
        judged(check.CHECK, IDLE, earlier=[minutes_ago(15, IDLE)]),
        judged(
            check.CHECK,
            rows(process(found=75, copied=75)),
            earlier=[minutes_ago(15, rows(process(found=70, copied=70)))],
        ),
        judged(check.CHECK, rows()),
        judged(check.CHECK, rows(process())),
        judged(check.CHECK, IDLE),
    ]

    golden("\n".join(f"{each.quiet} | {each.cannot_tell}" for each in said))
