"""Holds what was found against what faults are labelled with; no cluster in here."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lab.faults.fault import RealFault
from pulsar_steward.model.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lab.faults.fault import Expected, Fault
    from pulsar_steward.model.finding import Finding, Verdict


@dataclass(frozen=True)
class Missed:
    """An expected finding that is not there, and what its check said instead.

    Attributes:
        expected: The finding.
        said: What its check said instead.
        half: Whether the check did find it, but its evidence lacks what it has to name.
    """

    expected: Expected
    said: str
    half: bool = False


@dataclass(frozen=True)
class Judgement:
    """Result of one fault: what the checks found of it, missed and found falsely.

    Attributes:
        found: Expected, and there.
        missed: Expected, and not there.
        false: There at warning or critical, and neither expected nor allowed.
        allowed: There, and allowed by the label.
        harmful: What would make a reported trouble worse, and was said or proposed.
        unproposed: What should be proposed against a reported trouble, and is not.
    """

    found: tuple[Expected, ...] = ()
    missed: tuple[Missed, ...] = ()
    false: tuple[Finding, ...] = ()
    allowed: tuple[Finding, ...] = ()
    harmful: tuple[str, ...] = ()
    unproposed: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        """True if nothing is missed, false or harmful."""
        return not (self.missed or self.false or self.harmful or self.unproposed)

    @property
    def verdict(self) -> str:
        """``found``, ``half`` (without cause or remedy), ``missed``, ``wrong`` or ``harmful``: the worst that holds."""
        if self.harmful:
            return "harmful"
        if self.false:
            return "wrong"
        if all(each.half for each in self.missed):
            return "half" if self.missed or self.unproposed else "found"
        return "missed"


def judge(
    fault: Fault, findings: Sequence[Finding], verdicts: Sequence[Verdict], proposed: Iterable[str] = ()
) -> Judgement:
    """Compares findings at warning and critical with the labels; information counts neither way.

    A finding of an expected check about another subject is false: it is not what the label says.

    Args:
        fault: What was made.
        findings: What was found.
        verdicts: What the checks said.
        proposed: The steps that are proposed, in words.
    """
    judged, strays = judge_together((fault,), findings, verdicts)
    own = judged[fault.name]
    said = (*(finding.evidence for finding in findings), *proposed)
    never, remedy = (fault.report.never, fault.report.remedy) if fault.report else ((), ())
    harmful = tuple(words for words in said if any(re.search(pattern, words) for pattern in never))
    return Judgement(own.found, own.missed, (*own.false, *strays), own.allowed, harmful, _unproposed(remedy, proposed))


def _unproposed(remedy: Iterable[str], proposed: Iterable[str]) -> tuple[str, ...]:
    """What is not proposed after what comes before it in the remedy."""
    steps = iter(proposed)
    return tuple(pattern for pattern in remedy if not any(re.search(pattern, step) for step in steps))


def judge_together(
    faults: Sequence[Fault], findings: Iterable[Finding], verdicts: Iterable[Verdict]
) -> tuple[dict[str, Judgement], tuple[Finding, ...]]:
    """The same of faults that were looked at together, each by its name; and what is false though it is none's.

    A finding about something in a fault's namespace is that fault's. Any other, about a broker or the cluster, is that
    of each fault that expects it, or else of the first that allows it.
    """
    serious = [finding for finding in findings if finding.severity is not Severity.INFO]
    said = {verdict.check_id: f"{verdict.outlook.value}: {verdict.reason}" for verdict in verdicts}
    of_namespaces = {fault.namespace: fault for fault in faults if isinstance(fault, RealFault)}
    own: dict[str, list[Finding]] = {fault.name: [] for fault in faults}
    strays = []
    for finding in serious:
        owners = _owners(finding, faults, of_namespaces)
        for owner in owners:
            own[owner.name].append(finding)
        if not owners:
            strays.append(finding)
    return {fault.name: _judged(fault, own[fault.name], said) for fault in faults}, tuple(strays)


def _owners(finding: Finding, faults: Sequence[Fault], of_namespaces: Mapping[str, Fault]) -> list[Fault]:
    if (owner := of_namespaces.get(namespace_of(finding.subject))) is not None:
        return [owner]
    expecting = [fault for fault in faults if any(_fits_but_for_its_cause(each, finding) for each in fault.expected)]
    return expecting or [fault for fault in faults if finding.check_id in fault.allowed][:1]


def namespace_of(subject: str) -> str:
    """The namespace that a topic, subscription or bundle is in, or the subject itself."""
    found = re.match(r"(?:(?:non-)?persistent://)?([^/\s]+/[^/\s]+)", subject)
    return found[1] if found else subject


def _judged(fault: Fault, serious: Sequence[Finding], said: Mapping[str, str]) -> Judgement:
    there = [expected for expected in fault.expected if any(_fits(expected, finding) for finding in serious)]
    others = [finding for finding in serious if not any(_fits(expected, finding) for expected in fault.expected)]
    halves = [each for each in others if any(_fits_but_for_its_cause(one, each) for one in fault.expected)]
    return Judgement(
        found=tuple(there),
        missed=tuple(
            Missed(
                expected,
                said.get(expected.check_id, "there is no such check"),
                any(_fits_but_for_its_cause(expected, finding) for finding in serious),
            )
            for expected in fault.expected
            if expected not in there
        ),
        false=tuple(finding for finding in others if finding.check_id not in fault.allowed and finding not in halves),
        allowed=tuple(finding for finding in others if finding.check_id in fault.allowed),
    )


def _fits_but_for_its_cause(expected: Expected, finding: Finding) -> bool:
    return _fits(replace(expected, evidence=""), finding)


def _fits(expected: Expected, finding: Finding) -> bool:
    if finding.check_id != expected.check_id or re.search(expected.subject, finding.subject) is None:
        return False
    return re.search(expected.evidence, finding.evidence) is not None
