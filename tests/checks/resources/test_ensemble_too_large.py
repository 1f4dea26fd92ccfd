"""Ensembles beside the number of bookies: of namespaces, and the brokers' default."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pulsar_steward.checks.resources.bookies import DEFAULT
from pulsar_steward.checks.resources.bookies import ENSEMBLE_TOO_LARGE as CHECK
from pulsar_steward.model.finding import Severity
from tests.builders import NOW, a_policy
from tests.checks.conftest import judge_rows, told

if TYPE_CHECKING:
    from pulsar_steward.checks.check import Judgement
    from pulsar_steward.policy.schema import Policy
    from tests.checks.conftest import Rows
    from tests.golden import Golden

CRITICAL, INFO = Severity.CRITICAL, Severity.INFO
OWN = "acme/orders"


def judged(
    bookies: int | None, own: object = None, default: tuple[str, ...] = ("2",), policy: Policy | None = None
) -> Judgement:
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
    bookies: int, own: object, default: tuple[str, ...], found: dict[str, Severity]
) -> None:
    """Each namespace's ensemble is judged by the number of bookies, and the default as a finding of the cluster."""
    judgement = judged(bookies, own, default)
    assert {each.subject: each.severity for each in judgement.findings} == found
    assert judgement.cannot_tell is None


def test_what_it_says(golden: Golden) -> None:
    """An ensemble is information if fewer bookies are beyond it than the policy wants as spare."""
    spare = [a_policy(ensemble_too_large={"information_spare_bookies": number}) for number in range(3)]
    cases = {
        "the number of bookies is not known": judged(None),
        "no bookie is known": judged(0),
        "no default was read": judged(3, default=()),
        "a default that is no number": judged(3, default=("some",)),
        **{f"{number} spare ones of one": judged(3, policy=policy) for number, policy in enumerate(spare)},
        "a namespace takes more than there are": judged(3, 4),
        "a namespace takes all": judged(3, 3),
    }
    golden(told(cases))
