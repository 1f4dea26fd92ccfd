"""Findings over several snapshots: since when they stand, what they rest on, and failovers."""

from __future__ import annotations

from collections import ChainMap
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pulsar_steward.checks.check import Check, CheckContext, Judgement, Queried, Query
from pulsar_steward.checks.delayed.failover_time import CHECK
from pulsar_steward.checks.placement.coordinators import TcSkewPolicy
from pulsar_steward.checks.registry import BY_ID
from pulsar_steward.diagnose import runner
from pulsar_steward.diagnose.diagnosing import Diagnosis, FindingAge, diagnose, with_history
from pulsar_steward.diagnose.runner import SnapshotSources, run_checks
from pulsar_steward.model.finding import Finding, Severity
from pulsar_steward.model.tables import FAILOVERS, FINDINGS, SNAPSHOT
from pulsar_steward.policy.schema import Policy
from pulsar_steward.runtime.parallel import on_this_thread
from tests.builders import NOW, broker
from tests.cases import cases
from tests.checks.conftest import arrow_of
from tests.unit.diagnose.conftest import ABOUT, FolderOf, Rows
from tests.unit.diagnose.test_diagnosing import FINE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulsar_steward.snapshots.folder import SnapshotFolder

FORTY_TWO = Query("select 42 as answer")


REGISTERED: dict[str, Check] = {}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry with the made-up checks as well."""
    monkeypatch.setattr(runner, "BY_ID", ChainMap(REGISTERED, BY_ID))


class Named(Check):
    """A check of any name, under the limits of another."""

    section = "tc_skew"  # that of a made-up name is in no policy


def a_check(name: str, judge: Any, query: Query = FORTY_TWO, rests_on: tuple[Check, ...] = ()) -> Check:
    """A made-up check of one question; those that it rests on are in the registry while this module is tested."""
    REGISTERED.update({each.check_id: each for each in rests_on})
    return Named(
        check_id=name,
        title="made up",
        advice=(),
        source="here",
        policy=TcSkewPolicy,
        cluster={"asked": query},
        judge=judge,
        rests_on=tuple(each.check_id for each in rests_on),
    )


def judged(*checks: Check) -> dict[str, str]:
    """Judgements of the checks, in order."""
    sources = SnapshotSources({SNAPSHOT.name: arrow_of(SNAPSHOT, [ABOUT])}, [{}])
    results = run_checks(sources, Policy(), checks, (), on_this_thread)
    return {each.check.check_id: each.judgement.cannot_tell or each.judgement.quiet for each in results}


def says_its_answer(queried: Queried, _: CheckContext[Any]) -> Judgement:
    """Tells what it was answered."""
    return Judgement(quiet=f"It is {queried['asked'].one['answer']}.")


def repeats_the_others(_: Queried, context: CheckContext[Any]) -> Judgement:
    """Tells what those said that it rests on, and the names of the answers that they had."""
    said = [
        f"{name}: {each.judgement.cannot_tell or each.judgement.quiet} {sorted(each.queried)}"
        for name, each in context.results.items()
    ]
    return Judgement(quiet="; ".join(said))


def broken(_answers: Queried, _context: CheckContext[Any]) -> NoReturn:
    """A judge with a defect."""
    raise ZeroDivisionError("division by zero")


FIRST = a_check("first", says_its_answer)
SECOND = a_check("second", repeats_the_others, rests_on=(FIRST,))
REPEATED = "first: It is 42. ['asked']"


def test_it_finds_the_judgement_and_the_answers_of_the_other() -> None:
    assert list(judged(FIRST, SECOND).items()) == [("first", "It is 42."), ("second", REPEATED)]
    assert list(judged(SECOND, FIRST).items()) == [("second", REPEATED), ("first", "It is 42.")]


def test_what_it_rests_on_is_asked_though_nobody_asked_for_it() -> None:
    """A check that another one rests on is run without being requested, and its own result is not returned."""
    assert judged(SECOND) == {"second": REPEATED}


def test_one_that_was_asked_for_is_not_replaced() -> None:
    """A check rests on the requested check of the same id instead of the one that it was made with."""
    another = a_check("first", says_its_answer, Query("select 7 as answer"))
    assert judged(another, SECOND)["second"] == "first: It is 7. ['asked']"


def test_one_that_breaks_cannot_tell_and_has_its_answers() -> None:
    """A check is judged although those that it rests on fail. It sees their errors and the answers that they had."""
    defect = "The check itself failed, which is a defect: "
    no_judge, no_question = a_check("judge", broken), a_check("question", says_its_answer, Query("select nothing"))
    told: Sequence[str] = judged(a_check("last", repeats_the_others, rests_on=(no_judge, no_question)))["last"].split(
        "; "
    )
    assert told[0] == f"judge: {defect}ZeroDivisionError: division by zero ['asked']"
    assert told[1].startswith(f"question: {defect}")
    assert told[1].endswith(" []")


def test_others_find_nothing_of_it() -> None:
    """A check that rests on no other check has no results of other checks."""
    assert judged(FIRST, a_check("alone", repeats_the_others)) == {"first": "It is 42.", "alone": ""}


HOUR = timedelta(hours=1)
FINDING = Finding(check_id="tc-skew", severity=Severity.WARNING, subject="east", evidence="skewed")
KEY = ("tc-skew", "east")
CLEAR = Diagnosis(frozenset({"tc-skew"}), {})
BLIND = Diagnosis(frozenset(), {})
SEEN = Diagnosis(frozenset({"tc-skew"}), {KEY: FindingAge(NOW - 3 * HOUR, 2)})


@cases(
    "earlier, first_seen, in_a_row",
    ("never looked before", [], NOW, 1),
    ("was clear", [CLEAR], NOW, 1),
    ("had gone in between", [CLEAR, SEEN], NOW, 1),
    ("stands", [SEEN], NOW - 3 * HOUR, 3),
    ("could not be judged in between", [BLIND, BLIND, SEEN], NOW - 3 * HOUR, 3),
    ("could not be judged, then was clear", [BLIND, CLEAR, SEEN], NOW, 1),
)
def test_a_finding_stands_as_long_as_no_snapshot_says_otherwise(
    earlier: list[Diagnosis], first_seen: datetime, in_a_row: int
) -> None:
    """A finding keeps its first time until a snapshot that could judge its check does not find it."""
    (found,) = with_history([FINDING], NOW, earlier)
    assert (found.first_seen, found.snapshots_in_a_row) == (first_seen, in_a_row)


def test_another_subject_has_a_row_of_its_own() -> None:
    """Earlier findings of another subject do not count for the snapshots in a row of a finding."""
    other = Diagnosis(frozenset({"tc-skew"}), {("tc-skew", "west"): FindingAge(NOW - HOUR, 7)})
    (found,) = with_history([FINDING], NOW, [other])
    assert found.snapshots_in_a_row == 1


def test_no_more_is_read_than_is_needed() -> None:
    """No earlier diagnosis is read without findings, and otherwise none before the one that settles them."""
    read: list[str] = []

    def diagnoses() -> Iterator[Diagnosis]:
        for name, diagnosis in (("newest", SEEN), ("older", CLEAR)):
            read.append(name)
            yield diagnosis

    with_history([], NOW, diagnoses())
    assert read == []
    with_history([FINDING], NOW, diagnoses())
    assert read == ["newest"]


def test_three_snapshots_in_a_row_are_counted(folder_of: FolderOf) -> None:
    """A finding in three finished snapshots is three in a row, although an unfinished one lies between them."""
    folders = [skewed(folder_of, NOW + number * HOUR, finished=number != 1) for number in range(4)]
    for number in (0, 2, 3):
        diagnose(folders[number], Policy(), on_this_thread, [BY_ID["tc-skew"]])

    (found,) = folders[3].read(FINDINGS).to_pylist()
    assert (found["check_id"], found["first_seen"], found["snapshots_in_a_row"]) == ("tc-skew", NOW, 3)


def skewed(folder_of: FolderOf, taken_at: datetime, *, finished: bool) -> SnapshotFolder:
    """A snapshot of two brokers of which one holds all four coordinators."""
    about = {"taken_at": taken_at, "pulsar_version": "4.0.7", "coordinators": 4}
    rows: Rows = {
        "snapshot": [ABOUT | about],
        "brokers": [{"broker": name, "read": True} for name in ("a:8080", "b:8080")],
        "transaction_coordinators": [
            {"coordinator": number, "broker": "a:8080", "broker_known": True} for number in range(4)
        ],
    }
    folder = folder_of(rows)
    if not finished:
        folder.begin()
    return folder


def a_broker(number: int, topics: int | None) -> dict[str, Any]:
    """A broker with topics; None: it was not read."""
    return {"broker": broker(number), "read": topics is not None, "bundles": 50, "topics": topics}


def kept(folder_of: FolderOf, brokers: list[dict[str, Any]], *checks: Check, **sections: Any) -> list[dict[str, Any]]:
    """Rows that a diagnosis leaves of these brokers."""
    folder = folder_of({"snapshot": [ABOUT], "brokers": brokers})
    diagnose(folder, Policy.model_validate(sections), on_this_thread, checks or (CHECK,))
    rows: list[dict[str, Any]] = folder.read(FAILOVERS).to_pylist()
    return rows


def test_every_broker_that_was_read_has_its_estimate(folder_of: FolderOf) -> None:
    """Every broker that was read has an estimate, and an orderly end does not wait for the session timeout."""
    rates = {"topics_loaded_per_second_per_broker": 10, "session_timeout_seconds": 40}
    rows = kept(folder_of, [a_broker(1, 20), a_broker(0, 400), a_broker(2, None)], failover_time=rates)
    assert [row["broker"] for row in rows] == [broker(0), broker(1)]
    first, second = rows
    assert (first["others"], first["bundles"], first["topics"], first["delayed_messages"]) == (1, 50, 400, 0)
    assert (first["session_seconds"], first["assigning_seconds"], first["loading_seconds"]) == (40, 2, 40)
    assert second["loading_seconds"] == 2
    for row in rows:
        served = row["assigning_seconds"] + row["loading_seconds"] + row["reading_seconds"]
        assert row["ended_seconds"] >= served
        assert row["lost_seconds"] >= row["ended_seconds"] + row["session_seconds"]


def test_what_is_found_is_what_is_kept(folder_of: FolderOf) -> None:
    """A failover finding has the same broker and the same seconds as the longest estimate that is kept."""
    folder = folder_of({"snapshot": [ABOUT], "brokers": [a_broker(0, 90_000), a_broker(1, 5)]})
    diagnose(folder, Policy(), on_this_thread, [CHECK])
    (finding,) = folder.read(FINDINGS).to_pylist()
    longest = max(folder.read(FAILOVERS).to_pylist(), key=lambda row: row["lost_seconds"])
    assert finding["subject"] == longest["broker"]
    assert f'"estimate_seconds":{longest["lost_seconds"]},' in finding["figures_json"]


@cases("check, topics", ("the check was not asked", FINE, 400), ("no broker told its load", CHECK, None))
def test_without_figures_nothing_is_kept(folder_of: FolderOf, check: Check, topics: int | None) -> None:
    """No failover estimates are kept when the check was not run or no broker was read."""
    assert kept(folder_of, [a_broker(0, topics)], check) == []
