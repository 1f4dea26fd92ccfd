"""Holds what was found against what a fault is labelled with; no cluster and no Spark in here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulsar_steward.model.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.faults.fault import Expected, Fault
    from pulsar_steward.model.finding import Finding, Verdict


@dataclass(frozen=True)
class Missed:
    """An expected finding that is not there, and what its check said instead."""

    expected: Expected
    said: str


@dataclass(frozen=True)
class Judgement:
    """What one fault says of the checks.

    Attributes:
        found: Expected, and there.
        missed: Expected, and not there.
        false: There at warning or critical, and neither expected nor allowed.
        allowed: There, and allowed by the label.
    """

    found: tuple[Expected, ...] = ()
    missed: tuple[Missed, ...] = ()
    false: tuple[Finding, ...] = ()
    allowed: tuple[Finding, ...] = ()

    @property
    def right(self) -> bool:
        """Whether nothing is missed and nothing false."""
        return not self.missed and not self.false


def judge(fault: Fault, findings: Sequence[Finding], verdicts: Sequence[Verdict]) -> Judgement:
    """Compares findings at warning and critical with the labels; information counts neither way.

    A finding of an expected check about another subject is false: it is not what the label says.
    """
    serious = [finding for finding in findings if finding.severity is not Severity.INFO]
    said = {verdict.check_id: f"{verdict.outlook.value}: {verdict.reason}" for verdict in verdicts}
    there = [expected for expected in fault.expected if any(_fits(expected, finding) for finding in serious)]
    others = [finding for finding in serious if not any(_fits(expected, finding) for expected in fault.expected)]
    return Judgement(
        found=tuple(there),
        missed=tuple(
            Missed(expected, said.get(expected.check_id, "there is no such check"))
            for expected in fault.expected
            if expected not in there
        ),
        false=tuple(finding for finding in others if finding.check_id not in fault.allowed),
        allowed=tuple(finding for finding in others if finding.check_id in fault.allowed),
    )


def _fits(expected: Expected, finding: Finding) -> bool:
    return finding.check_id == expected.check_id and re.search(expected.subject, finding.subject) is not None
