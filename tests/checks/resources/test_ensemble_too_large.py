"""Ensembles beside the number of bookies: of namespaces, and the brokers' default."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.checks.resources.bookies import DEFAULT
from pulsar_steward.checks.resources.bookies import ENSEMBLE_TOO_LARGE as CHECK
from pulsar_steward.model.finding import Severity
from tests.builders import NOW, a_policy

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Judgement
    from pulsar_steward.policy.schema import Policy
    from tests.checks.conftest import JudgeRows, Rows

CRITICAL, INFO = Severity.CRITICAL, Severity.INFO
OWN = "acme/orders"


def judged(
    judge_rows: JudgeRows,
    bookies: int | None,
    own: object = None,
    default: tuple[str, ...] = ("2",),
    policy: Policy | None = None,
) -> Judgement:
    """Judgement of one namespace, and of brokers with these defaults."""
    about = {"cluster": "lab", "taken_at": NOW, "unread_brokers": [], "unread_namespaces": [], "bookies": bookies}
    persistence = {} if own is None else {"persistence": {"bookkeeperEnsemble": own, "bookkeeperWriteQuorum": 1}}
    settings = [{"broker": f"b-{n}:8080", "key": DEFAULT, "value": value} for n, value in enumerate(default)]
    rows: Rows = {
        "snapshot": [about],
        "namespaces": [{"namespace": OWN, "policies_json": json.dumps(persistence)}],
        "configuration": settings,
    }
    return judge_rows(CHECK, rows, policy)


@pytest.mark.parametrize(
    ("bookies", "own", "default", "found"),
    [
        pytest.param(5, None, ("2",), {}, id="the default fits"),
        pytest.param(3, 3, ("2",), {OWN: INFO}, id="a namespace takes all"),
        pytest.param(3, 4, ("2",), {OWN: CRITICAL}, id="a namespace takes more"),
        pytest.param(2, None, ("2",), {"lab": INFO}, id="the default takes all"),
        pytest.param(1, None, ("2",), {"lab": CRITICAL}, id="the default takes more"),
        pytest.param(1, 1, ("1",), {}, id="one bookie alone"),
        pytest.param(3, 4, ("4",), {OWN: CRITICAL, "lab": CRITICAL}, id="both"),
        pytest.param(3, None, ("2", "5"), {"lab": CRITICAL}, id="the largest of the brokers' counts"),
        pytest.param(3, "many", ("2",), {}, id="a document that makes no sense"),
        pytest.param(3, 4, (), {OWN: CRITICAL}, id="no default was read"),
    ],
)
def test_ensembles_are_held_against_the_bookies(
    judge_rows: JudgeRows, bookies: int, own: object, default: tuple[str, ...], found: dict[str, Severity]
) -> None:
    """Each namespace's ensemble is judged by the number of bookies, and the default as a finding of the cluster."""
    judgement = judged(judge_rows, bookies, own, default)
    assert {each.subject: each.severity for each in judgement.findings} == found
    assert judgement.cannot_tell is None


@pytest.mark.parametrize(("bookies", "default"), [(None, ("2",)), (0, ("2",)), (3, ()), (3, ("some",))])
def test_what_was_not_read_is_said(judge_rows: JudgeRows, bookies: int | None, default: tuple[str, ...]) -> None:
    """The check cannot tell if the number of bookies or the default ensemble was not read."""
    judgement = judged(judge_rows, bookies, default=default)
    assert judgement.findings == ()
    assert judgement.cannot_tell


@pytest.mark.parametrize(("spare", "found"), [(0, {}), (1, {}), (2, {"lab": INFO})])
def test_how_many_may_be_away_is_the_policys(judge_rows: JudgeRows, spare: int, found: dict[str, Severity]) -> None:
    """An ensemble is information if fewer bookies are beyond it than the policy wants as spare."""
    policy = a_policy(ensemble_too_large={"information_spare_bookies": spare})
    judgement = judged(judge_rows, 3, default=("2",), policy=policy)
    assert {each.subject: each.severity for each in judgement.findings} == found


@pytest.mark.parametrize(
    ("bookies", "own", "words"),
    [
        (3, 4, "spread over 4 bookies by the namespace's own policy, and the cluster has 3: no new ledger can be made"),
        (3, 3, "spread over 3 bookies by the namespace's own policy, and the cluster has 3: while one is away"),
    ],
)
def test_it_is_told_with_figures(judge_rows: JudgeRows, bookies: int, own: int, words: str) -> None:
    """The evidence has the ensemble, the number of bookies and what follows from them."""
    (finding,) = judged(judge_rows, bookies, own).findings
    assert words in finding.evidence
    assert finding.figures == {"bookies": bookies, "ensemble": own}
