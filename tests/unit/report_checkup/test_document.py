"""What a check-up says as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pulsar_steward.model.catalog import CHECKS
from pulsar_steward.model.finding import Finding, Outlook, Severity, Verdict
from pulsar_steward.report.checkup.checks import check_reports
from pulsar_steward.report.checkup.document import Outcome
from pulsar_steward.report.checkup.sections import OTHER, SECTIONS
from tests.unit.report_checkup.snapshots import NASTY, a_finding, a_verdict, meta, skewed

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsar_steward.report.checkup.document import Checkup

    Make = Callable[..., Checkup]

CLEAR = a_verdict("bundle-topic-skew", "clear")
UNKNOWN = a_verdict("tc-skew", "unknown")
FOUND = a_verdict("tc-skew", "found")


@pytest.mark.parametrize(
    ("severities", "verdicts", "outcome", "code"),
    [
        pytest.param([], [CLEAR], Outcome.HEALTHY, 0, id="all clear"),
        pytest.param([], [CLEAR, UNKNOWN], Outcome.HEALTHY, 0, id="some clear, some unknown"),
        pytest.param(["info"], [CLEAR, FOUND], Outcome.HEALTHY, 0, id="information only"),
        pytest.param(["warning"], [CLEAR, FOUND], Outcome.FINDINGS, 1, id="a warning"),
        pytest.param(["critical", "info"], [FOUND], Outcome.FINDINGS, 1, id="critical, and nothing clear"),
        pytest.param([], [UNKNOWN], Outcome.COULD_NOT_LOOK, 2, id="all unknown"),
        pytest.param([], [], Outcome.COULD_NOT_LOOK, 2, id="no verdict at all"),
        pytest.param(["info"], [FOUND, UNKNOWN], Outcome.COULD_NOT_LOOK, 2, id="information, and nothing clear"),
    ],
)
def test_the_outcome_and_its_exit_code(
    checkup_with: Make, severities: list[str], verdicts: list[dict[str, object]], outcome: Outcome, code: int
) -> None:
    """Information is no trouble, and where nothing is clear nothing is known to be well."""
    made = checkup_with(findings=[a_finding(severity) for severity in severities], verdicts=verdicts)

    assert (made.outcome, made.outcome.exit_code) == (outcome, code)


def test_every_check_of_the_catalog_is_there_in_its_order(checkup_with: Make) -> None:
    """None is left out; those without a verdict are unknown, with a reason."""
    checks = checkup_with().checks

    assert [check.check_id for check in checks] == list(CHECKS)
    assert all(check.reason for check in checks)
    assert {check.outlook for check in checks if check.check_id not in {"tc-skew", "bundle-topic-skew"}} <= {
        Outlook.UNKNOWN
    }


def test_the_sections_hold_the_catalog_in_its_order() -> None:
    """A group of checks that is new has a heading too."""
    assert [info.check_id for _, infos in SECTIONS for info in infos] == list(CHECKS)


def test_a_check_that_only_the_snapshot_knows_is_reported() -> None:
    """A newer version may have diagnosed the snapshot."""
    (known, unknown) = check_reports(
        [Finding(check_id="of-tomorrow", severity=Severity.WARNING, subject="s", evidence="e")],
        [],
        catalog={"tc-skew": CHECKS["tc-skew"]},
    )

    assert known.outlook is Outlook.UNKNOWN
    assert (unknown.check_id, unknown.section, unknown.outlook) == ("of-tomorrow", OTHER, Outlook.FOUND)
    assert unknown.reason == "e"


def test_findings_come_worst_first_and_those_not_listed_are_counted() -> None:
    """The verdict counts more findings than the table lists."""
    findings = [
        Finding(check_id="tc-skew", severity=severity, subject=subject, evidence="e")
        for severity, subject in ((Severity.INFO, "a"), (Severity.CRITICAL, "b"), (Severity.WARNING, "c"))
    ]
    verdict = Verdict(check_id="tc-skew", outlook=Outlook.FOUND, reason="e And 1,101 more.")

    (report,) = check_reports(findings, [verdict], catalog={"tc-skew": CHECKS["tc-skew"]})

    assert [finding.subject for finding in report.findings] == ["b", "c", "a"]
    assert (report.severity, report.not_listed) == (Severity.CRITICAL, 1099)


def test_a_partial_snapshot_names_what_is_unread(checkup_with: Make) -> None:
    """A broker comes with the reason why it could not be read."""
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


def test_the_measures_are_those_of_the_tables(checkup_with: Make) -> None:
    """Coordinators and topics by broker, the most crowded namespaces, and the backlog where there is any."""
    measures = checkup_with().measures

    assert [(each.topics, each.coordinators) for each in measures.brokers] == [(0, 16), (10, 0), (20, 0)]
    assert measures.crowded[0].namespace == NASTY
    assert [each.topics for each in measures.crowded[0].bundles] == [900, 1]
    assert [(each.namespace, each.backlog_bytes) for each in measures.backlog] == [(NASTY, 3 * 1024**3)]


def test_a_large_namespace_is_cut_and_says_so(checkup_with: Make) -> None:
    """The fullest bundles are listed, the others counted; bundles that could not be read are neither."""
    bundles = [
        {"namespace": "a/b", "bundle": f"0x{number:08x}", "owner_known": True, "topics": number} for number in range(40)
    ]
    unread = {"namespace": "a/b", "bundle": "0x99", "owner_known": False, "topics": None}

    (crowded,) = checkup_with(bundles=[*bundles, unread]).measures.crowded

    assert [each.topics for each in crowded.bundles] == list(range(39, 23, -1))
    assert crowded.not_listed == 24


def test_a_broker_that_was_not_read_has_no_figures(checkup_with: Make) -> None:
    """Not known is not none."""
    row = {"broker": "broker-00:8080", "read": False, "leader": False, "read_milliseconds": 3}

    (load,) = checkup_with(brokers=[row], snapshot=meta(unread_brokers=["broker-00:8080"])).measures.brokers

    assert (load.topics, load.coordinators) == (None, None)


def test_what_would_be_proposed_is_said_in_short(checkup_with: Make) -> None:
    """A batch with its steps, clients and way back."""
    (batch,) = checkup_with(**skewed()).planning.batches

    assert (batch.kind, batch.steps, batch.undoable) == ("tc_balance", 4, True)
    assert "16 transaction coordinators" in batch.title


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        pytest.param(
            {"verdicts": [a_verdict(check_id, "clear") for check_id in CHECKS]},
            "there is nothing to change",
            id="nothing found",
        ),
        pytest.param({"verdicts": [UNKNOWN]}, "tc-skew could not be judged", id="unknown"),
        pytest.param(
            {"verdicts": [FOUND], "findings": [a_finding("info")]}, "tc-skew is information only", id="information"
        ),
        pytest.param(
            {
                "verdicts": [a_verdict("clock-skew", "found")],
                "findings": [a_finding("warning", "of-tomorrow")],
            },
            "no remedy of its own for of-tomorrow",
            id="no planner",
        ),
        pytest.param(
            {**skewed(), "snapshot": meta(unread_brokers=["broker-02:8080"])}, "the snapshot is partial", id="partial"
        ),
        pytest.param({**skewed(), "snapshot": meta(tcs_by_bundle=False)}, "PIP-473", id="the planner's own note"),
    ],
)
def test_why_nothing_is_proposed_is_never_left_open(
    checkup_with: Make, changed: dict[str, list[dict[str, object]]], words: str
) -> None:
    """There is a reason in words."""
    planning = checkup_with(**changed).planning

    assert planning.batches == ()
    assert words in " ".join(planning.reasons)
