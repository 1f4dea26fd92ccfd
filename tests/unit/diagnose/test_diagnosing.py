"""All checks together: each has its say, also where another one breaks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.checks.placement.coordinators import TcSkewPolicy
from pulsar_steward.diagnose.diagnosing import diagnose, verdict_of
from pulsar_steward.errors import SnapshotError
from pulsar_steward.model.finding import Finding, Outlook, Severity
from pulsar_steward.model.tables import FINDINGS, TRENDS, VERDICTS
from pulsar_steward.policy.schema import Policy
from pulsar_steward.runtime.parallel import OnThreads, on_this_thread
from pulsar_steward.snapshots.folder import LocalFiles, SnapshotFolder
from tests.unit.diagnose.conftest import ABOUT, FolderOf

if TYPE_CHECKING:
    from pulsar_steward.checks.check import CheckContext, Queried


class Named(Check):
    """A check of any name, under the limits of another."""

    section = "tc_skew"  # that of a made-up name is in no policy


def a_check(name: str, judgement: Judgement, **queries: dict[str, Query]) -> Check:
    """A made-up check that says so."""
    return Named(
        check_id=name,
        title="made up",
        advice=(),
        source="here",
        policy=TcSkewPolicy,
        judge=lambda _answers, _context: judgement,
        **queries,  # type: ignore[arg-type]  # by the names of its fields
    )


DEFECT = "The check itself failed, which is a defect: "


def broken(_answers: Queried, _context: CheckContext[Any]) -> NoReturn:
    """A judge with a defect."""
    raise ZeroDivisionError("division by zero\nand more")


FINE = a_check("fine", Judgement(quiet="All is well."))


def verdicts_of(folder: SnapshotFolder) -> dict[str, tuple[str, str]]:
    """Verdicts that were written: outlook and reason by check, in order."""
    return {row["check_id"]: (row["outlook"], row["reason"]) for row in folder.read(VERDICTS).to_pylist()}


def test_a_broken_check_cannot_tell_and_stops_no_other(folder_of: FolderOf) -> None:
    judge = Named(check_id="judge", title="made up", advice=(), source="here", policy=TcSkewPolicy, judge=broken)
    query = a_check("question", Judgement(), shards={"x": Query("select nothing from nowhere")})
    folder = folder_of({"snapshot": [ABOUT]})

    diagnose(folder, Policy(), on_this_thread, [judge, query, FINE])

    verdicts = verdicts_of(folder)
    assert list(verdicts) == ["judge", "question", "fine"]
    assert [outlook for outlook, _ in verdicts.values()] == ["unknown", "unknown", "clear"]
    assert verdicts["judge"][1] == f"{DEFECT}ZeroDivisionError: division by zero"
    assert verdicts["question"][1].startswith(f"{DEFECT}CatalogException: ")
    assert folder.read(FINDINGS).num_rows == 0
    assert folder.diagnosed()


def test_a_verdict_counts_what_is_not_listed(folder_of: FolderOf) -> None:
    """A verdict's sentence states the worst finding and counts all others, and `more` counts the unlisted ones."""
    found = tuple(
        Finding(check_id="many", severity=severity, subject=severity.value, evidence=f"Too much, {severity.value}.")
        for severity in (Severity.INFO, Severity.CRITICAL)
    )
    folder = folder_of({"snapshot": [ABOUT]})

    diagnose(folder, Policy(), OnThreads(2), [a_check("many", Judgement(findings=found, more=7))])

    (verdict,) = folder.read(VERDICTS).to_pylist()
    assert (verdict["reason"], verdict["more"]) == ("Too much, critical. And 8 more.", 7)
    assert [row["subject"] for row in folder.read(FINDINGS).to_pylist()] == ["critical", "info"]


def test_a_verdict_keeps_the_severities_of_what_is_not_listed(folder_of: FolderOf) -> None:
    found = tuple(
        Finding(check_id="many", severity=severity, subject=f"{severity.value}-{number}", evidence="Too much.")
        for severity in (Severity.INFO, Severity.CRITICAL)
        for number in range(60)
    )
    folder = folder_of({"snapshot": [ABOUT]})
    judgement = Judgement(findings=found, more=9, graded={Severity.WARNING: 2})

    diagnose(folder, Policy(), on_this_thread, [a_check("many", judgement)])

    (verdict,) = folder.read(VERDICTS).to_pylist()
    assert [verdict[each] for each in ("more", "more_critical", "more_warning", "more_info")] == [29, 0, 2, 20]


def test_partitions_of_one_topic_take_turns_with_others() -> None:
    subjects = ("persistent://a/b/t-partition-0", "persistent://a/b/t-partition-1 subscription s", "persistent://a/b/u")
    found = [
        Finding(check_id="x", severity=severity, subject=subject, evidence="e")
        for severity in (Severity.WARNING, Severity.CRITICAL)
        for subject in subjects
    ]

    placed = [(each.severity, each.subject) for each in Judgement(findings=tuple(found)).findings]

    turns = (subjects[0], subjects[2], subjects[1])
    assert placed == [(severity, each) for severity in (Severity.CRITICAL, Severity.WARNING) for each in turns]


def test_silence_is_health_only_where_everything_was_read(folder_of: FolderOf) -> None:
    """A check without findings is unknown when parts of the cluster were not read, and says which parts."""
    folder = folder_of({"snapshot": [ABOUT | {"unread_brokers": ["b:1"], "unread_namespaces": ["a/b"]}]})
    blind = a_check("blind", Judgement(cannot_tell="Nobody said."))

    diagnose(folder, Policy(), on_this_thread, [FINE, blind])

    reason = "All is well. But not everything could be read: b:1, a/b."
    assert verdicts_of(folder) == {"fine": ("unknown", reason), "blind": ("unknown", "Nobody said.")}


def test_what_was_found_stands_whatever_could_not_be_told() -> None:
    """A check with findings has the outlook found, although it could not judge everything."""
    finding = Finding(check_id="x", severity=Severity.INFO, subject="s", evidence="There.")
    about: Any = None  # nobody looks at what else was read
    verdict = verdict_of(FINE, Judgement(findings=(finding,), cannot_tell="The rest."), about)
    assert (verdict.outlook, verdict.reason) == (Outlook.FOUND, "There.")


def test_judging_again_replaces_what_was_said(folder_of: FolderOf) -> None:
    """A second diagnosis of a snapshot replaces the first one."""
    folder = folder_of({"snapshot": [ABOUT]})
    for check in ("first", "second"):
        diagnose(folder, Policy(), on_this_thread, [a_check(check, Judgement(quiet="All is well."))])
    assert list(verdicts_of(folder)) == ["second"]
    assert Path(folder.uri, TRENDS.name).is_dir()


def test_an_unfinished_snapshot_is_not_judged(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="holds no _SUCCESS"):
        diagnose(SnapshotFolder(LocalFiles(), str(tmp_path)), Policy(), on_this_thread)
