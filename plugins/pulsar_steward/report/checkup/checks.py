"""Reports of all checks of the catalog, with the snapshot's verdicts and findings; no check is left out."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from pulsar_steward.checks.check import CheckWords
from pulsar_steward.checks.registry import BY_ID, GROUPS
from pulsar_steward.logs.patterns import LOG_CHECKS
from pulsar_steward.logs.patterns import SECTION as LOGS
from pulsar_steward.model.finding import Finding, Outlook, Verdict
from pulsar_steward.report.checkup.document import BySeverity, CheckReport, FindingReport

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


OTHER = "Other checks"
"""Section for checks unknown to this version, if another version diagnosed the snapshot."""

_SECTION_OF = {check.check_id: group.title for group in GROUPS for check in group.checks} | dict.fromkeys(
    LOG_CHECKS, LOGS
)


def section_of(check_id: str) -> str:
    """Section of the guide for a check."""
    return _SECTION_OF.get(check_id, OTHER)


def check_reports(
    findings: Sequence[Finding], verdicts: Sequence[Verdict], catalog: Mapping[str, CheckWords] = BY_ID
) -> tuple[CheckReport, ...]:
    """Reports in the catalog's order, then reports of checks that only the snapshot has."""
    found: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        found[finding.check_id].append(finding)
    said = {verdict.check_id: verdict for verdict in verdicts}
    ids = dict.fromkeys((*catalog, *sorted({*said, *found})))
    return tuple(_report(catalog.get(each) or _wordless(each), said.get(each), found[each]) for each in ids)


def _report(info: CheckWords, verdict: Verdict | None, findings: Sequence[Finding]) -> CheckReport:
    worst_first = tuple(sorted(findings, key=lambda finding: -finding.severity.rank))
    verdict = verdict or _unsaid(info.check_id, worst_first)
    return CheckReport(
        check_id=info.check_id,
        section=section_of(info.check_id),
        title=info.title,
        outlook=verdict.outlook,
        reason=verdict.reason,
        severity=worst_first[0].severity if worst_first else None,
        findings=tuple(_finding(finding) for finding in worst_first),
        not_listed=verdict.more,
        not_graded=verdict.ungraded,
        found=BySeverity.of(verdict.found(Counter(finding.severity for finding in findings))),
        advice=info.advice,
        source=info.source,
        remedied_by=info.remedied_by,
    )


def _finding(finding: Finding) -> FindingReport:
    return FindingReport(
        severity=finding.severity,
        subject=finding.subject,
        evidence=finding.evidence,
        figures=finding.figures,
        first_seen=finding.first_seen,
        snapshots_in_a_row=finding.snapshots_in_a_row,
    )


def _unsaid(check_id: str, findings: Sequence[Finding]) -> Verdict:
    """Verdict for a check without one: it is never "clear"."""
    if findings:
        return Verdict(check_id=check_id, outlook=Outlook.FOUND, reason=findings[0].evidence)
    reason = "The snapshot was diagnosed without this check: diagnose it again."
    return Verdict(check_id=check_id, outlook=Outlook.UNKNOWN, reason=reason)


def _wordless(check_id: str) -> CheckWords:
    advice = ("Look at it with the version of Steward that found it: this one does not know the check.",)
    return CheckWords(check_id=check_id, title=check_id, advice=advice, source="")
