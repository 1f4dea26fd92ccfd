"""Processors that are busy all the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pulsar_steward.checks.resources.processors import CPU_BUSY as CHECK
from pulsar_steward.checks.resources.processors import SECONDS
from pulsar_steward.model.finding import Severity
from pulsar_steward.model.measures import STARTED
from pulsar_steward.policy.schema import Policy
from tests.builders import NOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.checks.conftest import JudgeRows, Rows
    from tests.golden import Golden

START = NOW.timestamp() - 10_000
INFO, WARNING, CRITICAL = Severity.INFO, Severity.WARNING, Severity.CRITICAL
OF_FOUR = Policy.model_validate({"cpu_busy": {"bookie_processors": 4, "zookeeper_processors": 4}})


def used(
    seconds: float, *, kind: str = "bookie", source: str = "b:1", started: float | None = START
) -> list[dict[str, Any]]:
    """Samples of a process that used so many seconds of processors since its start, 10,000 seconds ago."""
    values = {SECONDS: seconds, STARTED: started}
    return [
        {"source": source, "source_kind": kind, "series": series, "labels_json": "{}", "value": float(value)}
        for series, value in values.items()
        if value is not None
    ]


def rows(*processes: list[dict[str, Any]], load: float | None = 20.0) -> Rows:
    """A snapshot of these processes, and of a broker with this load."""
    brokers = [{"broker": "a:1", "read": True, "cpu_percent": load}, {"broker": "gone:1", "read": False}]
    return {"brokers": brokers, "metrics": [row for each in processes for row in each]}


CASES: dict[str, tuple[Rows, Severity | None, bool]] = {
    "idle": (rows(used(5_000)), None, False),
    "just below": (rows(used(31_900)), None, False),
    "80 % of four": (rows(used(32_000)), WARNING, False),
    "95 % of four": (rows(used(38_000, kind="zookeeper")), CRITICAL, False),
    "a process that is too young": (rows(used(1_100, started=NOW.timestamp() - 290)), None, True),
    "and one that is not": (rows(used(1_200, started=NOW.timestamp() - 300)), CRITICAL, False),
    "of unknown age": (rows(used(39_000, started=None)), None, True),
    "a broker in a single look": (rows(load=97.0), INFO, False),
    "a broker of unknown load": (rows(load=None), None, True),
    "nothing was read": ({"brokers": [], "metrics": []}, None, True),
}


@pytest.mark.parametrize(("snapshot", "severity", "unknown"), CASES.values(), ids=CASES)
def test_a_process_is_judged_by_its_processors(
    judged: JudgeRows, snapshot: Rows, severity: Severity | None, unknown: bool
) -> None:
    """A process is judged by its processor time since its start if there is no earlier snapshot."""
    judgement = judged(CHECK, snapshot, OF_FOUR)

    assert [finding.severity for finding in judgement.findings] == ([severity] if severity else [])
    assert (judgement.cannot_tell is not None) is unknown


HISTORIES: dict[str, tuple[Rows, Rows, Severity | None]] = {
    "busy lately": (rows(used(23_500)), rows(used(20_000)), CRITICAL),
    "busy before": (rows(used(30_300)), rows(used(30_000)), None),
    "a broker in two looks": (rows(load=97.0), rows(load=96.0), CRITICAL),
    "a broker, less before": (rows(load=97.0), rows(load=81.0), WARNING),
    "a broker, idle before": (rows(load=97.0), rows(load=20.0), INFO),
    "a broker, idle now": (rows(load=20.0), rows(load=97.0), None),
}


@pytest.mark.parametrize(("now", "before", "severity"), HISTORIES.values(), ids=HISTORIES)
def test_what_was_used_since_the_snapshot_before_counts(
    judged: JudgeRows, minutes_ago: Callable[[float, Rows], Rows], now: Rows, before: Rows, severity: Severity | None
) -> None:
    """A process is judged by its use since the snapshot before, and a broker by the load reports of both snapshots."""
    judgement = judged(CHECK, now, OF_FOUR, [minutes_ago(15, before)])

    assert [finding.severity for finding in judgement.findings] == ([severity] if severity else [])


def test_without_a_number_of_processors_nothing_is_judged_but_told(judged: JudgeRows, golden: Golden) -> None:
    """A process of unknown processors is information from four busy ones on; with fewer the check cannot tell."""
    (finding,) = judged(CHECK, rows(used(40_000))).findings
    few = judged(CHECK, rows(used(39_000), used(1_000, kind="zookeeper", source="z:1")))

    assert finding.severity is INFO
    assert few.findings == ()
    golden("\n".join((finding.evidence, str(few.quiet), str(few.cannot_tell))))


def test_the_evidence_can_be_checked_by_hand(
    judged: JudgeRows, minutes_ago: Callable[[float, Rows], Rows], golden: Golden
) -> None:
    """The evidence has the load that a broker reports and what each process used, and the busiest comes first."""
    now = rows(used(5_600, kind="broker", source="a:1"), used(23_500), load=90.4)
    before = rows(used(5_000, kind="broker", source="a:1"), used(20_000), load=85.0)

    findings = judged(CHECK, now, OF_FOUR, [minutes_ago(15, before)]).findings

    assert [finding.subject for finding in findings] == ["b:1", "a:1"]
    golden("\n".join(finding.evidence for finding in findings))
    assert findings[0].figures == {"percent": 97, "processors": 4, "processors_busy_thousandths": 3888, "seconds": 900}


def test_what_was_looked_at_is_told(judged: JudgeRows, golden: Golden) -> None:
    """The result says what was judged when all is well, without any metrics, and when a process is too young."""
    snapshots: tuple[Rows, ...] = (
        rows(used(5_000)),
        {"brokers": [], "metrics": []},
        rows(used(900, started=NOW.timestamp() - 100)),
    )

    golden(
        "\n".join(f"{each.quiet} | {each.cannot_tell}" for each in (judged(CHECK, one, OF_FOUR) for one in snapshots))
    )
