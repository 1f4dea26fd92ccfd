"""Checks that rest on others: they are judged after them, and find what these found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pulsar_steward.checks.check import Check, Judgement, Query
from pulsar_steward.checks.placement.coordinators import TcSkewPolicy
from pulsar_steward.diagnose import runner
from pulsar_steward.diagnose.runner import SnapshotSources, run_checks
from pulsar_steward.model.tables import SNAPSHOT
from pulsar_steward.policy.schema import Policy
from pulsar_steward.runtime.parallel import on_this_thread
from tests.builders import NOW
from tests.checks.conftest import arrow_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsar_steward.checks.check import CheckContext, Queried

ABOUT: dict[str, Any] = {"cluster": "east", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": []}
FORTY_TWO = Query("select 42 as answer")


REGISTERED: dict[str, Check] = {}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry with the made-up checks."""
    monkeypatch.setattr(runner, "BY_ID", REGISTERED)


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
    """A check finds the judgement and answers of the check that it rests on, and results keep the requested order."""
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
