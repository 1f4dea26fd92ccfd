"""A check-up as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.model.finding import Finding, Outlook, Severity, Verdict
from pulsar_steward.pages.clusters import USUAL_GAP, seen_of
from pulsar_steward.report.checkup.compose import OTHER, check_reports, counts_of
from pulsar_steward.report.checkup.document import CheckupOutcome
from pulsar_steward.report.overview import summary_of
from pulsar_steward.snapshots.read import open_snapshot
from tests.builders import NOW
from tests.unit.report_checkup.snapshots import a_finding, a_verdict, meta, skewed, written

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pulsar_steward.report.checkup.document import Checkup

    Make = Callable[..., Checkup]

CLEAR = a_verdict("bundle-topic-skew", "clear")
UNKNOWN = a_verdict("tc-skew", "unknown")
FOUND = a_verdict("tc-skew", "found")


@pytest.mark.parametrize(
    ("severities", "verdicts", "outcome", "code"),
    [
        pytest.param([], [CLEAR], CheckupOutcome.HEALTHY, 0, id="all clear"),
        pytest.param([], [CLEAR, UNKNOWN], CheckupOutcome.HEALTHY, 0, id="some clear, some unknown"),
        pytest.param(["info"], [CLEAR, FOUND], CheckupOutcome.HEALTHY, 0, id="information only"),
        pytest.param(["warning"], [CLEAR, FOUND], CheckupOutcome.FINDINGS, 1, id="a warning"),
        pytest.param(["critical", "info"], [FOUND], CheckupOutcome.FINDINGS, 1, id="critical, and nothing clear"),
        pytest.param([], [UNKNOWN], CheckupOutcome.COULD_NOT_LOOK, 2, id="all unknown"),
        pytest.param([], [], CheckupOutcome.COULD_NOT_LOOK, 2, id="no verdict at all"),
        pytest.param(["info"], [FOUND, UNKNOWN], CheckupOutcome.COULD_NOT_LOOK, 2, id="information, and nothing clear"),
    ],
)
def test_the_outcome_and_its_exit_code(
    checkup_with: Make, severities: list[str], verdicts: list[dict[str, object]], outcome: CheckupOutcome, code: int
) -> None:
    """The exit code is 1 with a warning or worse, else 0 with a clear check, else 2, as the check-up could not look."""
    made = checkup_with(findings=[a_finding(severity) for severity in severities], verdicts=verdicts)

    assert (made.outcome, made.outcome.exit_code) == (outcome, code)


def test_every_check_of_the_catalog_is_there_in_its_order(checkup_with: Make) -> None:
    """The check-up lists all checks in catalog order, each with a reason; those without a verdict are unknown."""
    checks = checkup_with().checks

    assert [check.check_id for check in checks] == list(BY_ID)
    assert all(check.reason for check in checks)
    assert {check.outlook for check in checks if check.check_id not in {"tc-skew", "bundle-topic-skew"}} <= {
        Outlook.UNKNOWN
    }


def test_a_check_that_only_the_snapshot_knows_is_reported() -> None:
    """A check that this version does not know is reported in the section of other checks."""
    (known, unknown) = check_reports(
        [Finding(check_id="of-tomorrow", severity=Severity.WARNING, subject="s", evidence="e")],
        [],
        catalog={"tc-skew": BY_ID["tc-skew"]},
    )

    assert known.outlook is Outlook.UNKNOWN
    assert (unknown.check_id, unknown.section, unknown.outlook) == ("of-tomorrow", OTHER, Outlook.FOUND)
    assert unknown.reason == "e"


def test_findings_come_worst_first_and_those_not_listed_are_counted() -> None:
    """Findings are listed worst first, with the number of further ones that the verdict tells."""
    findings = [
        Finding(check_id="tc-skew", severity=severity, subject=subject, evidence="e")
        for severity, subject in ((Severity.INFO, "a"), (Severity.CRITICAL, "b"), (Severity.WARNING, "c"))
    ]
    verdict = Verdict(check_id="tc-skew", outlook=Outlook.FOUND, reason="e And 1,101 more.", more=1099)

    (report,) = check_reports(findings, [verdict], catalog={"tc-skew": BY_ID["tc-skew"]})

    assert [finding.subject for finding in report.findings] == ["b", "c", "a"]
    assert (report.severity, report.not_listed) == (Severity.CRITICAL, 1099)


def test_a_partial_snapshot_names_what_is_unread(checkup_with: Make) -> None:
    """A partial snapshot's unread brokers and namespaces are listed, brokers with the reason."""
    broker = {"broker": "broker-09:8080", "read": False, "leader": False, "read_milliseconds": 3}
    about = checkup_with(
        snapshot=meta(unread_brokers=["broker-09:8080"], unread_namespaces=["acme/orders"]),
        brokers=[broker | {"failure": "refused"}],
    ).about

    assert not about.complete
    assert [(each.kind, each.name, each.reason) for each in about.unread] == [
        ("broker", "broker-09:8080", "refused"),
        ("namespace", "acme/orders", None),
    ]
    assert (about.brokers, about.brokers_read) == (1, 0)


def test_what_would_be_proposed_is_said_in_short(checkup_with: Make) -> None:
    """A proposed batch is listed with its kind, its title, its number of steps and whether it can be undone."""
    (batch,) = checkup_with(**skewed()).planning.batches

    assert (batch.kind, batch.steps, batch.undoable) == ("tc_balance", 4, True)
    assert "16 transaction coordinators" in batch.title


def test_all_who_count_findings_tell_the_same_numbers(tmp_path: Path) -> None:
    """Check-up and overview, which pages and metrics show, count all findings and the listed ones alike."""
    verdicts = [
        a_verdict("tc-skew", "found", more=9, more_critical=4, more_warning=3),
        a_verdict("hot-bundle", "found", more=5),
    ]
    findings = [a_finding(), a_finding("info"), a_finding("warning", "hot-bundle")]
    snapshot = open_snapshot(written(tmp_path / "snapshot", findings=findings, verdicts=verdicts))

    counts = counts_of(check_reports(snapshot.findings(), snapshot.verdicts()))
    seen = seen_of(summary_of(snapshot), NOW, USUAL_GAP)

    assert (counts.found.critical, counts.found.warning, counts.found.info) == (5, 9, 3)
    assert (seen.critical, seen.warning, seen.info, seen.found) == (5, 9, 3, 17)
    assert (counts.critical + counts.warning + counts.info, seen.listed) == (3, 3)
